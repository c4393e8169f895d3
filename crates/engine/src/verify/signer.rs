//! Makes the blocks of one worker verifiable, right before each is written.
//!
//! The format of a verifiable block: every 512 bytes say where and when they were written, and carry a checksum.
//!
//! A header lies over the start of each sector, little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 7 | magic |
//! | 8 to 15 | byte offset in the target |
//! | 16 to 23 | identity of the trial |
//! | 24 to 31 | generation: thread (upper 16 bits), number of its write (lower 48) |
//! | 32 to 35 | checksum |
//!
//! The checksum is CRC-32C (G. Castagnoli et al., IEEE Trans. Commun. 41 (1993) 883-892) of the payload after the header,
//! followed by the header up to the checksum. In this order the payload's part does not depend on the header and is
//! computed once, before the clock starts.

use super::written;
use crate::buffer::{Buffers, Slot};
use iolab_workload::region_state::FoundInstead;
use iolab_workload::trial::TrialSpec;

/// A slot in which no write is known to be on its way.
const IDLE: u64 = u64::MAX;

/// Signs the writes of one worker: their number goes into every sector, and how far they overlap is kept.
pub(crate) struct Signer {
    trial: u64,
    worker: u32,
    /// Writes signed so far.
    writes: u64,
    sectors: usize,
    /// Checksums of the payloads, slot by slot; `None` if reads leave other payloads in the same buffers.
    payloads: Option<Vec<u32>>,
    /// Number of the write in each slot.
    in_slot: Vec<u64>,
    /// Number of entries at the start of the worker's list of free slots that are known to be idle.
    settled: usize,
    overlap: u64,
}

/// The signed writes of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signed {
    /// Number of the worker.
    pub(crate) worker: u32,
    /// Number of signed writes.
    pub(crate) writes: u64,
    /// Most writes that it began while one of its writes was in flight.
    pub(crate) overlap: u64,
}

impl Signer {
    /// A signer for the buffers of worker number `worker`, whose content stays as it is from now on, in a trial of this
    /// identity.
    pub(crate) fn new(spec: &TrialSpec, worker: u32, trial: u64, buffers: &mut Buffers) -> Self {
        // All slots are at home, in the order of their numbers.
        let slots = buffers.home_mut().iter_mut();
        let sectors = slots.flat_map(|slot| slot.bytes().chunks_exact(SECTOR));
        let payloads = (!spec.reads()).then(|| sectors.map(payload_checksum).collect());
        Self {
            trial,
            worker,
            writes: 0,
            sectors: spec.bs as usize / SECTOR,
            payloads,
            in_slot: vec![IDLE; spec.depth as usize],
            settled: 0,
            overlap: 0,
        }
    }

    /// Signs the next write, which leaves from this slot; `free` lists slots from which none is on its way.
    #[inline(never)]
    pub(crate) fn sign(&mut self, slot: &mut Slot, offset: u64, free: &[Slot]) {
        let index = slot.index();
        self.settle(index, free);
        let generation = Generation::new(self.worker, self.writes);
        let first = index as usize * self.sectors;
        let mut place = offset;
        for (number, sector) in slot.bytes().chunks_exact_mut(SECTOR).enumerate() {
            let payload = match &self.payloads {
                Some(known) => known[first + number],
                None => payload_checksum(sector),
            };
            seal(sector, place, self.trial, generation, payload);
            place += SECTOR as u64;
        }
        self.in_slot[index as usize] = self.writes;
        self.writes += 1;
    }

    /// Takes note of the writes that have completed since the last one began. The list of free slots is a stack, so
    /// that only its end has changed.
    fn settle(&mut self, slot: u32, free: &[Slot]) {
        self.settled = self.settled.min(free.len());
        for slot in &free[self.settled..] {
            self.completed(slot.index());
        }
        self.settled = free.len();
        self.completed(slot);
    }

    fn completed(&mut self, slot: u32) {
        let number = std::mem::replace(&mut self.in_slot[slot as usize], IDLE);
        if number != IDLE {
            self.overlap = self.overlap.max(self.writes - number - 1);
        }
    }

    /// The signed writes, after every write has completed.
    pub(crate) fn finish(mut self) -> Signed {
        for slot in 0..self.in_slot.len() as u32 {
            self.completed(slot);
        }
        Signed {
            worker: self.worker,
            writes: self.writes,
            overlap: self.overlap,
        }
    }
}

/// The smallest piece that storage writes as a whole, and that a checksum guards.
pub(crate) const SECTOR: usize = 512;

const MAGIC: [u8; 8] = *b"iolabVfy";

/// Bytes of the header before the checksum.
const SUMMED: usize = 32;

/// Bytes of the header.
const HEADER: usize = SUMMED + 4;

/// Bits of a generation that number the writes of a thread.
const NUMBER_BITS: u32 = 48;

/// A write of a trial: the thread, and the number of its earlier writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(pub(crate) u64);

impl Generation {
    /// The write of this number, from 0, of a thread.
    #[inline]
    pub(crate) fn new(thread: u32, number: u64) -> Self {
        debug_assert!(thread < 1 << 16 && number < 1 << NUMBER_BITS);
        Self((u64::from(thread) << NUMBER_BITS) | number)
    }

    pub(crate) fn thread(self) -> u32 {
        (self.0 >> NUMBER_BITS) as u32
    }

