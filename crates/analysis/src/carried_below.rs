//! Bytes that disks carried for a device that lies on them.

use crate::disturbance::JOURNAL_PER_SYNC;
use iolab_workload::counters::DeviceStat;
use iolab_workload::named;

/// Bytes that file systems may move of their own. Up to this, traffic is not attributed to others, and a
/// program's account may exceed its writes.
pub const OWN_DATA: u64 = 256 << 10;

named! {
    /// Direction of a transfer.
    pub enum Transfer: "transfer" {
        /// From storage to the program.
        Read = "read",
        /// From the program to storage.
        Write = "write",
    }
}

impl Transfer {
    /// Bytes that a device carried in this direction.
    pub fn of(self, stat: &DeviceStat) -> u64 {
        match self {
            Self::Read => stat.read_bytes,
            Self::Write => stat.write_bytes,
        }
    }
}

/// Bytes that the disks below a device carried for it, if only their traffic is known. `None` if they carried
/// more than the device: the excess was for others, and so may be the rest.
pub fn own_below(through: DeviceStat, below: DeviceStat, transfer: Transfer) -> Option<u64> {
    let flushes = match transfer {
        Transfer::Read => 0,
        Transfer::Write => through.flush_ios,
    };
    let (through, below) = (transfer.of(&through), transfer.of(&below));
    let most = through.saturating_add(slack_below(through, flushes));
    (below <= most).then_some(below)
}

/// Bytes that the disks below a device may carry for it beyond its own: read-ahead, and the journal of the file
/// system below.
pub fn slack_below(through: u64, flushes: u64) -> u64 {
    let journal = flushes.saturating_mul(JOURNAL_PER_SYNC);
    OWN_DATA.max(through / 10).saturating_add(journal)
}
