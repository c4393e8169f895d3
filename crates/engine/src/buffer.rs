//! Aligned memory for I/O: its preparation before the timed span and the content that is written.
//!
//! # Who may touch a buffer
//!
//! Each buffer has one [`Slot`], which is never copied. Only the holder of the slot may touch the buffer: the
//! worker takes it from its [`Buffers`] to prepare a request, a backend holds it while the request is in flight, and the
//! completion gives it back. A backend therefore cannot be handed memory that is in use or gone, and the worker cannot touch
//! memory that the kernel has.
//!
//! A slot that is not back when the buffers are dropped may be the kernel's: its request is in flight, or was lost when the
//! mechanism failed. The kernel may write into it at any later time, so that the mapping then stays until the process ends.
//!
//! Memory for I/O buffers: one anonymous mapping per worker, or one mapping for all workers if the buffers are to be
//! contiguous in physical memory. A thousand workers with small buffers then share huge pages instead of taking one each.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

use iolab_host::machine::HugePages;
use iolab_workload::pattern::{RandomBytes, derive};
use iolab_workload::trial::{BufferInit, BufferMemory, CacheState, TrialSpec};
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

/// Written data differs in every piece of this size.
const STAMP_EVERY: usize = 4096;

/// Bytes of one stamp: offset and generation.
const STAMP_LEN: usize = 16;

/// Address and length of a buffer.
#[derive(Debug)]
struct BufferAddress {
    start: NonNull<u8>,
    len: u32,
    index: u32,
}

/// One buffer, and the only right to touch it. One word, so that handing it on costs the hot loop nothing.
#[derive(Debug)]
pub(crate) struct Slot(NonNull<BufferAddress>);

impl Slot {
    #[inline(always)]
    fn place(&self) -> &BufferAddress {
        // SAFETY: the places stay where they are, and unchanged, as long as any of their slots is away from the
        // buffers; and those at home are borrowed from them.
        unsafe { self.0.as_ref() }
    }

    /// Its number among the worker's slots, below the depth.
    #[inline(always)]
    pub(crate) fn index(&self) -> u32 {
        self.place().index
    }

    /// The address of the `len` bytes from `at`, for a system call. The address alone allows nothing.
    ///
    /// # Panics
    /// When the buffer has no such bytes.
    #[inline(always)]
    pub(crate) fn address(&self, at: u32, len: u32) -> NonNull<u8> {
        let place = self.place();
        let fits = u64::from(at) + u64::from(len) <= u64::from(place.len);
        assert!(fits, "a request stays inside its buffer");
        // SAFETY: `at` is at most the length of the buffer, so that the address lies in its mapping or at its end.
        unsafe { place.start.add(at as usize) }
    }

    /// The `len` bytes from `at`.
    ///
    /// # Panics
    /// When the buffer has no such bytes.
    #[inline(always)]
    pub(crate) fn part(&mut self, at: u32, len: u32) -> &mut [u8] {
        let start = self.address(at, len).as_ptr();
        // SAFETY: the bytes lie in the mapping, as `address` checked, and are initialised like all anonymous memory. The
        // mapping exists: it is not unmapped while a slot is away from the buffers, and slots at home are borrowed from
        // them. No other reference exists: this is the only slot of the buffer, and it is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(start, len as usize) }
    }

    /// The buffer in the form in which the kernel registers it.
    pub(crate) fn as_iovec(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.place().start.as_ptr().cast(),
            iov_len: self.place().len as usize,
        }
    }

    /// All its bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.part(0, self.place().len)
    }
}

/// Registration of buffers with rings: for all workers of a trial or for none, so that no worker has cheaper requests than another.
/// It holds the kernel's reason for refusing the buffers of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registration(Arc<OnceLock<String>>);

impl Registration {
    /// The first refusal; `None` if buffers are to be registered.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Keeps all buffers of the trial unregistered from now on. Only the first reason counts.
    pub(crate) fn refuse(&self, reason: String) {
        self.0.get_or_init(|| reason);
    }
}

/// The place of a worker's buffers in an arena.
#[derive(Debug)]
pub(crate) struct ArenaPart {
    pub(crate) arena: Arc<Arena>,
    /// Number of workers whose buffers come before its own.
    pub(crate) before: u32,
    /// Shared by all workers of the trial.
    pub(crate) registration: Registration,
}

