//! The writes of a run, announced before anything is written.

use iolab_peers::overhead;
use iolab_plan::cells::FittedPlan;
use iolab_plan::forecast::Forecast;
use iolab_plan::standard::Medium;
use iolab_report::forecast;
use iolab_workload::quantity::{exact_size, format_bytes};
use iolab_workload::{Error, Result};

use super::Workspace;
use crate::dry_run::Made;
use iolab_command::output::note;

/// The rest of plans after the trials that were made of each.
fn forecasts(plans: &[FittedPlan], (made, spent): Made, filled: u64) -> Vec<Forecast> {
    let all = plans.iter().map(|plan| Forecast::of(plan, &overhead));
    let all = all.map(|forecast| forecast.after(made, spent).beside_fill(filled));
    all.collect()
}

impl Workspace {
    /// Refuses to fill targets with more bytes than a plan may write.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the fill alone is more.
    pub(super) fn check_writes(&self, plans: &[FittedPlan]) -> Result<()> {
        let targets = self.place().targets().len().max(1) as u64;
        let filled = self.filled_by_all() / targets;
        let budgets = plans.iter().map(|plan| plan.experiment().design.writes);
        match budgets.flatten().min().filter(|most| *most < filled) {
            None => Ok(()),
            Some(most) => Err(Error::usage(format!(
                "filling a scratch file writes {}, more than writes={}",
                exact_size(filled),
                exact_size(most)
            ))
            .hint("allow more (--set writes=SIZE), or choose a smaller --size")),
        }
    }

    /// Announces the writes of plans beyond the trials made so far; nothing is written to a model.
    pub(super) fn announce_writes(&self, plans: &[FittedPlan], made: Made) {
        if !self.is_virtual() {
            tell_writes(
                &forecasts(plans, made, self.filled_by_all()),
                (self.medium(), self.has_namespace()),
                self.filled_by_all(),
                self.runs_programs(),
            );
        }
    }
}

/// Announces the writes of the run, before anything is written: to fill scratch files (`filled`), to precondition, in its
/// trials. Writes of programs are not included.
fn tell_writes(
    forecasts: &[Forecast],
    (medium, has_namespace): (Option<Medium>, bool),
    filled: u64,
    runs_programs: bool,
) {
    let mut parts = Vec::new();
    if filled > 0 {
        let bytes = format_bytes(filled as f64);
        parts.push(format!("filling scratch files writes {bytes}"));
    }
    let conditioning = forecasts.iter();
    let conditioning = conditioning
        .filter_map(|forecast| forecast::preconditioning(forecast, medium, has_namespace));
    parts.extend(conditioning.map(|text| format!("preconditioning {text}")));
    let writes = forecasts.iter().any(Forecast::changes_data);
    if writes || (!parts.is_empty() && !runs_programs) {
        let trials = forecast::written_by_all(forecasts);
        parts.push(format!("trials write {trials}"));
    }
    if !parts.is_empty() {
        note(format_args!(
            "note: before and during trials: {}",
            parts.join("; ")
        ));
    }
}
