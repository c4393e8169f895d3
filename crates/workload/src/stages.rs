//! The stages of a request: which layer has it when, and how long.

use crate::counters::{Number, counter_set, known};
use crate::names::named;
use crate::operation::values_by;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

values_by! {
    /// A part of the time that a request takes.
    pub enum Stage: "stage"
    /// A value for each stage.
    pub struct PerStage
    /// From the engine's stamp to the start of the request in the block layer: file system, limits of control groups,
    /// throttled writeback, waiting for a tag.
    [default] Admission = "admission" in admission,
    /// From the start in the block layer to the last issue to the device: the scheduler's queue.
    Queue = "queue" in queue,
    /// From the last issue to the device to the device's completion.
    Device = "device" in device,
    /// From the device's completion to the engine's stamp.
    Delivery = "delivery" in delivery,
    /// First part of delivery: until the thread is woken, by the interrupt and its handler.
    Completion = "completion" in completion,
    /// Second part of delivery: from the wake-up until the thread runs.
    CpuWait = "cpu-wait" in cpu_wait,
    /// Third part of delivery: from the moment the thread runs to the engine's stamp.
    Reaping = "reaping" in reaping,
    /// First part of a sync: from the engine's stamp until the file system has it.
    SyncAdmission = "sync-admission" in sync_admission,
    /// Part of a sync in which neither journal, flush nor writes are in progress.
    SyncHost = "sync-host" in sync_host,
    /// Part of a sync in which the device carries out writes that belong neither to a journal nor to a request of the
    /// trial.
    SyncWrite = "sync-write" in sync_write,
    /// Part of a sync in which the journal is written.
    SyncJournal = "sync-journal" in sync_journal,
    /// Part of a sync in which the device flushes its cache.
    SyncFlush = "sync-flush" in sync_flush,
    /// Last part of a sync: from the end of all this work to the engine's stamp.
    SyncDelivery = "sync-delivery" in sync_delivery,
}

impl Stage {
    /// The stages whose times add up to the time of a request.
    pub const WHOLE: [Self; 4] = [Self::Admission, Self::Queue, Self::Device, Self::Delivery];
    /// The stages that a request passes one after the other: delivery in its parts.
    pub const PASSED: [Self; 6] = [
        Self::Admission,
        Self::Queue,
        Self::Device,
        Self::Completion,
        Self::CpuWait,
        Self::Reaping,
    ];
    /// The stages whose times add up to the time of a sync.
    pub const SYNC: [Self; 6] = [
        Self::SyncAdmission,
        Self::SyncHost,
        Self::SyncWrite,
        Self::SyncJournal,
        Self::SyncFlush,
        Self::SyncDelivery,
    ];

    /// Whether it is a part of a sync, and not of a request.
    pub fn is_of_sync(self) -> bool {
        Self::SYNC.contains(&self)
    }

    /// The stages that add up to the time of which this one is a part.
    pub fn whole(self) -> &'static [Self] {
        match self.is_of_sync() {
            true => &Self::SYNC,
            false => &Self::WHOLE,
        }
    }
}

named! {
    /// Visibility of a file system's journal in the trace.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Journal: "journal" {
        /// The file system has no journal.
        #[default]
        Absent = "none",
        /// Shown by its commits.
        Commits = "commits",
        /// Shown by the device's writes of metadata.
        MetadataWrites = "metadata-writes",
    }
}

named! {
    /// The carrier of a request in [`Stage::Device`].
    #[derive(Default)]
    pub enum CarriedBy: "carrier" {
        /// A disk.
        #[default]
        Disk = "disk",
        /// A device that is stacked on others (device mapper, md, multipath), from the request that it receives to its
        /// answer, including this machine's work in these layers.
        Layers = "layers",
        /// Both, of groups.
        Both = "both",
    }
}

/// Counts of the trace of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceCounts {
    /// Requests all of whose events were found.
    pub joined: u64,
    /// Requests with missing events.
    pub unjoined: u64,
    /// Joined requests that reached the device in several pieces.
    pub split: u64,
    /// Requests to devices that carried the requests of the trial.
    pub carried: u64,
    /// Requests of other programs, or of the file system itself, to the same devices.
    pub others: u64,
    /// Flushes of the devices' caches, whoever caused them.
    pub flushes: u64,
    /// Requests of the devices that transfer nothing and wait for a flush.
    pub flush_waits: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Counts of syncs.
    pub syncs: SyncCounts,
}

counter_set! {
    /// Counts of the traced syncs of a trial.
    pub struct SyncCounts: known {
        /// Syncs.
        pub syncs: u64,
        /// Journal commits that were the last to end within a sync, which waited for them.
        pub commits: u64,
        /// Commits among them that several syncs waited for.
        pub shared_commits: u64,
        /// Flushes that were completed within a sync.
        pub flushes: u64,
        /// Flushes among them that were completed within several syncs.
        pub shared_flushes: u64,
    }
}

impl TraceCounts {
    /// Greatest share of unjoined requests at which the joined ones still represent all.
    pub const UNJOINED_MAX: f64 = 0.001;

    /// The share of requests that miss events; 0 without requests.
    pub fn unjoined_share(&self) -> f64 {
        self.unjoined as f64 / (self.joined + self.unjoined).max(1) as f64
    }
}

/// Result of tracing a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceSummary {
    /// Counts of the trace.
    pub counts: TraceCounts,
    /// Why there are no stages, or not all, or not of all requests; empty if there are.
    pub note: String,
    /// The carrier of the requests.
    pub carried_by: CarriedBy,
    /// Visibility of the journal, if syncs were traced.
    pub journal: Option<Journal>,
    /// The stages of the joined requests, and of syncs; `None` for unknown ones, as all are if the joined requests do not represent all.
    pub stages: PerStage<Option<StageSummary>>,
}

/// A stage in a few numbers, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageSummary {
    /// Mean time of the stage, ns.
    pub mean_ns: f64,
    /// Median time of the stage, ns.
    pub p50_ns: u64,
    /// 99th percentile of the time of the stage, ns.
    pub p99_ns: u64,
    /// Its mean over the slowest requests: the requests that took at least the 99th percentile.
    pub tail_mean_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_is_a_part_of_one_whole() {
        for stage in Stage::ALL {
            let lists = [&Stage::PASSED, &Stage::SYNC];
            let found = lists.iter().filter(|list| list.contains(stage)).count();
            assert_eq!(found, usize::from(*stage != Stage::Delivery), "{stage}");
            assert_eq!(stage.whole() == Stage::SYNC, stage.is_of_sync());
        }
    }
}
