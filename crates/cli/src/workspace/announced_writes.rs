//! What a run will write, said before anything is written.

use iolab_peers::overhead;
use iolab_plan::cells::FittedPlan;
use iolab_plan::forecast::Forecast;
use iolab_plan::standard::Medium;
use iolab_report::forecast;
use iolab_workload::quantity::format_bytes;

use super::Workspace;
use crate::dry_run::Made;
use crate::output::note;

/// What is left of plans after the trials that were made of each.
fn forecasts(plans: &[FittedPlan], (made, spent): Made) -> Vec<Forecast> {
    let all = plans.iter().map(|plan| Forecast::of(plan, &overhead));
    all.map(|forecast| forecast.after(made, spent)).collect()
}

impl Workspace {
    /// Says what plans will write beyond the trials that were made of each; nothing is written to a model.
    pub(super) fn announce_writes(&self, plans: &[FittedPlan], made: Made) {
        if !self.is_virtual() {
            tell_writes(
                &forecasts(plans, made),
                (self.medium(), self.has_namespace()),
                self.filled_by_all(),
                self.runs_programs(),
            );
        }
    }
}

/// Says what the run will write, before anything is written: to fill scratch files (`filled`), to precondition, in its trials. What
/// programs write is theirs.
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
