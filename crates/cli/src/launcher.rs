//! The launcher that may have started this process: mpirun, srun.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
#[cfg(feature = "mpi")]
use std::time::Duration;

use iolab_cluster::launch::Launch;
#[cfg(feature = "mpi")]
use iolab_cluster::mpi::Wait;
use iolab_runner::ranks::{Ranks, per_rank_paths};
use iolab_workload::{Error, Result};

use crate::arguments::Command;
use crate::exit::{self, Failure, Outcome};

/// How long MPI may take to start: thousands of processes begin at different times, and read the program from shared storage.
#[cfg(feature = "mpi")]
const START: Duration = Duration::from_secs(300);
/// How long rank 0, the last to end, waits for the end of the others.
#[cfg(feature = "mpi")]
const END: Duration = Duration::from_secs(60);
/// How long the others wait for that of rank 0, which reports, perhaps to a pager.
#[cfg(feature = "mpi")]
const REPORT: Duration = Duration::from_secs(2 * 3600);

/// The launch of which this process is one of several.
fn launch() -> Option<Launch> {
    Launch::of(|name| std::env::var(name).ok())
}

/// Whether another process of the same start tells the user what concerns all of them.
pub(crate) fn is_silent() -> bool {
    launch().is_some_and(|launch| launch.is_silent())
}

/// Whether a launcher (mpirun, srun) started this process; also true for a single process.
fn is_launched() -> bool {
    Launch::is_there(|name| std::env::var(name).ok())
}

/// The path that a process uses for a target of this name, where there is no other one.
///
/// # Errors
/// Of kind usage: it is one for several processes, or not UTF-8.
pub(crate) fn place(named: &Path) -> Result<PathBuf> {
    match cfg!(feature = "mpi") && is_launched() {
        true => per_rank_paths::of_one(named),
        false => per_rank_paths::alone(named),
    }
}

/// Refuses to measure as one of several processes, which would be unrelated runs on one target.
fn check_alone() -> Outcome {
    match launch() {
        None => Ok(()),
        Some(launch) if launch.is_silent() => Err(Failure::ToldElsewhere),
        Some(launch) => Err(launch.refusal(cfg!(feature = "mpi")).into()),
    }
}

/// This process among the others, where it is one of several that carry out one run.
///
/// # Errors
/// When there are several, and they cannot work together.
pub(crate) fn join(command: &Command) -> Outcome<Option<Rc<Ranks>>> {
    if !command.measures() {
        return Ok(None);
    }
    #[cfg(feature = "mpi")]
    if command.spans_ranks() {
        return over_mpi();
    }
    check_alone()?;
    Ok(None)
}

/// This process among the others, where a launcher started it.
#[cfg(feature = "mpi")]
fn over_mpi() -> Outcome<Option<Rc<Ranks>>> {
    use iolab_cluster::link::Link;
    use iolab_cluster::mpi::{Mpi, MpiTimeouts};
    use iolab_host::clock::Clock;

    if !is_launched() {
        return Ok(None);
    }
    let clock = Clock::calibrate();
    let own = clock.clone();
    // The first process that speaks has the launcher end all, before the next one would.
    let rank = launch().and_then(|launch| launch.rank).unwrap_or(0);
    let turn = Duration::from_secs(rank.min(8).into());
    let clock_ns = move || own.ns_between(0, own.now()) as i64;
    let limits = MpiTimeouts {
        start: START + turn,
        end: turn + if rank == 0 { END } else { REPORT },
    };
    let link = Mpi::join(clock_ns, limits, tell_late);
    let link = link.ok_or_else(|| Error::failed("MPI was started before"))?;
    if link.size() < 2 {
        // One rank does what one process does.
        return match launch() {
            None => Ok(None),
            Some(launch) if launch.is_silent() => Err(Failure::ToldElsewhere),
            Some(launch) => Err(launch.unconnected().into()),
        };
    }
    let ranks = Ranks::new(Box::new(link), clock, iolab_runner::describe_failure);
    Ok(Some(Rc::new(ranks)))
}

/// Says what MPI waits for without end, before all processes are ended.
#[cfg(feature = "mpi")]
fn tell_late(wait: Wait) {
    let error = match wait {
        Wait::Start => Error::failed(format!(
            "MPI has not started after {} min: a process hangs, or was not started on its host",
            START.as_secs() / 60
        ))
        .hint("look at the processes on all hosts; nothing was measured, and no file was made"),
        Wait::End => Error::failed("a process of this run has not ended")
            .hint("look at the processes on all hosts; all measurements are stored"),
    };
    let _ = exit::code_of(Err(error.into()));
}

/// Carries out the orders of rank 0. Rank 0 reports failures, unless it is rank 0 that is lost.
pub(crate) fn follow(ranks: &Ranks) -> Outcome {
    let stop = crate::stop::on_signals()?;
    match ranks.follow(&stop) {
        Ok(()) => Err(Failure::ToldElsewhere),
        Err(error) => give_way(ranks, error),
    }
}

/// Leaves it to rank 0 to tell what is wrong, unless that is the rank that is lost.
pub(crate) fn give_way(ranks: &Ranks, error: Error) -> Outcome {
    if !ranks.has_lost() {
        return Err(Failure::ToldElsewhere);
    }
    // Rank 0 ends all, once it has told the reason.
    std::thread::sleep(ranks.timeout());
    Err(error.into())
}

/// Lets go of the other ranks, after the last words, which `code` belongs to; what goes wrong then is told too. Where a rank is
/// lost, all are ended.
pub(crate) fn leave(ranks: &Ranks, code: ExitCode) -> ExitCode {
    let left = ranks.end().map_err(Failure::from);
    let code = match left {
        Ok(()) => code,
        Err(failure) => exit::code_of(Err(failure)),
    };
    if ranks.has_lost() {
        ranks.abort(1);
    }
    code
}
