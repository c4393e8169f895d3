//! Commands as one of several processes that were started together, by mpirun or srun.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use iolab_command::failure::Outcome;
use iolab_runner::ranks::Ranks;
use iolab_workload::Result;

use super::LAUNCHERS;

/// The work of a command, with the ranks if there are several.
type Work<'a> = dyn Fn(Option<Rc<dyn Ranks>>) -> Outcome + 'a;

/// How processes that were started together notice each other.
pub(super) struct Launcher {
    /// Whether another process of the same start prints messages for all of them.
    pub(super) is_silent: fn() -> bool,
    /// The path that a process without others uses for a target of this name.
    pub(super) place: fn(&Path) -> Result<PathBuf>,
    /// Refuses a command of this name if there are several: they would disturb each other. The second text says what they can do.
    pub(super) alone: fn(&str, &str) -> Outcome,
    /// Does the work with all processes; with this one alone if there are no others.
    pub(super) together: fn(&Work<'_>) -> Outcome,
}

/// The alternative of several processes to a suite or a requirement.
pub(super) const TOGETHER: &str =
    "a build with MPI measures one experiment with all processes: iolab run EXPERIMENT";

/// Whether another process of the same start prints messages for all of them.
pub(crate) fn is_silent() -> bool {
    LAUNCHERS.iter().any(|launcher| (launcher.is_silent)())
}

/// Refuses a command as one of several processes, unless it only plans.
///
/// # Errors
///
/// There are several: `instead` says what they can do.
pub(super) fn alone(is_plan: bool, name: &str, instead: &str) -> Outcome {
    let mut launchers = LAUNCHERS.iter().filter(|_| !is_plan);
    launchers.try_for_each(|launcher| (launcher.alone)(name, instead))
}

/// Does the work with all processes that were started together; with this one alone if there are no others, or it only plans.
///
/// # Errors
///
/// There are several, and they cannot work together; the failure of the work.
pub(super) fn together(is_plan: bool, work: &Work<'_>) -> Outcome {
    match LAUNCHERS.first().filter(|_| !is_plan) {
        Some(launcher) => (launcher.together)(work),
        None => work(None),
    }
}
