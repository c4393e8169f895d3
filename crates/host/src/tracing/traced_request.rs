//! A request of a trial, its way out of the kernel, and the moments at which it passed from stage to stage.

use iolab_storage::sectors::Sectors;

/// A request of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRequest {
    /// Stamp at which the request was issued.
    pub start: u64,
    /// Stamp at which its completion was seen.
    pub end: u64,
    /// Whether the request writes.
    pub writes: bool,
    /// Thread that issued the request and waited for it.
    pub thread: u32,
    /// Way of the request out of the kernel.
    pub way: Way,
}

/// Owner of requests, within which places are numbered. Device numbers are the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A disk; places are sectors.
    Disk(u32),
    /// A file of a file server (NFS); places are bytes.
    ServedFile {
        /// Device of the mount.
        mount: u32,
        /// Inode of the file.
        inode: u64,
    },
    /// A thread that asked the server of a file system in user space; requests have no places.
    Thread(u32),
}

/// Way of a request out of the kernel. Device numbers are the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// A request to sectors of a disk.
    Disk {
        /// Number of the disk.
        disk: u32,
        /// Sectors that the request covers.
        sectors: Vec<Sectors>,
    },
    /// A request to a file server (NFS).
    FileServer {
        /// Device of the mount.
        mount: u32,
        /// Inode of the file.
        inode: u64,
        /// Bytes that the request covers, numbered like sectors.
        bytes: Sectors,
    },
    /// A request to a file system in user space.
    Fuse {
        /// Device of the file system.
        connection: u32,
        /// Size of the request, bytes.
        bytes: u32,
        /// Number of requests that the thread had issued before.
        order: u32,
    },
}

impl TracedRequest {
    /// Owner of the request, if that numbers places, and the range covered there.
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

/// Moments at which a request passed from one stage to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passage {
    /// Creation of the request, stamp.
    pub(super) start: u64,
    /// Issue to the device, stamp.
    pub(super) issue: u64,
    /// Completion by the device, stamp.
    pub(super) complete: u64,
}