    pub(crate) fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

/// Checksum of a sector's payload, to be continued over its header.
fn payload_checksum(sector: &[u8]) -> u32 {
    crc32c::crc32c(&sector[HEADER..])
}

/// Writes the header of a sector whose payload is in place.
#[inline]
fn seal(sector: &mut [u8], offset: u64, trial: u64, generation: Generation, payload_checksum: u32) {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&offset.to_le_bytes());
    header[16..24].copy_from_slice(&trial.to_le_bytes());
    header[24..32].copy_from_slice(&generation.0.to_le_bytes());
    let checksum = crc32c::crc32c_append(payload_checksum, &header[..SUMMED]);
    header[SUMMED..].copy_from_slice(&checksum.to_le_bytes());
    sector[..HEADER].copy_from_slice(&header);
}

/// The content of a sector that was read at `offset`, as seen by the trial that wrote there.
pub(crate) fn inspect(sector: &[u8], offset: u64, trial: u64) -> FoundInstead {
    let field = |at: usize| {
        let bytes: [u8; 8] = std::array::from_fn(|byte| sector[at + byte]);
        u64::from_le_bytes(bytes)
    };
    let checksum = crc32c::crc32c_append(payload_checksum(sector), &sector[..SUMMED]);
    let is_ours = sector[..8] == MAGIC;
    if is_ours && sector[SUMMED..HEADER] == checksum.to_le_bytes() {
        return match (field(8), field(16)) {
            (_, other) if other != trial => FoundInstead::Earlier,
            (place, _) if place != offset => FoundInstead::MadeFor(place),
            _ => written(Generation(field(24))),
        };
    }
    if sector.iter().all(|byte| *byte == 0) {
        FoundInstead::Zeros
    } else if is_ours || field(8) == offset || field(16) == trial {
        // One of three fields that no other data has by chance is enough to know a damaged header.
        FoundInstead::Damaged
    } else {
        FoundInstead::Unknown
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use needs::settings;

    fn setup(depth: u32) -> (Buffers, Signer) {
        let spec = settings(&format!("bs=1024 depth={depth} read_percent=0"));
        let mut buffers = Buffers::new(&spec, 2).expect("memory");
        let signer = Signer::new(&spec, 2, 9, &mut buffers);
        (buffers, signer)
    }

    fn take(buffers: &mut Buffers) -> Slot {
        buffers.take().expect("a slot")
    }

    #[test]
    fn overlap_counts_writes_until_the_slot_is_free() {
        let (mut buffers, mut signer) = setup(3);
        let (mut third, mut second) = (take(&mut buffers), take(&mut buffers));
        let first = take(&mut buffers);
        signer.sign(&mut third, 0, &[]);
        signer.sign(&mut second, 0, &[]);
        buffers.put(first);
        // The second's slot becomes free again and again, the first's does not.
        for _ in 0..4 {
            signer.sign(&mut second, 0, buffers.home());
        }
        buffers.put(second);
        signer.sign(&mut third, 0, buffers.home());
        assert_eq!(signer.finish().overlap, 5);
    }

    #[test]
    fn a_long_idle_slot_makes_no_overlap() {
        let (mut buffers, mut signer) = setup(2);
        let (mut second, mut first) = (take(&mut buffers), take(&mut buffers));
        signer.sign(&mut second, 0, &[]);
        signer.sign(&mut first, 0, &[]);
        buffers.put(second);
        for _ in 0..100 {
            signer.sign(&mut first, 0, buffers.home());
        }
        let mut second = take(&mut buffers);
        buffers.put(first);
        signer.sign(&mut second, 0, buffers.home());
        assert_eq!(signer.finish().overlap, 1);
    }

    fn sealed(payload: u8, offset: u64, trial: u64, generation: Generation) -> Vec<u8> {
        let mut sector = vec![payload; SECTOR];
        let checksum = payload_checksum(&sector);
        seal(&mut sector, offset, trial, generation, checksum);
        sector
    }

    proptest! {
        #[test]
        fn a_sealed_sector_is_recognised(
            payload: u8, offset: u64, trial: u64, thread in 0u32..1024, number in 0u64..1 << 48,
        ) {
            let generation = Generation::new(thread, number);
            prop_assert_eq!((generation.thread(), generation.number()), (thread, number));
            let sector = sealed(payload, offset, trial, generation);
            prop_assert_eq!(inspect(&sector, offset, trial), written(generation));
            prop_assert_eq!(inspect(&sector, offset, !trial), FoundInstead::Earlier);
            prop_assert_eq!(inspect(&sector, !offset, trial), FoundInstead::MadeFor(offset));
        }

        #[test]
        fn any_flipped_bit_is_found(payload: u8, offset: u64, trial: u64, bit in 0..SECTOR * 8) {
            let mut sector = sealed(payload, offset, trial, Generation::new(3, 17));
            sector[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(inspect(&sector, offset, trial), FoundInstead::Damaged);
        }
    }

    #[test]
    fn zeros_and_foreign_data_are_distinguished() {
        assert_eq!(inspect(&[0; SECTOR], 0, 1), FoundInstead::Zeros);
        assert_eq!(inspect(&[0; SECTOR], 4096, 1), FoundInstead::Zeros);
        assert_eq!(inspect(&[7; SECTOR], 4096, 1), FoundInstead::Unknown);
    }
}
