//! Memory: how much there is, how much this process can have, and when the kernel makes huge pages of it.

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use iolab_storage::meminfo;

use crate::cgroup;
use crate::pseudo_files::{chosen, number_of, text_of};

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

/// Largest huge page that buffers of ordinary requests are put into unasked, bytes: on kernels with pages of 64 KiB one has 512 MiB,
/// which take a tenth of a second to fill with zeros.
const BUFFER_PAGE_MAX: u64 = 64 << 20;

/// Sizes of the transparent huge pages of this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugePages {
    /// What one entry of the second level of the page table maps, bytes: 2 MiB with pages of 4 KiB, 32 MiB with 16 KiB, 512 MiB with
    /// 64 KiB.
    pub bytes: u64,
    /// The page that buffers are made of where they are to lie contiguously in memory, bytes; `None` where the kernel gives none
    /// that is small enough, so that its ordinary pages have to do.
    pub of_buffers: Option<u64>,
}

impl HugePages {
    /// Those of the running kernel, read once.
    pub fn of_kernel() -> Self {
        static READ: LazyLock<HugePages> = LazyLock::new(|| {
            HugePages::read(
                Path::new("/sys"),
                iolab_storage::kernel_units::page_size() as u64,
            )
        });
        *READ
    }

    /// Reads `sys` (`/sys`) of a kernel with pages of `page` bytes (Documentation/admin-guide/mm/transhuge.rst of Linux). A huge page that
    /// is smaller than an entry maps is used where a setting of its own (`hugepages-2048kB/enabled`) allows it.
    fn read(sys: &Path, page: u64) -> Self {
        let folder = sys.join("kernel/mm/transparent_hugepage");
        // A table is one page of entries of 8 bytes.
        let bytes = number_of(folder.join("hpage_pmd_size")).unwrap_or(page * page / 8);
        let smaller = [2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20]
            .into_iter()
            .filter(|size| *size < bytes)
            .find(|size| {
                let own = folder.join(format!("hugepages-{}kB/enabled", size >> 10));
                text_of(own).is_some_and(|text| chosen(&text) != "never")
            });
        Self {
            bytes,
            of_buffers: smaller.or(Some(bytes).filter(|bytes| *bytes <= BUFFER_PAGE_MAX)),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::Tree;

    const ENABLED: &str = "kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";

    #[test]
    fn buffers_take_the_huge_pages_that_the_kernel_has() {
        let of = |page: u64, files: &[(&str, &str)]| {
            let tree = Tree::new();
            tree.files("", files);
            let found = HugePages::read(tree.path(), page << 10);
            (found.bytes >> 20, found.of_buffers.map(|bytes| bytes >> 20))
        };
        assert_eq!(of(4, &[]), (2, Some(2)));
        assert_eq!(of(16, &[]), (32, Some(32)));
        assert_eq!(of(64, &[]), (512, None));
        let told = ("kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912");
        assert_eq!(
            of(64, &[told, (ENABLED, "always inherit madvise [never]")]),
            (512, None)
        );
        assert_eq!(
            of(64, &[told, (ENABLED, "always inherit [madvise] never")]),
            (512, Some(2))
        );
    }
}
