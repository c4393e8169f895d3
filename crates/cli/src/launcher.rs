//! The launcher that may have started this process: mpirun, srun.

use iolab_cluster::launch::Launch;

use crate::exit::{Failure, Outcome};

/// Refuses to measure as one of several processes, which would be unrelated runs on one target.
pub(crate) fn check_alone() -> Outcome {
    match Launch::of(|name| std::env::var(name).ok()) {
        None => Ok(()),
        Some(launch) if launch.is_silent() => Err(Failure::ToldElsewhere),
        Some(launch) => Err(launch.refusal().into()),
    }
}
