//! Trace events of the kernel, as data.
//!
//! Recorded events, and the filter that restricts each to a trial.

use super::THREAD_NAMES;
use iolab_workload::table;

/// MAJOR and MINOR of a disk.
pub type DiskNumber = (u32, u32);

/// Bits of MINOR in a device number of the kernel.
const MINOR_BITS: u32 = 20;

/// A trace event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time of the event, a stamp of the trial's clock.
    pub at: u64,
    /// Kind of event, with its details.
    pub kind: TraceEventKind,
}

/// Kind of a trace event, with its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEventKind {
    /// A disk request reached a step on its way.
    Block {
        /// Step that the request reached.
        step: Step,
        /// Kernel's number of the disk.
        disk: u32,
        /// First sector.
        first: u64,
        /// Sectors; 0 for a flush.
        count: u32,
        /// Kind of transfer.
        transfer: Transfer,
        /// Whether the data is metadata of a file system.
        metadata: bool,
        /// Thread that ran at that moment; at the start of a request, its submitter.
        thread: u32,
    },
    /// A thread began.
    Began {
        /// Thread that began.
        thread: u32,
        /// Thread that created it.
        by: u32,
    },
    /// A file system began or ended a sync of a file.
    Sync {
        /// Beginning or end of the sync.
        edge: Edge,
        /// Kernel's number of the file system's device.
        file_system: u32,
        /// Inode of the file.
        inode: u64,
        /// Thread that carries the sync out.
        thread: u32,
    },
    /// A thread entered fsync or fdatasync, or returned from it.
    SyncCall {
        /// Beginning or end of the call.
        edge: Edge,
        /// Thread of the call.
        thread: u32,
    },
    /// A journal began or finished the commit of a transaction.
    Commit {
        /// Beginning or end of the commit.
        edge: Edge,
        /// Kernel's number of the file system's device.
        file_system: u32,
    },
    /// The scheduler changed the state of a thread.
    Scheduled(u32, ThreadMoment),
}

/// Change of a thread's state by the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadMoment {
    /// Ready to run.
    Woken,
    /// Running on a CPU.
    Runs,
}

/// Steps of a request through the block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Creation of the request.
    Start,
    /// Issue to the device.
    Issue,
    /// Completion by the device.
    Complete,
    /// Start of a bio on a device without request queue.
    BioQueue,
    /// Completion of a bio on a device without request queue.
    BioComplete,
}

/// Kind of transfer of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// No data: a flush of the device's cache.
    Flush,
    /// Anything else.
    Other,
}

/// Beginning or end of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The beginning.
    Begin,
    /// The end.
    End,
}

/// Kernel's number of a device.
pub fn kernel_number((major, minor): DiskNumber) -> u32 {
    major << MINOR_BITS | minor
}

/// Filter that lets every event through.
pub(super) const NO_FILTER: &str = "0";

/// A recorded event: its folder below `events`, and its kind.
pub(super) type Source = (&'static str, SourceKind);

/// Kind of recorded event.
#[derive(Debug, Clone, Copy)]
pub(super) enum SourceKind {
    Block(Step),
    Wakeup,
    Switch,
    Began,
    Sync(Edge),
    SyncCall(Edge),
    Commit(Edge),
}

/// Choice of traced threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TracedThreads {
    /// Trial threads: when they are woken and run.
    #[default]
    OfTrials,
    /// All threads of the machine: when each begins, and which thread created it.
    All,
}

/// Places and threads to trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedPlaces {
    /// Disks, each with whether it has a request queue.
    pub disks: Vec<(DiskNumber, bool)>,
    /// Devices of file systems with traced syncs.
    pub file_systems: Vec<DiskNumber>,
    /// Choice of traced threads.
    pub threads: TracedThreads,
    /// Whether fsync and fdatasync calls of all threads are traced, which makes every system call slightly
    /// slower.
    pub sync_calls: bool,
}

