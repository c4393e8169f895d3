//! Trace events of the kernel, as data.

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
    /// A thread became ready to run.
    Woken(u32),
    /// A thread got a CPU.
    Runs(u32),
}

/// Change of a thread's state by the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadMoment {
    /// Ready to run.
    Woken,
    /// Running on a CPU.
    Runs,
}

impl TraceEventKind {
    /// Thread and state of a scheduler event; `None` for other events.
    pub(super) fn scheduled(&self) -> Option<(u32, ThreadMoment)> {
        match *self {
            Self::Woken(thread) => Some((thread, ThreadMoment::Woken)),
            Self::Runs(thread) => Some((thread, ThreadMoment::Runs)),
            Self::Block { .. }
            | Self::Began { .. }
            | Self::Sync { .. }
            | Self::SyncCall { .. }
            | Self::Commit { .. } => None,
        }
    }
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
