//! IOzone in throughput mode (`-T`): what to call it with, and what it says.

mod command;
pub mod report;

use iolab_engine::outcome::{Outcome, Tally};
use iolab_engine::spec::TrialSpec;
use iolab_engine::{Error, Result};

pub(super) use command::arguments;
use report::Report;

/// The first version that reads files which are not its own (`-+E`) and leaves the length of existing ones alone (`-+N`).
pub(super) const OLDEST: (u32, u32) = (3, 432);

/// Takes over what IOzone says of its one test.
///
/// # Errors
/// Of kind usage: what of its report is of no use.
pub(super) fn take_over(text: &str, spec: &TrialSpec, outcome: &mut Outcome) -> Result<()> {
    let report = Report::parse(text)?;
    let [row] = report.rows.as_slice() else {
        return Err(Error::usage(format!(
            "it tells of {} tests, where one was started",
            report.rows.len()
        )));
    };
    let done = Tally {
        requests: spec.region / spec.bs,
        bytes: spec.region,
        ..outcome.writes.clone()
    };
    let none = Tally {
        requests: 0,
        bytes: 0,
        ..outcome.writes.clone()
    };
    (outcome.reads, outcome.writes) = match row.test.writes() {
        true => (none, done),
        false => (done, none),
    };
    outcome.elapsed_ns = (spec.region as f64 * 1e9 / row.bytes_per_s) as u64;
    Ok(())
}