/// Events needed to trace the requests of a disk.
pub(super) const BLOCK_SOURCES: [Source; 5] = table! {
    ("block/block_io_start", SourceKind::Block(Step::Start));
    ("block/block_rq_issue", SourceKind::Block(Step::Issue));
    ("block/block_rq_complete", SourceKind::Block(Step::Complete));
    ("block/block_bio_queue", SourceKind::Block(Step::BioQueue));
    ("block/block_bio_complete", SourceKind::Block(Step::BioComplete));
};

/// Event needed to know the threads of an observed program.
pub(super) const BEGAN_SOURCE: Source = ("task/task_newtask", SourceKind::Began);

/// Events needed in every traced trial.
pub(super) const THREAD_SOURCES: [Source; 2] = table! {
    ("sched/sched_wakeup", SourceKind::Wakeup);
    ("sched/sched_switch", SourceKind::Switch);
};

/// Events that delimit syncs, where the kernel has them: file systems built as modules have events once they
/// are loaded.
pub(super) const SYNC_SOURCES: [Source; 6] = table! {
    ("ext4/ext4_sync_file_enter", SourceKind::Sync(Edge::Begin));
    ("ext4/ext4_sync_file_exit", SourceKind::Sync(Edge::End));
    ("xfs/xfs_file_fsync", SourceKind::Sync(Edge::Begin));
    ("xfs/xfs_dir_fsync", SourceKind::Sync(Edge::Begin));
    ("jbd2/jbd2_start_commit", SourceKind::Commit(Edge::Begin));
    ("jbd2/jbd2_end_commit", SourceKind::Commit(Edge::End));
};

/// Events that delimit sync calls, where the kernel has them: not every file system reports the end of a sync.
pub(super) const SYNC_CALL_SOURCES: [Source; 6] = table! {
    ("syscalls/sys_enter_fsync", SourceKind::SyncCall(Edge::Begin));
    ("syscalls/sys_exit_fsync", SourceKind::SyncCall(Edge::End));
    ("syscalls/sys_enter_fdatasync", SourceKind::SyncCall(Edge::Begin));
    ("syscalls/sys_exit_fdatasync", SourceKind::SyncCall(Edge::End));
    ("syscalls/sys_enter_msync", SourceKind::SyncCall(Edge::Begin));
    ("syscalls/sys_exit_msync", SourceKind::SyncCall(Edge::End));
};

impl SourceKind {
    /// Filter for some places and the threads of trials; `None` where none of the places has such events.
    pub(super) fn filter(self, places: &TracedPlaces) -> Option<String> {
        let of_any = |devices: &mut dyn Iterator<Item = DiskNumber>| {
            let terms: Vec<String> = devices
                .map(|device| format!("dev == {}", kernel_number(device)))
                .collect();
            (!terms.is_empty()).then(|| terms.join(" || "))
        };
        let of_trials = match places.threads {
            TracedThreads::OfTrials => true,
            TracedThreads::All => false,
        };
        match self {
            SourceKind::Block(step) => {
                // Events of bios show the requests of disks without a queue.
                let is_of_bios = matches!(step, Step::BioQueue | Step::BioComplete);
                let disks = places.disks.iter();
                let own = disks.filter(|(_, has_requests)| *has_requests != is_of_bios);
                of_any(&mut own.map(|(disk, _)| *disk))
            }
            SourceKind::Sync(_) | SourceKind::Commit(_) => {
                of_any(&mut places.file_systems.iter().copied())
            }
            SourceKind::SyncCall(_) => places.sync_calls.then(|| NO_FILTER.to_owned()),
            SourceKind::Wakeup => of_trials.then(|| format!("comm ~ \"{THREAD_NAMES}*\"")),
            // The moment at which a thread leaves its CPU is not needed: it runs again, or is woken first.
            SourceKind::Switch => of_trials.then(|| format!("next_comm ~ \"{THREAD_NAMES}*\"")),
            SourceKind::Began => (!of_trials).then(|| NO_FILTER.to_owned()),
        }
    }
}
