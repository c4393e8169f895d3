//! Memory for I/O buffers: one anonymous mapping per worker, or one mapping for all workers if the buffers are to be
//! contiguous in physical memory. A thousand workers with small buffers then share huge pages instead of taking one each.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use iolab_host::memory::HugePages;
use iolab_workload::quantity::counted;
use iolab_workload::trial::{BufferInit, BufferMemory, CacheState, TrialSpec};
use iolab_workload::{Error, Result};
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

/// Size of the huge pages of this kernel that buffers use, bytes. Buffers at least as large start on its boundaries, and so
/// do buffers that are to lie in huge pages.
pub(crate) fn huge_page() -> usize {
    let pages = HugePages::of_kernel();
    pages.of_buffers.unwrap_or(pages.bytes) as usize
}

/// A mapping that is unmapped when the last of its buffers is dropped.
#[derive(Debug)]
pub(crate) struct Arena {
    map: NonNull<u8>,
    map_len: usize,
    /// Address of the first buffer.
    start: NonNull<u8>,
}

// SAFETY: an arena owns its address range and gives out addresses only. The slots of the buffers decide who may use the
// memory at an address.
unsafe impl Send for Arena {}
// SAFETY: as above; no method changes it.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps memory for the buffers of this number of workers.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): there is no memory.
    pub(crate) fn new(spec: &TrialSpec, workers: u32) -> Result<Self> {
        let (stride, unit) = (stride(spec), unit(spec));
        let huge_page = huge_page();
        let align = if stride >= huge_page { huge_page } else { unit };
        let used = stride
            .checked_mul(spec.depth as usize)
            .and_then(|len| len.checked_mul(workers as usize))
            .and_then(|len| len.checked_next_multiple_of(unit))
            .ok_or_else(|| no_memory(spec))?;
        let guard = iolab_storage::kernel_units::page_size();
        let map_len = used
            .checked_add(align)
            .and_then(|len| len.checked_add(guard))
            .ok_or_else(|| no_memory(spec))?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let map = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                map_len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|_| no_memory(spec))?;
        let map = NonNull::new(map.cast::<u8>()).ok_or_else(|| no_memory(spec))?;
        let shift = map.addr().get().next_multiple_of(align) - map.addr().get();
        let arena = Self {
            map,
            map_len,
            // SAFETY: `shift` is below `align`, and the mapping is longer than its used part by `align`.
            start: unsafe { map.add(shift) },
        };
        // Adjacent mappings become one, in which buffers of several workers could share a huge page.
        // SAFETY: the page is the last one of our own mapping, after the last byte that its buffers can reach.
        let guarded = unsafe {
            let last = arena.map.add(map_len - guard);
            mprotect(last.as_ptr().cast(), guard, MprotectFlags::empty())
        };
        guarded.map_err(|_| no_memory(spec))?;
        if is_contiguous(spec) {
            // If the kernel has no huge pages, small ones serve as well.
            // SAFETY: the range is our own anonymous mapping, and the advice discards no data.
            let _ = unsafe { madvise(arena.start.as_ptr().cast(), used, Advice::LinuxHugepage) };
        }
        Ok(arena)
    }

    /// The address of this byte, counted from the start of the first buffer.
    pub(crate) fn at(&self, byte: usize) -> NonNull<u8> {
        let shift = self.start.addr().get() - self.map.addr().get();
        assert!(byte <= self.map_len - shift, "inside of the mapping");
        // SAFETY: the address lies in the mapping or at its end, as just checked.
        unsafe { self.start.add(byte) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped. Buffers hold the arena as long as any of their slots is away, so that
        // nothing refers to the memory any more.
        let unmapped = unsafe { munmap(self.map.as_ptr().cast(), self.map_len) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Bytes from one buffer to the next.
pub(crate) fn stride(spec: &TrialSpec) -> usize {
    (spec.largest_request() as usize).next_multiple_of(iolab_storage::kernel_units::page_size())
}

/// Whether all workers' buffers lie in one arena of huge pages: for direct I/O, which the pieces of a buffer concern. A
/// preparation that needs its own kind of pages takes precedence, and there are none if the kernel's huge pages are too large.
pub(crate) fn is_contiguous(spec: &TrialSpec) -> bool {
    spec.buffer_memory == BufferMemory::Contiguous
        && spec.cache == CacheState::Direct
        && !matches!(spec.buffer_init, BufferInit::Huge | BufferInit::NoHuge)
        && HugePages::of_kernel().of_buffers.is_some()
}

/// The pages that the buffers are made of, bytes.
pub(crate) fn unit(spec: &TrialSpec) -> usize {
    match spec.buffer_init {
        BufferInit::Huge => huge_page(),
        _ if is_contiguous(spec) => huge_page(),
        _ => iolab_storage::kernel_units::page_size(),
    }
}

/// Number of arenas for the buffers of all workers, and number of workers in each.
pub(crate) fn division(spec: &TrialSpec) -> (u32, u32) {
    match is_contiguous(spec) {
        true => (1, spec.threads),
        false => (spec.threads, 1),
    }
}

/// Memory that the buffers of all workers take, bytes.
pub(crate) fn bytes_of(spec: &TrialSpec) -> u64 {
    let unit = unit(spec) as u64;
    let (arenas, workers) = division(spec);
    (stride(spec) as u64)
        .saturating_mul(u64::from(spec.depth))
        .saturating_mul(u64::from(workers))
        .div_ceil(unit)
        .saturating_mul(unit)
        .saturating_mul(u64::from(arenas))
}

pub(crate) fn no_memory(spec: &TrialSpec) -> Error {
    Error::usage(format!(
        "no memory for {} buffers of {} bytes in each of {}",
        spec.depth,
        spec.largest_request(),
        counted(spec.threads, "thread")
    ))
    .hint("choose fewer threads, a smaller depth or a smaller bs")
}

/// Stretches of physical memory that a range lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pieces {
    /// Bytes that were looked at.
    pub(crate) bytes: u64,
    /// Stretches that they lie in.
    pub(crate) count: u64,
}

impl Pieces {
    /// Most bytes that are looked at of one worker's buffers.
    const BYTES_MAX: usize = 16 << 20;

    /// Looks at the start of a range of addresses: proc_pid_pagemap(5). `None` if the kernel shows no page numbers, which
    /// takes the capability CAP_SYS_ADMIN.
    pub(crate) fn of(range: &Range<usize>) -> Option<Self> {
        const ENTRY: usize = 8;
        let page = iolab_storage::kernel_units::page_size();
        // Opened each time: workers have descriptor tables of their own.
        let file = File::open("/proc/self/pagemap").ok()?;
        let first = range.start / page;
        let pages = range.len().min(Self::BYTES_MAX).div_ceil(page);
        let mut entries = vec![0; pages * ENTRY];
        let offset = (first * ENTRY) as u64;
        file.read_exact_at(&mut entries, offset).ok()?;
        let frames = entries.chunks_exact(ENTRY).map(|entry| {
            let entry = u64::from_ne_bytes(entry.try_into().expect("eight bytes"));
            // Bit 63: the page is present. Bits 0 to 54: its number, 0 without the capability.
            let frame = entry & ((1 << 55) - 1);
            (entry >> 63 == 1 && frame > 0).then_some(frame)
        });
        let mut pieces = Self::default();
        let mut next = None;
        for frame in frames.flatten() {
            pieces.bytes += page as u64;
            pieces.count += u64::from(next != Some(frame));
            next = Some(frame + 1);
        }
        (pieces.count > 0).then_some(pieces)
    }

    /// Sum of two ranges.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            count: self.count + other.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::tests::settings;

    #[test]
    fn many_workers_with_small_buffers_share_huge_pages() {
        let of = |sets: &str| bytes_of(&settings(sets));
        assert_eq!(of("buffer_memory=contiguous threads=1024"), 4 << 20);
        assert_eq!(of("buffer_memory=contiguous"), 2 << 20);
        assert_eq!(of("buffer_memory=kernel threads=1024"), 4 << 20);
        assert_eq!(of("buffer_memory=contiguous cache=hot"), 4096);
    }

    #[test]
    fn pieces_are_counted_if_the_kernel_shows_them() {
        let memory = vec![1u8; 1 << 20];
        let start = memory.as_ptr().addr();
        let Some(pieces) = Pieces::of(&(start..start + memory.len())) else {
            return needs::skip(needs::Need::Pagemap, "it shows none to this user");
        };
        assert!(pieces.count >= 1 && pieces.bytes >= 1 << 20, "{pieces:?}");
        assert!(pieces.count <= pieces.bytes / iolab_storage::kernel_units::page_size() as u64);
    }
}
