//! Requests that were asked to be served at once, and were not, in words.

use iolab_analysis::analysis::FasterCell;
use iolab_analysis::claim::Cause;
use iolab_workload::trial::CountedBound;
use iolab_workload::units::{counted, significant};

/// Why requests were missing, and what helps.
pub(super) fn cause(cause: &Cause) -> String {
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
        Cause::OthersOnCpus => "Other programs used the CPUs at the same time, which may be the cause.".to_owned(),
        Cause::Limit(limit) => format!(
            "An I/O limit of the control group held them back ({}).",
            limit.what.format(limit.per_second)
        ),
        Cause::Queue { requests } => format!(
            "The queue of the device holds {} requests at most (nr_requests), and was full.",
            significant(*requests)
        ),
        Cause::Durable => "Each write waits until it is durable; file systems and devices do that one write at a time.".to_owned(),
        Cause::Unknown => "The requests waited before they reached the device; 'iolab run why-serialised' isolates the cause.".to_owned(),
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
