//! A job that looks for the depth at which a level of latency still holds (`latency_target`).

use std::time::Duration;

use iolab_plan::experiment::{BUDGET_MAX, Experiment};
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::units::format_duration;
use iolab_workload::{Error, Result};

use super::job_errors::Mistakes;
use super::jobs::Job;
use crate::options::micros;

/// The service levels of a job with a latency target.
pub(super) struct Held {
    levels: ServiceLevels,
    /// How long each depth is tried.
    window: Option<Duration>,
}

/// The service levels of the jobs; `None` if no job has a latency target.
pub(super) fn held(jobs: &[Job], mistakes: &mut Mistakes) -> Option<Held> {
    const TARGET: &str = "latency_target";
    let job = jobs.iter().find(|job| job.options.contains_key(TARGET))?;
    let place = job.place_of(TARGET);
    if jobs.len() > 1 {
        let error = Error::usage("latency_target with several jobs");
        mistakes.add(
            &place,
            error.hint("iolab tries the depths of one job: give the others a file of their own"),
        );
        return None;
    }
    let mut time = |name: &'static str| match micros(name, job.options.get(name)?) {
        Ok(time) => Some(time).filter(|time| !time.is_zero()),
        Err(fault) => {
            mistakes.add(&job.place_of(name), fault.error);
            None
        }
    };
    let (target, window) = (time(TARGET)?, time("latency_window"));
    let percentile = job.options.get("latency_percentile");
    // All requests, unless it says otherwise.
    let quantity = match percentile.map(|text| text.trim()) {
        None | Some("100" | "100.0") => "max".to_owned(),
        Some(percentile) => format!("p{percentile}"),
    };
    match format!("{quantity}<{}", format_duration(target)).parse() {
        Ok(levels) => Some(Held { levels, window }),
        Err(error) => {
            mistakes.add(&job.place_of("latency_percentile"), error);
            None
        }
    }
}

impl Held {
    /// Each depth is tried for so long.
    pub(super) fn bound(&self, cell: &mut CellSpec) {
        if let Some(window) = self.window {
            cell.trial.limit.bytes = None;
            cell.trial.limit.time = Some(window);
        }
    }

    /// Has the run judge the level at depths up to this one.
    ///
    /// # Errors
    /// Never for a depth that a trial can have.
    pub(super) fn put(self, experiment: &mut Experiment, most: u32) -> Result<()> {
        let setting =
            Setting::find("depth").ok_or_else(|| Error::failed("there is no setting 'depth'"))?;
        let doubled = std::iter::successors(Some(1_u32), |depth| depth.checked_mul(2));
        let below = doubled.take_while(|depth| *depth < most);
        let depths: Vec<String> = below.chain([most]).map(|depth| depth.to_string()).collect();
        let trials = depths.len() as u32 * (experiment.design.trials_min + 1);
        let needed = self.window.unwrap_or_default().saturating_mul(trials);
        experiment.design.budget = experiment.design.budget.max(needed).min(BUDGET_MAX);
        experiment.sweep(setting, &depths)?;
        experiment.hold = Some(self.levels);
        Ok(())
    }
}