/// One worker's buffers, one per slot of its depth, contiguous in an arena.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The memory; `None` for buffers of no bytes.
    arena: Option<Arc<Arena>>,
    /// A box that is freed together with the mapping: every slot points into it.
    places: NonNull<[BufferAddress]>,
    /// The slots that are not in use; the last is taken next.
    home: Vec<Slot>,
    /// Whether all workers of the trial register their buffers with rings.
    pub(crate) registration: Registration,
}

impl Buffers {
    /// Maps and prepares the buffers of worker number `worker`, which share no arena.
    ///
    /// # Errors
    /// As [`Self::in_arena`], and when there is no memory.
    pub(crate) fn new(spec: &TrialSpec, worker: u32) -> Result<Self> {
        let own = ArenaPart {
            arena: Arc::new(Arena::new(spec, 1)?),
            before: 0,
            registration: Registration::default(),
        };
        Self::in_arena(spec, worker, own)
    }

    /// Prepares the buffers of worker number `worker`, which lie in this part of an arena.
    ///
    /// # Errors
    /// When the kernel refuses an advice that the preparation stands for.
    pub(crate) fn in_arena(spec: &TrialSpec, worker: u32, part: ArenaPart) -> Result<Self> {
        let ArenaPart {
            arena,
            before,
            registration,
        } = part;
        let stride = stride(spec);
        let len = u32::try_from(spec.largest_request()).map_err(|_| no_memory(spec))?;
        let first = before as usize * spec.depth as usize;
        let start = |index: u32| arena.at((first + index as usize) * stride);
        let mut buffers = Self::at(spec.depth, start, len);
        buffers.arena = Some(Arc::clone(&arena));
        buffers.registration = registration;
        buffers.prepare(spec, stride, worker)?;
        Ok(buffers)
    }

    /// Buffers of no bytes, for requests that move none. The first slot is taken first.
    pub(crate) fn empty(depth: u32) -> Self {
        let mut buffers = Self::at(depth, |_| NonNull::dangling(), 0);
        buffers.home.reverse();
        buffers
    }

    /// Buffers of `len` bytes each, which start at these addresses.
    fn at(depth: u32, start: impl Fn(u32) -> NonNull<u8>, len: u32) -> Self {
        let place = |index: u32| BufferAddress {
            start: start(index),
            len,
            index,
        };
        let places: Box<[BufferAddress]> = (0..depth).map(place).collect();
        let places = NonNull::from(Box::leak(places));
        let first = places.cast::<BufferAddress>();
        Self {
            arena: None,
            places,
            // SAFETY: there is a place for every number below the depth.
            home: (0..depth as usize)
                .map(|index| Slot(unsafe { first.add(index) }))
                .collect(),
            registration: Registration::default(),
        }
    }

    /// Number of stretches of physical memory that the buffers lie in; `None` if the kernel does not show it.
    pub(crate) fn pieces(&self) -> Option<Pieces> {
        let (first, last) = (self.home.first()?, self.home.last()?);
        let (a, b) = (first.place(), last.place());
        let (a, b) = if a.start <= b.start { (a, b) } else { (b, a) };
        Pieces::of(&(a.start.addr().get()..b.start.addr().get() + b.len as usize))
    }

    /// The slots that are not in use; the last is taken next. At first all are, in the order of their numbers.
    #[inline(always)]
    pub(crate) fn home(&self) -> &[Slot] {
        &self.home
    }

    /// The slots at home, with access to their buffers.
    pub(crate) fn home_mut(&mut self) -> &mut [Slot] {
        &mut self.home
    }

