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

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use rustix::mm::{Advice, madvise};

use crate::arena::{Arena, Pieces, huge_page, no_memory, stride};
use iolab_workload::pattern::{RandomBytes, derive};
use iolab_workload::trial::{BufferInit, TrialSpec};
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
    /// Whether an earlier trial has filled the buffers.
    pub(crate) is_filled: bool,
    /// Shared by all workers of the trial.
    pub(crate) registration: Registration,
}

/// One worker's buffers, one per slot of its depth, contiguous in an arena.
#[derive(Debug)]
pub(crate) struct Buffers {
    arena: Arc<Arena>,
    /// A box that is freed together with the mapping: every slot points into it.
    places: NonNull<[BufferAddress]>,
    /// The slots that are not in use; the last is taken next.
    home: Vec<Slot>,
    registration: Registration,
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
            is_filled: false,
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
            is_filled,
            registration,
        } = part;
        let stride = stride(spec);
        let len = u32::try_from(spec.largest_request()).map_err(|_| no_memory(spec))?;
        let first = before as usize * spec.depth as usize;
        let place = |index: u32| BufferAddress {
            start: arena.at((first + index as usize) * stride),
            len,
            index,
        };
        let places: Box<[BufferAddress]> = (0..spec.depth).map(place).collect();
        let places = NonNull::from(Box::leak(places));
        let first = places.cast::<BufferAddress>();
        let mut buffers = Self {
            arena,
            places,
            // SAFETY: there is a place for every number below the depth.
            home: (0..spec.depth as usize)
                .map(|index| Slot(unsafe { first.add(index) }))
                .collect(),
            registration,
        };
        buffers.prepare(spec, stride, worker, is_filled)?;
        Ok(buffers)
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

    /// Whether all workers of the trial register their buffers with rings.
    pub(crate) fn registration(&self) -> &Registration {
        &self.registration
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

    fn prepare(
        &mut self,
        spec: &TrialSpec,
        stride: usize,
        worker: u32,
        is_filled: bool,
    ) -> Result<()> {
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
        let random = spec.writes() || (spec.buffer_init == BufferInit::Random && !is_filled);
        for slot in &mut self.home {
            let own = (u64::from(spec.number_of(worker)) << 32) | u64::from(slot.index());
            let key = derive(spec.seed, own);
            let bytes = slot.bytes();
            match spec.buffer_init {
                _ if random => {
                    RandomBytes::new(key).fill(bytes);
                    make_compressible(bytes, spec.compressible);
                }
                BufferInit::Zeroed => bytes.fill(0),
                // The content of a filled page makes no difference to a read. A page that was swapped out comes back here,
                // and not within the timed span.
                BufferInit::Random
                | BufferInit::Touched
                | BufferInit::Huge
                | BufferInit::NoHuge => {
                    bytes
                        .iter_mut()
                        .step_by(iolab_storage::kernel_units::page_size())
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
            std::mem::forget(Arc::clone(&self.arena));
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::trial::tests::settings;

    fn address(slot: &Slot) -> usize {
        slot.address(0, 0).addr().get()
    }

    /// Whether a page is mapped, by this or another thread.
    fn is_mapped(address: usize) -> bool {
        let mut resident = [0u8; 1];
        // SAFETY: mincore reads nothing at the address, and writes one byte for one page.
        let status = unsafe {
            libc::mincore(
                std::ptr::without_provenance_mut(address),
                1,
                resident.as_mut_ptr(),
            )
        };
        status == 0
    }

    #[test]
    fn every_preparation_works() {
        let sizes = [4096, 3 << 20].into_iter();
        for (bs, name) in sizes.flat_map(|bs| BufferInit::NAMES.iter().map(move |name| (bs, name)))
        {
            let spec = settings(&format!("buffer_init={name} bs={bs} depth=2"));
            match Buffers::new(&spec, 0) {
                Ok(mut buffers) => {
                    if bs > 4096 || spec.buffer_init == BufferInit::Huge {
                        assert_eq!(address(&buffers.home()[0]) % huge_page(), 0);
                        let _ = buffers.arena.at(huge_page());
                    }
                    assert_eq!(address(&buffers.home()[1]) % 4096, 0);
                    let zero = buffers.home_mut()[1].bytes().iter().all(|b| *b == 0);
                    assert_eq!(zero, spec.buffer_init != BufferInit::Random, "{name}");
                }
                Err(error) => {
                    assert!(error.message().contains("MADV"), "{error}");
                    needs::skip(needs::Need::HugePages, error);
                }
            }
        }
    }

    fn writing(bs: u64, depth: u32) -> Buffers {
        let spec = settings(&format!("bs={bs} depth={depth} read_percent=0"));
        Buffers::new(&spec, 0).expect("memory")
    }

    #[test]
    fn memory_stays_while_a_slot_is_away() {
        let (mut buffers, mut others) = (writing(4096, 2), writing(4096, 2));
        let mut lost = buffers.take().expect("two slots");
        let before = lost.bytes().to_vec();
        // A slot of other buffers does not replace the lost one.
        buffers.put(others.take().expect("two slots"));
        assert!(!buffers.is_complete() && !others.is_complete());
        drop(buffers);
        assert!(is_mapped(address(&lost)));
        assert_eq!(lost.bytes(), before);
        lost.bytes().fill(1);
    }

    #[test]
    #[should_panic(expected = "inside its buffer")]
    fn a_request_cannot_leave_its_buffer() {
        let mut buffers = writing(4096, 2);
        let mut slot = buffers.take().expect("two slots");
        slot.part(4000, 97);
    }

    #[test]
    fn stamped_blocks_are_all_different_and_incompressible() {
        let mut buffers = writing(64 << 10, 2);
        let mut seen = HashSet::new();
        for generation in 0..50u64 {
            let bytes = buffers.home_mut()[(generation % 2) as usize].bytes();
            stamp(bytes, generation % 3 * (64 << 10), generation);
            for block in bytes.chunks(4096) {
                assert!(seen.insert(block.to_vec()), "a block came twice");
            }
        }
        let mut counts = [0u32; 256];
        buffers.home_mut()[0]
            .bytes()
            .iter()
            .for_each(|b| counts[usize::from(*b)] += 1);
        let entropy: f64 = counts
            .iter()
            .filter(|c| **c > 0)
            .map(|c| f64::from(*c) / 65_536.0)
            .map(|p| -p * p.log2())
            .sum();
        assert!(entropy > 7.9, "{entropy} bits per byte");
    }

    #[test]
    fn small_blocks_are_stamped_inside_their_bounds() {
        let mut block = [7u8; 20];
        stamp(&mut block, 5, 6);
        assert_eq!(block[16..], [7; 4]);
        assert_eq!(
            block[..16],
            [5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]
        );
        // Nothing is written to a block that is smaller than a stamp.
        stamp(&mut block[..15], 9, 9);
        assert_eq!(block[0], 5);
    }
}
