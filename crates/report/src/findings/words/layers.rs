//! Where the time of requests goes, in words.

use iolab_analysis::analysis::{Analysis, Timed};
use iolab_analysis::claim::{Largest, TimeByLayer};
use iolab_workload::quantity::{counted, format_ns, format_percent};
use iolab_workload::stages::{Journal, Stage, SyncCounts};

use super::at_cell;

/// What takes the time of requests, or of syncs, and of the slowest ones.
pub(super) fn of_time(time: &TimeByLayer, run: &Analysis) -> String {
    let (whole, all) = match (time.timed, &time.syncs) {
        (Timed::Requests, None) => ("service time", "requests"),
        (Timed::Requests, Some(_)) => ("service time without syncs", "requests"),
        (Timed::Syncs, _) => ("time of a sync", "syncs"),
    };
    let tail = time.tail.as_ref().map_or_else(String::new, |tail| {
        format!(
            " Of the slowest 1 % of the {all}, {} of the time is spent {}.",
            share(tail),
            what(tail.stage)
        )
    });
    let journal = match (time.timed, time.syncs) {
        (Timed::Syncs, Some((counts, journal))) => journal_of(counts, journal),
        (Timed::Syncs, None) | (Timed::Requests, _) => String::new(),
    };
    format!(
        "{} of the mean {whole} ({}){} is spent {}.{tail}{journal}",
        share(&time.mean),
        format_ns(time.mean_ns),
        at_cell(run, time.cell),
        what(time.mean.stage),
    )
}

/// What the journal has to do with syncs.
fn journal_of(counts: SyncCounts, journal: Journal) -> String {
    match journal {
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

/// What a request does in a stage.
fn what(stage: Stage) -> &'static str {
    match stage {
        Stage::Admission => {
            "before the block layer has the request (file system, I/O limits, waiting for a free tag)"
        }
        Stage::Queue => "in the scheduler's queue",
        Stage::Device => "in the device",
        Stage::Delivery => "after the device was done",
        Stage::Completion => "between the end of the device's work and the wake-up of the thread",
        Stage::CpuWait => "waiting for a CPU after the device was done",
        Stage::Reaping => "in the thread after the device was done",
        Stage::SyncAdmission => "before the file system has the sync",
        Stage::SyncHost => {
            "in the kernel while neither the journal nor the device is at work for it"
        }
        Stage::SyncWrite => "in writes of the device for the sync (other than the journal's)",
        Stage::SyncJournal => "in the journal",
        Stage::SyncFlush => "in flushes of the device's cache",
        Stage::SyncDelivery => {
            "between the end of the last flush, commit or write and the return to the thread"
        }
    }
}
