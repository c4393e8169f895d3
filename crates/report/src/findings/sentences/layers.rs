//! Time of requests by layer, and requests that were not served at once as asked, in words.

use super::with_cell;
use iolab_analysis::analysis::{Analysis, FasterCell, Timed};
use iolab_analysis::claim::{Cause, JournalledSyncs, Largest, TimeByLayer};
use iolab_workload::stages::{CarriedBy, Journal, Stage};
use iolab_workload::trial::CountedBound;
use iolab_workload::units::{counted, format_ns, format_percent, significant};

/// Stages that take most of the time of requests, or of syncs, and of the slowest ones.
pub(super) fn of_time(time: &TimeByLayer, run: &Analysis) -> String {
    let (whole, all) = match (time.timed, &time.syncs) {
        (Timed::Requests, None) => ("service time", "requests"),
        (Timed::Requests, Some(_)) => ("service time without syncs", "requests"),
        (Timed::Syncs, _) => ("time of a sync", "syncs"),
    };
    let tail = time.tail.as_ref().map_or_else(String::new, |tail| {
        format!(
            " In the slowest 1 % of the {all}, {} of the time is spent {}.",
            share(tail),
            what(tail.stage, time.carried_by)
        )
    });
    let journal = match (time.timed, time.syncs) {
        (Timed::Syncs, Some(syncs)) => journal_of(syncs),
        (Timed::Syncs, None) | (Timed::Requests, _) => String::new(),
    };
    format!(
        "{} of the mean {whole} ({}){} is spent {}.{tail}{journal}",
        share(&time.mean),
        format_ns(time.mean_ns),
        with_cell(run, time.cell),
        what(time.mean.stage, time.carried_by),
    )
}

/// Role of the journal in syncs.
fn journal_of(counts: JournalledSyncs) -> String {
    match counts.journal {
        Journal::Absent => " There is no journal.".to_owned(),
        Journal::Commits => format!(
            " {} waited for {}; of these, {} served several syncs at once.",
            counted(counts.syncs, "sync"),
            counted(counts.commits, "journal commit"),
            counts.shared_commits
        ),
        Journal::MetadataWrites => String::new(),
    }
}

/// `94 % (92 % to 95 %)`.
fn share(largest: &Largest) -> String {
    format!(
        "{} ({} to {})",
        format_percent(largest.share),
        format_percent(largest.interval.0),
        format_percent(largest.interval.1)
    )
}

/// Activity of a request in a stage, by the layer that carries it out.
fn what(stage: Stage, carried_by: CarriedBy) -> String {
    let carrier = match carried_by {
        CarriedBy::Disk => "the device",
        CarriedBy::Layers => {
            "the layers of the target (device mapper, md) and the disks below them"
        }
        CarriedBy::Both => "the device or the layers of the target",
    };
    match stage {
        Stage::Admission => "before the block layer has the request (file system, I/O limits, waiting for a free tag)".to_owned(),
        Stage::Queue => "in the scheduler's queue".to_owned(),
        Stage::Device => format!("in {carrier}"),
        Stage::Delivery => format!("after the work of {carrier}"),
        Stage::Completion => format!("between the work of {carrier} and the wake-up of the thread"),
        Stage::CpuWait => format!("waiting for a CPU after the work of {carrier}"),
        Stage::Reaping => format!("in the thread after the work of {carrier}"),
        Stage::SyncAdmission => "before the file system has the sync".to_owned(),
        Stage::SyncHost => "in the kernel while neither the journal nor the device is at work for it".to_owned(),
        Stage::SyncWrite => "in writes of the device for the sync (other than the journal's)".to_owned(),
        Stage::SyncJournal => "in the journal".to_owned(),
        Stage::SyncFlush => "in cache flushes".to_owned(),
        Stage::SyncDelivery => "between the end of the last flush, commit or write and the return to the thread".to_owned(),
    }
}

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
