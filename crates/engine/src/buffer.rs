//! Aligned memory for I/O: its preparation before the timed span and the content that is written.

use std::ptr::NonNull;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::error::{Error, Result};
use crate::pattern::derive;
use crate::spec::{BufferInit, Content, HUGE_PAGE_BYTES, TrialSpec};

/// Written data differs in every piece of this size.
const STAMP_EVERY: usize = 4096;
/// Bytes of one stamp: offset and generation.
const STAMP_LEN: usize = 16;
/// Buffers start on huge-page boundaries when they are at least this large, or are to lie in huge pages.
const HUGE_PAGE: usize = HUGE_PAGE_BYTES as usize;

/// One worker's buffers, one per slot of its depth, in one anonymous mapping.
#[derive(Debug)]
pub(crate) struct Buffers {
    map: NonNull<u8>,
    map_len: usize,
    first: NonNull<u8>,
    stride: usize,
    count: u32,
}

impl Buffers {
    /// Maps and prepares the buffers of worker number `worker`.
    ///
    /// # Errors
    /// When the memory is not to be had, or an advice the preparation stands for is refused.
    pub(crate) fn new(spec: &TrialSpec, worker: u32) -> Result<Self> {
        let page = rustix::param::page_size();
        let stride = (spec.bs as usize).next_multiple_of(page);
        let whole = match spec.buffer_init {
            BufferInit::Huge => HUGE_PAGE,
            _ => page,
        };
        let align = if stride >= HUGE_PAGE {
            HUGE_PAGE
        } else {
            whole
        };
        let map_len = stride
            .checked_mul(spec.depth as usize)
            .and_then(|len| len.checked_next_multiple_of(whole))
            .and_then(|len| len.checked_add(align))
            .ok_or_else(|| no_memory(spec))?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let map = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                map_len,
                prot,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|_| no_memory(spec))?;
        let map = NonNull::new(map.cast::<u8>()).ok_or_else(|| no_memory(spec))?;
        let shift = map.addr().get().next_multiple_of(align) - map.addr().get();
        let buffers = Self {
            map,
            map_len,
            // SAFETY: `shift` is below `align`, by which the mapping was made longer.
            first: unsafe { map.add(shift) },
            stride,
            count: spec.depth,
        };
        buffers.prepare(spec, worker)?;
        Ok(buffers)
    }

    /// Start of the buffer of a slot.
    #[inline(always)]
    pub(crate) fn slot(&self, slot: u32) -> NonNull<u8> {
        debug_assert!(slot < self.count);
        // SAFETY: a slot is below the count, for which the mapping has room.
        unsafe { self.first.add(slot as usize * self.stride) }
    }

    /// The bytes of a slot, those that round it up to a page included, while nobody else refers to any slot.
    pub(crate) fn bytes(&mut self, slot: u32) -> &mut [u8] {
        // SAFETY: the slot's bytes lie inside the mapping, which is initialised as all anonymous memory, and by the
        // exclusive reference nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.slot(slot).as_ptr(), self.stride) }
    }

    fn prepare(&self, spec: &TrialSpec, worker: u32) -> Result<()> {
        let used = self.stride * self.count as usize;
        match spec.buffer_init {
            BufferInit::Huge => {
                // Whole pages: part of one cannot be huge.
                let pages = used.next_multiple_of(HUGE_PAGE);
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
        // Data to be written has to be there whatever state of the memory was asked for.
        let random = spec.buffer_init == BufferInit::Random || spec.writes();
        for slot in 0..self.count {
            // SAFETY: the slot's bytes lie inside the mapping and nobody else refers to them yet.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(self.slot(slot).as_ptr(), self.stride) };
            match spec.buffer_init {
                _ if random && spec.content == Content::Zero && spec.writes() => bytes.fill(0),
                _ if random => {
                    let key = derive(spec.seed, (u64::from(worker) << 32) | u64::from(slot));
                    Xoshiro256PlusPlus::seed_from_u64(key).fill_bytes(bytes);
                }
                BufferInit::Zeroed => bytes.fill(0),
                BufferInit::Touched | BufferInit::Huge | BufferInit::NoHuge => {
                    bytes
                        .iter_mut()
                        .step_by(rustix::param::page_size())
                        .for_each(|byte| {
                            // A volatile store: writing zero over zero must not be optimised away.
                            // SAFETY: the reference is valid for writes.
                            unsafe { std::ptr::write_volatile(byte, 0) }
                        });
                }
                BufferInit::Untouched | BufferInit::Populated | BufferInit::Random => {}
            }
        }
        Ok(())
    }

    /// Advises the kernel on the first `len` bytes, which the mapping has.
    fn advise(&self, len: usize, advice: Advice, name: &str) -> Result<()> {
        // SAFETY: the range is our own anonymous mapping, and none of the advices used discards data.
        unsafe { madvise(self.first.as_ptr().cast(), len, advice) }.map_err(|errno| {
            Error::usage(format!("the kernel refuses {name}: {errno}"))
                .hint("choose another buffer_init, for example random or touched")
        })
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped, and no slot pointer outlives the worker that owns this.
        let unmapped = unsafe { munmap(self.map.as_ptr().cast(), self.map_len) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Makes every 4 KiB of a buffer that is about to be written differ from all others of the trial:
/// its byte offset and the generation of the write go over the start of each piece.
///
/// # Safety
/// `start` is valid for writes of `len` bytes that nobody else accesses.
#[inline]
pub(crate) unsafe fn stamp(start: NonNull<u8>, len: usize, offset: u64, generation: u64) {
    let mut at = 0;
    while at + STAMP_LEN <= len {
        // SAFETY: `at + STAMP_LEN` is at most `len`; the stores need no alignment.
        unsafe {
            start
                .add(at)
                .cast::<u64>()
                .write_unaligned(offset + at as u64);
            start.add(at + 8).cast::<u64>().write_unaligned(generation);
        }
        at += STAMP_EVERY;
    }
}

fn no_memory(spec: &TrialSpec) -> Error {
    Error::usage(format!(
        "no memory for {} buffers of {} bytes in each of {} threads",
        spec.depth, spec.bs, spec.threads
    ))
    .hint("choose fewer threads, a smaller depth or a smaller bs")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn bytes(buffers: &Buffers, slot: u32, len: usize) -> Vec<u8> {
        // SAFETY: the slot has at least `len` bytes in these tests.
        unsafe { std::slice::from_raw_parts(buffers.slot(slot).as_ptr(), len) }.to_vec()
    }

    #[test]
    fn every_preparation_works() {
        for name in BufferInit::NAMES {
            let spec = TrialSpec {
                buffer_init: name.parse().expect("a name of the list"),
                bs: 3 << 20,
                depth: 2,
                ..TrialSpec::default()
            };
            match Buffers::new(&spec, 0) {
                Ok(buffers) => {
                    assert_eq!(buffers.slot(0).addr().get() % HUGE_PAGE, 0);
                    assert_eq!(buffers.slot(1).addr().get() % 4096, 0);
                    let zero = bytes(&buffers, 1, 3 << 20).iter().all(|b| *b == 0);
                    assert_eq!(zero, spec.buffer_init != BufferInit::Random, "{name}");
                }
                Err(error) => {
                    assert!(error.message().contains("MADV"), "{error}");
                    eprintln!("skipped {name}: {error}");
                }
            }
        }
    }

    #[test]
    fn small_buffers_lie_in_one_huge_page_where_that_is_asked() {
        let spec = TrialSpec {
            buffer_init: BufferInit::Huge,
            bs: 4096,
            depth: 3,
            ..TrialSpec::default()
        };
        let buffers = match Buffers::new(&spec, 0) {
            Ok(buffers) => buffers,
            Err(error) => {
                assert!(error.message().contains("MADV"), "{error}");
                eprintln!("skipped: {error}");
                return;
            }
        };
        let first = buffers.slot(0).addr().get();
        assert_eq!(first % HUGE_PAGE, 0);
        assert!(first + HUGE_PAGE <= buffers.map.addr().get() + buffers.map_len);
        assert_eq!(buffers.slot(2).addr().get(), first + 2 * 4096);
    }

    #[test]
    fn stamped_blocks_are_all_different_and_incompressible() {
        let spec = TrialSpec {
            bs: 64 << 10,
            depth: 2,
            read_percent: 0,
            ..TrialSpec::default()
        };
        let buffers = Buffers::new(&spec, 0).expect("memory");
        let mut seen = HashSet::new();
        for generation in 0..50u64 {
            let slot = (generation % 2) as u32;
            // SAFETY: the slot has 64 KiB.
            unsafe {
                stamp(
                    buffers.slot(slot),
                    64 << 10,
                    generation % 3 * (64 << 10),
                    generation,
                )
            };
            for block in bytes(&buffers, slot, 64 << 10).chunks(4096) {
                assert!(seen.insert(block.to_vec()), "a block came twice");
            }
        }
        let mut counts = [0u32; 256];
        bytes(&buffers, 0, 64 << 10)
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
        // SAFETY: the array has 20 bytes.
        unsafe { stamp(NonNull::from(&mut block).cast(), 20, 5, 6) };
        assert_eq!(block[16..], [7; 4]);
        assert_eq!(
            block[..16],
            [5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]
        );
        // SAFETY: nothing is written to a block that is smaller than a stamp.
        unsafe { stamp(NonNull::from(&mut block).cast(), 15, 9, 9) };
        assert_eq!(block[0], 5);
    }
}
