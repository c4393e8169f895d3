//! Where the time of requests goes, in words.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Largest, TimeByLayer};
use iolab_workload::quantity::{format_ns, format_percent};
use iolab_workload::stages::Stage;

use super::at_cell;

/// What takes the time of requests, and of the slowest ones.
pub(super) fn of_time(time: &TimeByLayer, run: &Analysis) -> String {
    let tail = time.tail.as_ref().map_or_else(String::new, |tail| {
        format!(
            " Of the slowest 1 % of the requests, {} of the time is spent {}.",
            share(tail),
            what(tail.stage)
        )
    });
    format!(
        "{} of the mean service time ({}){} is spent {}.{tail}",
        share(&time.mean),
        format_ns(time.mean_ns),
        at_cell(run, time.cell),
        what(time.mean.stage),
    )
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
    }
}
