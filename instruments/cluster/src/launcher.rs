//! Processes started by a launcher: mpirun, srun.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;

#[cfg(feature = "mpi")]
use std::time::Duration;

use crate::this_rank::ThisRank;
use crate::this_rank::handshake::{self, Host};
use iolab_command::code_of;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::signals::on_signals;
use iolab_runner::launch::Launch;
use iolab_runner::ranks::{self, Ranks};
use iolab_workload::{Error, Result};

#[cfg(feature = "mpi")]
use crate::mpi::Wait;

/// Time limit for the start of MPI: thousands of processes start at different times, and load the program from shared storage.
#[cfg(feature = "mpi")]
const START: Duration = Duration::from_secs(300);

/// How long rank 0, the last to end, waits for the others.
#[cfg(feature = "mpi")]
const END: Duration = Duration::from_secs(60);

/// How long the others wait for rank 0, which prints the report, perhaps to a pager.
#[cfg(feature = "mpi")]
const REPORT: Duration = Duration::from_secs(2 * 3600);

/// Whether another process of the same launch prints messages for all of them.
pub fn is_silent() -> bool {
    Launch::here().is_some_and(|launch| launch.is_silent())
}

/// Whether a launcher (mpirun, srun) started this process; also true for a single process.
fn is_launched() -> bool {
    Launch::is_there(|name| std::env::var(name).ok())
}

/// The path that a process uses for a target of this name; the default of ranks with their own targets.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it is one for several processes, or not UTF-8.
pub fn place(named: &Path) -> Result<PathBuf> {
    match cfg!(feature = "mpi") && is_launched() {
        true => handshake::place(named, 0, &Host::here().name),
        false => ranks::alone(named),
    }
}

/// Refuses a command as one of several processes, which would disturb each other.
///
/// # Errors
///
/// There are several: `instead` says what they can do.
pub fn alone(name: &str, instead: &str) -> Outcome {
    check_alone(|launch| launch.one_process_only(name, instead))
}

/// Refuses to measure as one of several processes, which would be unrelated runs on one target.
fn check_alone(refusal: impl FnOnce(&Launch) -> Error) -> Outcome {
    match Launch::here() {
        None => Ok(()),
        Some(launch) if launch.is_silent() => Err(Failure::ToldElsewhere),
        Some(launch) => Err(refusal(&launch).into()),
    }
}

/// Carries out a run by all processes of a launcher; by this process alone if there are no others.
///
/// # Errors
///
/// There are several, and they cannot work together; the failure of the run.
pub fn together(work: &dyn Fn(Option<Rc<dyn Ranks>>) -> Outcome) -> Outcome {
    let Some(ranks) = join_ranks()? else {
        return work(None);
    };
    let code = code_of(
        match (ranks.greet(env!("CARGO_PKG_VERSION")), ranks.is_root()) {
            (Ok(()), true) => work(Some(Rc::clone(&ranks) as Rc<dyn Ranks>)),
            (Ok(()), false) => follow(&ranks),
            (Err(error), true) => Err(error.into()),
            (Err(error), false) => give_way(&ranks, error),
        },
    );
    Err(Failure::Code(leave(&ranks, code)))
}

/// A build without MPI has no others to work with.
#[cfg(not(feature = "mpi"))]
fn join_ranks() -> Outcome<Option<Rc<ThisRank>>> {
    check_alone(Launch::without_mpi).map(|()| None)
}

/// This process as one rank of a launcher.
#[cfg(feature = "mpi")]
fn join_ranks() -> Outcome<Option<Rc<ThisRank>>> {
    use crate::link::Link;
    use crate::mpi::{Mpi, MpiTimeouts};
    use iolab_host::clock::Clock;

    if !is_launched() {
        return Ok(None);
    }
    let clock = Clock::calibrate();
    let own = clock.clone();
    // The first process that prints an error makes the launcher end all others.
    let rank = Launch::here().and_then(|launch| launch.rank).unwrap_or(0);
    let turn = Duration::from_secs(rank.min(8).into());
    let clock_ns = move || own.ns_between(0, own.now()) as i64;
    let limits = MpiTimeouts {
        start: START + turn,
        end: turn + if rank == 0 { END } else { REPORT },
    };
    let link = Mpi::join(clock_ns, limits, tell_late);
    let link = link.ok_or_else(|| Error::failed("MPI was started before"))?;
    if link.size() < 2 {
        // One rank works like a single process.
        return check_alone(Launch::unconnected).map(|()| None);
    }
    Ok(Some(Rc::new(ThisRank::new(Box::new(link), clock))))
}

/// Reports what MPI waits for, before all processes are ended.
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
    let _ = code_of(Err(error.into()));
}

/// Carries out the orders of rank 0, which reports failures, unless it is rank 0 that is lost.
fn follow(ranks: &ThisRank) -> Outcome {
    let stop = on_signals()?;
    match ranks.follow(&stop) {
        Ok(()) => Err(Failure::ToldElsewhere),
        Err(error) => give_way(ranks, error),
    }
}

/// Leaves the report of an error to rank 0, unless that is lost.
fn give_way(ranks: &ThisRank, error: Error) -> Outcome {
    if !ranks.has_lost() {
        return Err(Failure::ToldElsewhere);
    }
    // Rank 0 ends all processes after its report.
    thread::sleep(ranks.timeout());
    Err(error.into())
}

/// Leaves the other ranks after the last message, to which `code` belongs; also reports errors of this step. Ends all ranks if
/// one is lost.
fn leave(ranks: &ThisRank, code: u8) -> u8 {
    let code = match ranks.end() {
        Ok(()) => code,
        Err(error) => code_of(Err(error.into())),
    };
    if ranks.has_lost() {
        ranks.abort(1);
    }
    code
}
