//! A request of a trial, the way that it goes, and the moments at which it passed from stage to stage.

use iolab_storage::sectors::Sectors;

/// A request of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRequest {
    /// When it was issued, and when its completion was seen: stamps.
    pub start: u64,
    /// The later one.
    pub end: u64,
    /// Whether it writes.
    pub writes: bool,
    /// The thread that issued it and that waited for it.
    pub thread: u32,
    /// Which way it goes.
    pub way: Way,
}

/// What has requests in hand, and within which their places are numbered. Numbers of devices are the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A disk, with its sectors.
    Disk(u32),
    /// A file of a file server (NFS), with its bytes.
    ServedFile {
        /// The device of the mount.
        mount: u32,
        /// The file.
        inode: u64,
    },
    /// A thread that asked the server of a file system in user space, without places.
    Thread(u32),
}

/// The way of a request out of the kernel. Numbers of devices are the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// To sectors of a disk.
    Disk {
        /// The disk.
        disk: u32,
        /// What the request covers.
        sectors: Vec<Sectors>,
    },
    /// To a file server (NFS).
    FileServer {
        /// The device of the mount.
        mount: u32,
        /// The file.
        inode: u64,
        /// What the request covers: its bytes, numbered as sectors are.
        bytes: Sectors,
    },
    /// To a file system in user space.
    Fuse {
        /// Its device.
        connection: u32,
        /// Bytes of the request.
        bytes: u32,
        /// How many its thread had issued before it.
        order: u32,
    },
}

impl TracedRequest {
    /// What has it in hand, if that numbers places, and what it covers there.
    pub(super) fn placed(&self) -> (Owner, &[Sectors]) {
        match &self.way {
            Way::Disk { disk, sectors } => (Owner::Disk(*disk), sectors),
            Way::FileServer {
                mount,
                inode,
                bytes,
            } => {
                let owner = Owner::ServedFile {
                    mount: *mount,
                    inode: *inode,
                };
                (owner, std::slice::from_ref(bytes))
            }
            Way::Fuse { .. } => (Owner::Thread(self.thread), &[]),
        }
    }
}

/// The moments at which a request passed from one stage to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passage {
    /// It came into being.
    pub(super) start: u64,
    /// It was given to the device.
    pub(super) issue: u64,
    /// The device had carried it out.
    pub(super) complete: u64,
}
