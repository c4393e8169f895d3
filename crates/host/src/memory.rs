//! Memory: how much there is, how much this process can have, and when the kernel makes huge pages of it.

use std::fmt;
use std::path::Path;

use iolab_storage::meminfo;

use crate::cgroup;
use crate::pseudo_files::{chosen, text_of};

/// All memory of the machine, bytes.
pub fn memory_bytes() -> Option<u64> {
    meminfo::bytes("MemTotal")
}

/// What programs can have of it without swapping, bytes.
pub fn memory_available_bytes() -> Option<u64> {
    meminfo::bytes("MemAvailable")
}

/// Memory that this process can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Without swapping, and without being killed for it; bytes.
    pub bytes: u64,
    /// Whether a control group leaves less than the machine has.
    pub of_group: bool,
}

impl AvailableMemory {
    /// Reads it; `None` where the system does not say.
    pub fn read() -> Option<Self> {
        let machine = memory_available_bytes();
        let group = cgroup::CgroupLimits::read(Path::new("/proc"), &[]).memory_left_bytes;
        let of_group = group.is_some_and(|group| machine.is_none_or(|machine| group < machine));
        let bytes = if of_group { group } else { machine };
        bytes.map(|bytes| Self { bytes, of_group })
    }
}

impl fmt::Display for AvailableMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.of_group {
            true => "that the control group of this process leaves",
            false => "available",
        };
        write!(f, "{} MiB {whose}", self.bytes >> 20)
    }
}

/// All settings of huge pages, the one in force in brackets.
pub fn transparent_huge_pages() -> Option<String> {
    text_of("/sys/kernel/mm/transparent_hugepage/enabled")
}

/// When the kernel uses huge pages unasked: the setting in force.
pub fn huge_pages_in_force() -> Option<String> {
    transparent_huge_pages().map(|text| chosen(&text))
}
