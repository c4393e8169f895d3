//! The kernel's trace events, as data.

/// MAJOR and MINOR of a disk.
pub type DiskNumber = (u32, u32);

/// Bits of MINOR in a device number of the kernel.
const MINOR_BITS: u32 = 20;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, a stamp of the clock of the trial.
    pub at: u64,
    /// What happened.
    pub kind: TraceEventKind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEventKind {
    /// A request of a disk came to a step on its way.
    Block {
        /// To which one.
        step: Step,
        /// The disk, as the kernel numbers it.
        disk: u32,
        /// First sector.
        first: u64,
        /// Sectors; 0 of a flush.
        count: u32,
        /// What it transfers.
        transfer: Transfer,
        /// Whether that is metadata of a file system.
        metadata: bool,
        /// The thread that ran then: of its start the one that sent it.
        thread: u32,
    },
    /// A thread began.
    Began {
        /// It.
        thread: u32,
        /// The one that made it.
        by: u32,
    },
    /// A file system was asked for a sync of a file, or had carried it out.
    Sync {
        /// Which of both.
        edge: Edge,
        /// Its device, as the kernel numbers it.
        file_system: u32,
        /// The file.
        inode: u64,
        /// The thread that carries it out.
        thread: u32,
    },
    /// A thread began a call of fsync or fdatasync, or had its answer.
    SyncCall {
        /// Which of both.
        edge: Edge,
        /// It.
        thread: u32,
    },
    /// A journal began to commit a transaction, or had committed it.
    Commit {
        /// Which of both.
        edge: Edge,
        /// The device of its file system, as the kernel numbers it.
        file_system: u32,
    },
    /// A thread was made ready to run.
    Woken(u32),
    /// A thread got a CPU.
    Runs(u32),
    /// A request to a file server began to be sent, or was answered.
    FileServer {
        /// Which of both.
        edge: Edge,
        /// The device of the mount, as the kernel numbers it.
        mount: u32,
        /// The file.
        inode: u64,
        /// The first byte of it.
        first: u64,
        /// Bytes: of the answer those that were transferred; 0 of a flush (COMMIT).
        count: u32,
        /// What it transfers.
        transfer: Transfer,
    },
    /// A file system that writes each block to a new place has chosen one (btrfs).
    Moved {
        /// The file system and the subvolume, as `fstatfs` names them.
        file_system: u64,
        /// The file.
        inode: u64,
        /// The first byte of it.
        offset: u64,
        /// Bytes.
        bytes: u64,
        /// Where the first one will be, as the file system numbers places; `None` of data that is compressed.
        place: Option<u64>,
    },
    /// A file system in user space was sent a request.
    FuseSend {
        /// Its device, as the kernel numbers it.
        connection: u32,
        /// The number of the request.
        number: u64,
        /// What it transfers.
        transfer: Transfer,
        /// Bytes of the message.
        message: u32,
        /// The thread that sent it.
        thread: u32,
    },
    /// A file system in user space answered a request.
    FuseEnd {
        /// Its device, as the kernel numbers it.
        connection: u32,
        /// The number of the request.
        number: u64,
        /// Bytes of the message.
        message: u32,
    },
}

/// What the scheduler did with a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadMoment {
    /// It was made ready to run.
    Woken,
    /// It got a CPU.
    Runs,
}

impl TraceEventKind {
    /// The thread of an event of the scheduler, and what that is; `None` of others.
    pub(super) fn scheduled(&self) -> Option<(u32, ThreadMoment)> {
        match *self {
            Self::Woken(thread) => Some((thread, ThreadMoment::Woken)),
            Self::Runs(thread) => Some((thread, ThreadMoment::Runs)),
            Self::Block { .. }
            | Self::Began { .. }
            | Self::FileServer { .. }
            | Self::Moved { .. }
            | Self::FuseSend { .. }
            | Self::FuseEnd { .. }
            | Self::Sync { .. }
            | Self::SyncCall { .. }
            | Self::Commit { .. } => None,
        }
    }
}

/// The steps of a request through the block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It exists.
    Start,
    /// It was given to the device.
    Issue,
    /// The device has carried it out.
    Complete,
    /// A device without requests was given a bio.
    BioQueue,
    /// A device without requests has carried a bio out.
    BioComplete,
}

/// What a request transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the device.
    Read,
    /// To the device.
    Write,
    /// Nothing: a flush of its cache.
    Flush,
    /// Anything else.
    Other,
}

/// The beginning or the end of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It begins.
    Begin,
    /// It is over.
    End,
}

/// The kernel's number of a device.
pub fn kernel_number((major, minor): DiskNumber) -> u32 {
    major << MINOR_BITS | minor
}
