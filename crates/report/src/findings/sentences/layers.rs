//! Stages of requests and syncs in words.

use iolab_workload::stages::{CarriedBy, Stage};

/// Activity of a request in a stage, by the layer that carries it out.
pub(super) fn what(stage: Stage, carried_by: CarriedBy) -> String {
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
