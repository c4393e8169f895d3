//! Requests that were asked to be served at once, and were not, in words.

use iolab_analysis::analysis::{Analysis, FasterCell, Shortfall};
use iolab_analysis::claim::{Cause, QueueLimit, Queued, TooFew};
use iolab_workload::quantity::{counted, significant};
use iolab_workload::trial::CountedBound;

use super::{at_cell, in_cell, times_of};
use crate::findings::within;

/// Fewer requests at once than asked for, and why.
pub(super) fn of_too_few(few: &TooFew, run: &Analysis) -> String {
    let place = match few.shortfall {
        Shortfall::Issued => "in flight",
        Shortfall::ReachedDevice => "at the device",
    };
    format!(
        "Concurrency was lower than requested in {}; lowest{}: {} of {} requests {place}. {}",
        within(few.cells.len(), run),
        at_cell(run, few.worst),
        significant(few.seen),
        few.asked,
        cause(&few.cause),
    )
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Region { requests } => format!(
            "The region holds {} of this size: a larger region (--size) or fewer threads times depth.",
            counted(*requests, "request")
        ),
        Cause::FewRequests { by, requests } => format!(
            "A trial has only {}: increase {}, or use fewer threads times depth.",
            counted(*requests, "request"),
            setting(Some(*by))
        ),
        Cause::Late { by } => format!(
            "The threads did not issue them in time, or the trials had too few requests: increase {}.",
            setting(*by)
        ),
        Cause::Shared(FasterCell { factor, level, iops }) => {
            let what = match *factor {
                "layout" => "a lock of the file that they share",
                "descriptors" => "the descriptor that they share, with its one position",
                _ => "the seek before each transfer",
            };
            format!(
                "The threads wait for {what}: with {factor}={level} the same threads reach {} IOPS.",
                significant(*iops)
            )
        }
        Cause::Position => "lseek and read on one descriptor need a lock around both, since all threads share its position: use pread (backend=psync), or a descriptor per thread.".to_owned(),
        Cause::Cpus => "The CPUs were the limit: more threads cannot help there.".to_owned(),
        Cause::OthersOnCpus => "Others used the CPUs at the same time, which may be the cause.".to_owned(),
        Cause::Limit(limit) => format!(
            "An I/O limit of the control group held them back ({}).",
            limit.what.format(limit.per_second)
        ),
        Cause::Queue { requests } => format!(
            "The queue of the device holds {} requests at most (nr_requests), and was full.",
            significant(*requests)
        ),
        Cause::Durable => "Each write waits until it is durable; file systems and devices do that one write at a time.".to_owned(),
        Cause::Unknown => "They waited before they reached the device; 'iolab run why-serialised' isolates the cause.".to_owned(),
    }
}

/// The setting that makes trials longer which this ended, as a user gives it.
fn setting(by: Option<CountedBound>) -> &'static str {
    match by {
        None => "--time",
        Some(CountedBound::Bytes) => "--set bytes",
        Some(CountedBound::Region) => "the region (--size)",
    }
}

/// What the requests in flight gained.
pub(super) fn of_queued(queued: &Queued, run: &Analysis) -> String {
    format!(
        "{} requests in flight give {} the IOPS of one ({}){}.",
        queued.asked,
        times_of(&queued.gain),
        in_cell(run, queued.cell),
        match queued.limit {
            QueueLimit::Unknown => "",
            QueueLimit::Cpus => ": the CPUs or iolab may be the limit",
            QueueLimit::OneByOne =>
                ": the storage serves them one after the other, or is at its limit",
            QueueLimit::Storage => ": the storage is at its limit",
        },
    )
}
