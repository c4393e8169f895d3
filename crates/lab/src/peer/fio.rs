//! fio: what to call it with, and what it says. Its HOWTO explains every option and every number.

mod command;
pub mod job;
pub(crate) mod options;
pub mod report;

use iolab_engine::outcome::Outcome;
use iolab_engine::{Error, Result};

pub(super) use command::arguments;
use report::{Direction, Report};

/// The first version that has every option that is used: `sync=dsync`.
pub(super) const OLDEST: (u32, u32) = (3, 20);

/// Takes over what fio says of its one group of jobs.
///
/// # Errors
/// Of kind usage: what of its report is of no use.
pub(super) fn take_over(text: &str, outcome: &mut Outcome) -> Result<()> {
    let report = Report::parse(text)?;
    let [job] = report.jobs.as_slice() else {
        return Err(Error::usage(format!(
            "it tells of {} groups of jobs, where one was started",
            report.jobs.len()
        )));
    };
    if job.error != 0 {
        return Err(Error::usage(format!("it tells of error {}", job.error)));
    }
    if job.elapsed_ns() == 0 {
        return Err(Error::usage(
            "it ended within a millisecond, which is fio's unit of time: give the trial more bytes or time",
        ));
    }
    for (direction, tally) in [
        (&job.read, &mut outcome.reads),
        (&job.write, &mut outcome.writes),
    ] {
        tally.requests = direction.total_ios;
        tally.bytes = direction.io_bytes;
        tally.short_transfers = direction.short_ios;
        tally.latency = Direction::times(direction).histogram();
    }
    outcome.syncs = job.sync.total_ios;
    outcome.elapsed_ns = job.elapsed_ns();
    // The workers' own, as iolab's: without the start of the program.
    outcome.counters.usage.user_ns = job.cpu_ns(job.usr_cpu);
    outcome.counters.usage.system_ns = job.cpu_ns(job.sys_cpu);
    Ok(())
}
