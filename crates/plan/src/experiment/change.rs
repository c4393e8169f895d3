//! Changes of an experiment by the user: from `--set`, or from an option that is short for it.

use iolab_workload::{Error, Result};

use super::design::{Design, DesignEntry, check_bounds, design_names};
use super::{Experiment, GroupSetting};
use iolab_workload::command_template::split_list;
use iolab_workload::settings::ValueKind;

/// A change of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    what: What,
    /// The user's words, for messages.
    said: String,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// A list of levels makes the setting a factor, a single one fixes it.
    Setting(GroupSetting, Vec<String>),
    /// An entry of `[design]` with its value.
    Design(&'static DesignEntry, String),
}

/// Longest words of the user in a message, characters.
const SAID_MAX: usize = 80;

/// The user's words for messages, shortened: a long list of levels hides the fault.
fn shortened(said: String) -> String {
    match said.char_indices().nth(SAID_MAX) {
        None => said,
        Some((end, _)) => format!("{}...", &said[..end]),
    }
}

impl Change {
    /// Reads `NAME=VALUE[,VALUE...]`. The entries of `[design]` take one value.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such name, or a value that it does not take.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, values) = text.split_once('=').ok_or_else(|| {
            Error::usage("there is no '=' in it")
                .hint("write --set NAME=VALUE or --set NAME=VALUE,VALUE")
                .within(format!("--set {text}"))
        })?;
        Self::of_option(name.trim(), values, format!("--set {text}"))
    }

    /// Sets `name` to a value, or to several separated by commas.
    ///
    /// # Errors
    ///
    /// Errors of [`Change::parse`].
    pub fn of(name: &str, values: &str) -> Result<Self> {
        Self::of_option(name, values, format!("--set {name}={values}"))
    }

    /// As [`Change::parse`], for an option that stands for a setting; `said` is the option with its value, for messages.
    ///
    /// # Errors
    ///
    /// As [`Change::parse`].
    pub fn of_option(name: &str, values: &str, said: String) -> Result<Self> {
        let said = shortened(said);
        match What::read(name, values) {
            Ok(what) => Ok(Self { what, said }),
            Err(error) => Err(error.within(said)),
        }
    }

    /// Whether both change the same setting, under any of its names, or the same entry of the design.
    pub fn is_of_same(&self, other: &Self) -> bool {
        match (&self.what, &other.what) {
            (What::Setting(own, _), What::Setting(other, _)) => own == other,
            (What::Design(own, _), What::Design(other, _)) => own == other,
            _ => false,
        }
    }

    /// The user's words: `--set bs=4k`, `--depth 32`.
    pub fn as_said(&self) -> &str {
        &self.said
    }

    /// The levels of a setting; empty for other changes.
    pub fn levels(&self) -> &[String] {
        match &self.what {
            What::Setting(_, levels) => levels,
            What::Design(..) => &[],
        }
    }

    /// Whether it changes the setting of this name, or the entry of the design.
    pub fn is_of(&self, name: &str) -> bool {
        match &self.what {
            What::Setting(of, _) => of.is(name),
            What::Design(entry, _) => entry.name == name,
        }
    }

    /// The default design with this change; `None` for a change of a setting.
    pub fn design(&self) -> Option<Design> {
        let What::Design(entry, text) = &self.what else {
            return None;
        };
        let mut design = Design::default();
        (entry.set)(&mut design, text).ok()?;
        Some(design)
    }
}

impl What {
    fn read(name: &str, text: &str) -> Result<Self> {
        if let Some(entry) = DesignEntry::find(name) {
            let value = text.trim();
            (entry.set)(&mut Design::default(), value)?;
            return Ok(Self::Design(entry, value.to_owned()));
        }
        let of = GroupSetting::find(name, &design_names())?;
        let levels = match of.setting.kind {
            ValueKind::List => {
                let separator = of.setting.kind.separator();
                text.split(separator).map(str::to_owned).collect()
            }
            // Only commands may contain commas, in quotes.
            _ => split_list(text),
        };
        Ok(Self::Setting(of, levels))
    }
}

impl Experiment {
    /// Applies a change.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage); the experiment is then unchanged.
    pub fn apply(&mut self, change: &Change) -> Result<()> {
        let mut changed = self.clone();
        changed
            .take(&change.what)
            .and_then(|()| changed.check())
            .map_err(|error| error.within(change.said.clone()))?;
        changed.follow(self);
        *self = changed;
        Ok(())
    }

    /// Applies changes that belong together: only all of them together have to give a plan.
    ///
    /// # Errors
    /// Of kind usage, naming the change that invalidates the plan; the experiment is then unchanged.
    pub fn apply_all(&mut self, changes: &[Change]) -> Result<()> {
        let mut changed = self.clone();
        // Rounds of all cells set bounds of trials, which a bound of the user contradicts wherever it stands.
        let prepares = |change: &&Change| change.is_of("precondition");
        let (first, others): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(prepares);
        let changes = || first.iter().chain(&others).copied();
        check_bounds(changes().filter_map(|change| match &change.what {
            What::Design(entry, text) => Some((*entry, text.as_str())),
            What::Setting(..) => None,
        }))?;
        for change in changes() {
            let before = changed.clone();
            changed
                .take(&change.what)
                .map_err(|error| error.within(change.said.clone()))?;
            changed.follow(&before);
        }
        if let Err(error) = changed.check() {
            // One by one, for the change that it comes from.
            let mut tried = self.clone();
            changes().try_for_each(|change| tried.apply(change))?;
            return Err(error);
        }
        *self = changed;
        Ok(())
    }

    /// Applies `NAME=VALUE[,VALUE...]`; see [`Change::parse`].
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage); the experiment is then unchanged.
    pub fn apply_set(&mut self, text: &str) -> Result<()> {
        self.apply(&Change::parse(text)?)
    }

    fn take(&mut self, what: &What) -> Result<()> {
        match what {
            What::Setting(of, levels) => {
                self.check_effect(of)?;
                // The variants of an inquiry are cells with the settings that it has chosen.
                self.inquiry = None;
                let region = self.region();
                self.sweep(of.clone(), levels)?;
                if of.is("region") && of.group.is_none() {
                    self.move_groups(region)?;
                }
                if of.group.is_none() {
                    self.displace(of.setting);
                }
                self.drop_included_settings(of)?;
                self.forget_what_does_not_vary();
            }
            What::Design(entry, text) => (entry.set)(&mut self.design, text)?,
        }
        Ok(())
    }
}
