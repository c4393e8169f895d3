//! Levels of `bs` that a run adds to its own plan, if the grid has shown bends or best sizes.

use std::collections::BTreeSet;

use iolab_workload::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Experiment, Factor};
use iolab_workload::settings::Setting;

/// Most finer sizes around one size.
pub const REFINE_MAX: u32 = 32;

/// The levels that a run has added; stored so that it can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refined {
    /// The first block that measures the added levels, together with all others.
    pub block: u32,
    /// The added levels of `bs`, in canonical form.
    pub bs: Vec<String>,
}

impl Experiment {
    /// Number of levels of a factor, including added ones.
    pub(super) fn level_count(&self, factor: &Factor) -> usize {
        let added = self.refined.as_ref().map_or(0, |refined| refined.bs.len());
        let is_sizes = factor.of.is("bs");
        factor.levels.len() + if is_sizes { added } else { 0 }
    }

    /// The factor `bs`.
    fn sizes(&self) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.of.is("bs"))
    }

    /// Refuses finer sizes without a factor `bs`, or together with settings that exclude them.
    pub(super) fn check_refine(&self) -> Result<()> {
        if self.design.refine > REFINE_MAX {
            return Err(
                Error::usage(format!("refine is {}", self.design.refine)).hint(format!(
                    "choose 1 to {REFINE_MAX} finer sizes around each place"
                )),
            );
        }
        if self.design.refine == 0 && self.refined.is_none() {
            return Ok(());
        }
        let refuse = |message: &str, hint: &str| Err(Error::usage(message).hint(hint));
        if self.runs_programs() {
            return refuse(
                "refine is set, but the trials run programs",
                "only sizes of requests (bs) are refined; leave refine out",
            );
        }
        let Some(sizes) = self.sizes() else {
            return refuse(
                "refine is set, but bs does not vary",
                "give bs several levels, for example --set bs=4k,64k,1M, or leave refine out",
            );
        };
        if self.is_listed(&sizes.of) {
            return refuse(
                "refine is set, but the sizes are listed in [[only]]",
                "sweep bs with --set bs=4k,64k,1M, or leave refine out",
            );
        }
        if let Some(other) = self
            .factors
            .iter()
            .find(|factor| ["skip", "region", "offset"].contains(&factor.of.setting.name))
        {
            return Err(
                Error::usage(format!("refine is set, but {} varies besides bs", other.of)).hint(
                    format!("fix it with --set {}=VALUE, or leave refine out", other.of),
                ),
            );
        }
        self.refined
            .as_ref()
            .map_or(Ok(()), |refined| check_levels(refined, sizes))
    }
}

/// Checks added levels, since the file may come from elsewhere.
fn check_levels(refined: &Refined, sizes: &Factor) -> Result<()> {
    let mut seen: BTreeSet<&str> = sizes.levels.iter().map(String::as_str).collect();
    for level in &refined.bs {
        let canonical = Setting::find("bs").map_or(Ok(level.clone()), |bs| bs.canonical(level))?;
        if canonical != *level || !seen.insert(level) {
            return Err(
                Error::usage(format!("'{level}' in [refined] is not a new level"))
                    .hint("remove [refined]; iolab writes it"),
            );
        }
    }
    Ok(())
}
