//! Settings that a consumer other than the engine (another tool, a modelled disk) carries out, and refusals of all others.

use super::{CellSpec, SETTINGS, Setting};
use crate::trial::TrialSpec;

/// Why a consumer refuses settings that no consumer names.
const UNKNOWN: &str = "it has no such setting";

/// Settings as a consumer takes them. Settings that a consumer does not name must have their default value.
#[derive(Debug, Clone, Copy)]
pub struct Consumer {
    /// Settings that it carries out as the engine does, or that iolab carries out around it. Names here are separated by blanks.
    pub takes: &'static str,
    /// Settings of which it carries out the default value only, and why.
    pub lacks: &'static [(&'static str, &'static str)],
    /// Settings of which it refuses some values: whether the value at hand is one, and why.
    pub cannot: fn(&TrialSpec) -> Vec<(&'static str, bool, &'static str)>,
}

impl Consumer {
    /// Why a consumer refuses the value of each setting that it refuses in this cell.
    pub fn refusals(&self, cell: &CellSpec) -> Vec<(&'static Setting, &'static str)> {
        let conditions = (self.cannot)(&cell.trial);
        let plain = CellSpec::default();
        let has = |names: &str, name: &str| names.split(' ').any(|other| other == name);
        let why = |setting: &&'static Setting| {
            let name = setting.name;
            let mut own = conditions.iter().filter(|(of, ..)| *of == name).peekable();
            let is_taken = own.peek().is_some() || has(self.takes, name);
            if let Some((.., why)) = own.find(|(_, refused, _)| *refused) {
                return Some((*setting, *why));
            }
            let lacked = self.lacks.iter().find(|(names, _)| has(names, name));
            let is_plain = is_taken || setting.value(cell) == setting.value(&plain);
            (!is_plain).then_some((*setting, lacked.map_or(UNKNOWN, |(_, why)| why)))
        };
        SETTINGS
            .iter()
            .filter_map(|setting| why(&setting))
            .collect()
    }

    /// Refuses a trial, for the first setting of the table that it refuses.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, trial: &TrialSpec) -> Result<(), String> {
        match self.refusals(&CellSpec::of(trial.clone())).first() {
            Some((_, why)) => Err((*why).to_owned()),
            None => Ok(()),
        }
    }
}
