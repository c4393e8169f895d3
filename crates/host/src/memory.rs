//! Memory: its size, the part that this process can use, and the use of huge pages by the kernel.

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use iolab_storage::meminfo;

use crate::cgroup;
use crate::pseudo_files::{chosen, number_of, text_of};

/// Memory of the machine, bytes.
pub fn memory_bytes() -> Option<u64> {
    meminfo::bytes("MemTotal")
}

/// Memory that programs can use without swapping, bytes.
pub fn memory_available_bytes() -> Option<u64> {
    meminfo::bytes("MemAvailable")
}

/// Memory that this process can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Memory available without swapping, and without being killed for it, bytes.
    pub bytes: u64,
    /// Whether a control group allows less than the machine has.
    pub of_group: bool,
}

impl AvailableMemory {
    /// Reads the memory available; `None` where the system does not report it.
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

/// Largest huge page that buffers of ordinary requests use by default, bytes. Kernels with pages of 64 KiB have
/// huge pages of 512 MiB, which take a tenth of a second to zero.
const BUFFER_PAGE_MAX: u64 = 64 << 20;

/// Sizes of the transparent huge pages of this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugePages {
    /// Memory that one second-level page-table entry maps, bytes: 2 MiB with pages of 4 KiB, 32 MiB with 16
    /// KiB, 512 MiB with 64 KiB.
    pub bytes: u64,
    /// Page size for buffers that must be contiguous in memory, bytes. `None` where the kernel has no small
    /// enough huge page, so that ordinary pages have to do.
    pub of_buffers: Option<u64>,
}

impl HugePages {
    /// Huge page sizes of the running kernel, read once.
    pub fn of_kernel() -> Self {
        static READ: LazyLock<HugePages> = LazyLock::new(|| {
            HugePages::read(
                Path::new("/sys"),
                iolab_storage::kernel_units::page_size() as u64,
            )
        });
        *READ
    }

    /// Reads `sys` (`/sys`) of a kernel with pages of `page` bytes (Documentation/admin-guide/mm/transhuge.rst
    /// of Linux). A huge page smaller than `bytes` needs a setting of its own (`hugepages-2048kB/enabled`).
    fn read(sys: &Path, page: u64) -> Self {
        let folder = sys.join("kernel/mm/transparent_hugepage");
        // A page table is one page of 8-byte entries.
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

/// All settings for huge pages, the active one in brackets.
pub fn transparent_huge_pages() -> Option<String> {
    text_of("/sys/kernel/mm/transparent_hugepage/enabled")
}

/// Active setting for unrequested huge pages.
pub fn huge_pages_in_force() -> Option<String> {
    transparent_huge_pages().map(|text| chosen(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    const ENABLED: &str = "kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";

    #[test]
    fn buffers_take_the_largest_allowed_huge_page() {
        let of = |page: u64, files: &[(&str, &str)]| {
            let tree = Tree::empty();
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