    /// A slot for the next request, unless all are in use.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.home.pop()
    }

    /// Takes a slot back whose request is complete.
    #[inline(always)]
    pub(crate) fn put(&mut self, slot: Slot) {
        self.home.push(slot);
    }

    fn prepare(&mut self, spec: &TrialSpec, stride: usize, worker: u32) -> Result<()> {
        let used = stride * self.places.len();
        match spec.buffer_init {
            BufferInit::Huge => {
                // Whole pages: part of one cannot be huge.
                let pages = used.next_multiple_of(huge_page());
                self.advise(pages, Advice::LinuxHugepage, "MADV_HUGEPAGE")?;
            }
            BufferInit::NoHuge => {
                self.advise(used, Advice::LinuxNoHugepage, "MADV_NOHUGEPAGE")?;
            }
            BufferInit::Populated => {
                self.advise(used, Advice::LinuxPopulateWrite, "MADV_POPULATE_WRITE")?;
            }
            _ => {}
        }
        // Data to be written has to exist in every requested state of the memory.
        let content = match spec.writes() {
            true => BufferInit::Random,
            false => spec.buffer_init,
        };
        for slot in &mut self.home {
            let own = (u64::from(spec.number_of(worker)) << 32) | u64::from(slot.index());
            let key = derive(spec.seed, own);
            let bytes = slot.bytes();
            match content {
                BufferInit::Random => {
                    RandomBytes::new(key).fill(bytes);
                    make_compressible(bytes, spec.compressible);
                }
                BufferInit::Zeroed => bytes.fill(0),
                BufferInit::Touched | BufferInit::Huge | BufferInit::NoHuge => {
                    bytes
                        .iter_mut()
                        .step_by(iolab_storage::procfs::page_size())
                        .for_each(|byte| {
                            // A volatile store: writing zero over zero must not be optimised away.
                            // SAFETY: the reference is valid for writes.
                            unsafe { std::ptr::write_volatile(byte, 0) }
                        });
                }
                BufferInit::Untouched | BufferInit::Populated => {}
            }
        }
        Ok(())
    }

    /// Advises the kernel on the first `len` bytes, which the mapping has.
    fn advise(&self, len: usize, advice: Advice, name: &str) -> Result<()> {
        let Some(first) = self.home.first() else {
            return Ok(());
        };
        // SAFETY: the range is our own anonymous mapping, and none of the advices used discards data.
        unsafe { madvise(first.address(0, 0).as_ptr().cast(), len, advice) }
            .map_err(|errno| advice_refused(name, errno))
    }

    /// Whether every slot is back. A slot of other buffers does not count.
    fn is_complete(&self) -> bool {
        let all = self.places.cast::<BufferAddress>().as_ptr();
        let own = all..all.wrapping_add(self.places.len());
        let back = self
            .home
            .iter()
            .filter(|slot| own.contains(&slot.0.as_ptr()));
        back.count() == self.places.len()
    }
}

/// Error of a trial whose advice about its buffers the kernel refuses.
pub(crate) fn advice_refused(name: &str, errno: Errno) -> Error {
    Error::usage(format!("the kernel refuses {name}: {errno}"))
        .hint("choose another buffer_init, for example random or touched")
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if !self.is_complete() {
            // The kernel may still use the missing slots: the arena is never dropped.
            std::mem::forget(self.arena.clone());
            return;
        }
        self.home.clear();
        // SAFETY: frees the box that was leaked. All slots were at home, so that nothing refers to it any more.
        drop(unsafe { Box::from_raw(self.places.as_ptr()) });
    }
}

/// Replaces this share of every 4 KiB by zeros, at its end: the stamp lies at its start.
fn make_compressible(data: &mut [u8], percent: u8) {
    for piece in data.chunks_mut(STAMP_EVERY) {
        let kept = piece.len() * usize::from(100 - percent.min(100)) / 100;
        piece[kept..].fill(0);
    }
}

/// Makes every 4 KiB of data that is about to be written differ from all others of the trial: its byte offset and the
/// generation of the write go over the start of each piece, as far as there is room.
#[inline]
pub(crate) fn stamp(data: &mut [u8], offset: u64, generation: u64) {
    let mut at = offset;
    for piece in data.chunks_mut(STAMP_EVERY) {
        if let Some(head) = piece.first_chunk_mut::<STAMP_LEN>() {
            head[..8].copy_from_slice(&at.to_ne_bytes());
            head[8..].copy_from_slice(&generation.to_ne_bytes());
        }
        at += STAMP_EVERY as u64;
    }
}

/// Size of the huge pages of this kernel that buffers use, bytes. Buffers at least as large start on its boundaries, and so
/// do buffers that are to lie in huge pages.
fn huge_page() -> usize {
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
        let guard = iolab_storage::procfs::page_size();
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
fn stride(spec: &TrialSpec) -> usize {
    (spec.largest_request() as usize).next_multiple_of(iolab_storage::procfs::page_size())
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
        _ => iolab_storage::procfs::page_size(),
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

fn no_memory(spec: &TrialSpec) -> Error {
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
        let page = iolab_storage::procfs::page_size();
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
