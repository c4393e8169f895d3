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
    /// To a file system in user space.
    Fuse {
        /// Its device.
        connection: u32,
        /// Bytes of the request.
        bytes: u32,
    },
}

impl TracedRequest {
    /// The disk that it goes to, if to any, and the sectors that it covers there.
    pub(super) fn on_disk(&self) -> (u32, &[Sectors]) {
        match &self.way {
            Way::Disk { disk, sectors } => (*disk, sectors),
            Way::Fuse { .. } => (0, &[]),
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
