//! Makes the blocks of one worker verifiable, right before each is written.

use super::format::{Generation, SECTOR, payload_checksum, seal};
use crate::buffer::{Buffers, Slot};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::tests::settings;

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
    fn consecutive_writes_do_not_overlap() {
        let (mut buffers, mut signer) = setup(1);
        let mut slot = take(&mut buffers);
        for number in 0..5 {
            signer.sign(&mut slot, number * 1024, &[]);
        }
        let signed = signer.finish();
        assert_eq!((signed.worker, signed.writes, signed.overlap), (2, 5, 0));
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
}
