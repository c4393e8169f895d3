//! Trials whose requests come from a list, on a target or on a modelled disk.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use iolab_engine::list::RequestList;
use iolab_engine::{simulation, trial};
use iolab_host::clock::Clock;
use iolab_record::ServedVerdict;
use iolab_storage::Target;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

use crate::Disk;
use crate::evidence::computed;
use crate::sample::verdict_alone;
use crate::simulated::Running;

/// Carries a trial out on a target that does not change meanwhile, and judges where the bytes came from.
///
/// # Errors
/// As [`trial::run_list`]; also a target that became another one, a failed request, and the user's interrupt.
pub fn run_list(
    spec: &TrialSpec,
    list: &Mutex<dyn RequestList>,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<(Outcome, ServedVerdict)> {
    let before = target.standing(false)?;
    let outcome = trial::run_list(spec, list, target, clock, stop)?;
    target.check_standing(before)?;
    let verdict = verdict_alone(spec, &outcome, target.medium());
    whole(outcome).map(|outcome| (outcome, verdict))
}

impl Disk {
    /// Carries a trial out on a new disk, in virtual time.
    ///
    /// # Errors
    /// As [`simulation::run_list`]; also the user's interrupt.
    pub fn run_list(
        &self,
        spec: &TrialSpec,
        list: &mut dyn RequestList,
        stop: &AtomicBool,
    ) -> Result<(Outcome, ServedVerdict)> {
        let disk = &mut Running::new(self, spec.seed)?;
        let (outcome, _) = simulation::run_list(spec, list, disk, 0, stop)?;
        whole(outcome).map(|outcome| (outcome, computed()))
    }
}

/// The outcome of a trial that came to its end.
fn whole(outcome: Outcome) -> Result<Outcome> {
    if let Some(failure) = &outcome.failure {
        let (what, remedy) = crate::describe_failure(failure);
        return Err(Error::failed(what).hint(remedy));
    }
    match outcome.ended {
        Ended::Interrupted => Err(Error::interrupted()),
        _ => Ok(outcome),
    }
}
