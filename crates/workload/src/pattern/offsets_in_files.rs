//! Offsets in several files of one worker, which take turns.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Offsets, Permutation, below, derive};
use crate::trial::{FileLayout, FileOrder, FileSet, Others, TrialSpec};

/// The purposes of keys: offsets in each file, which file is next, and in which order they begin.
const OFFSETS: u64 = 3 << 48;
const TURNS: u64 = 4 << 48;
const BEGINS: u64 = 5 << 48;

/// The order in which a worker visits its files, and the order within each. All of them are visited once before any is
/// visited again.
#[derive(Debug, Clone)]
pub(super) struct InFiles {
    files: Vec<Visited>,
    slot: u64,
    bs: u64,
    order: FileOrder,
    rng: Xoshiro256PlusPlus,
    /// Numbers of the files that have requests now.
    open: Vec<usize>,
    /// Place in `open` of the file whose turn it is, and how many more requests it has in this turn.
    turn: usize,
    left_of_turn: u32,
    /// Place in `open` of the file that has the next turn, if they go round.
    next_turn: usize,
    /// Files that have begun in this pass.
    begun: u64,
    /// Most files that have requests at the same time.
    most_open: usize,
    seed: u64,
    pass: u64,
    /// The order in which the files of a pass begin; `None`: by number.
    begins: Option<Permutation>,
}

/// One file.
#[derive(Debug, Clone)]
struct Visited {
    offsets: Offsets,
    bytes: u64,
    /// Bytes that are left of this visit.
    left: u64,
}

impl InFiles {
    pub(super) fn new(spec: &TrialSpec, worker: u32, set: FileSet) -> Self {
        let own = derive(spec.seed, u64::from(spec.number_of(worker)) + 1);
        let of_file = |(number, bytes): (u64, u64)| {
            let alone = TrialSpec {
                files: None,
                layout: FileLayout::Shared,
                region: bytes,
                threads: 1,
                others: Others::default(),
                seed: derive(own, OFFSETS | number),
                ..spec.clone()
            };
            Visited {
                offsets: Offsets::new(&alone, 0),
                bytes,
                left: bytes,
            }
        };
        let files: Vec<Visited> = (0..).zip(spec.private_files(worker)).map(of_file).collect();
        let most_open = set.in_service() as usize;
        let mut visits = Self {
            slot: spec.file_slot(),
            bs: spec.bs,
            order: set.order,
            rng: Xoshiro256PlusPlus::seed_from_u64(derive(own, TURNS)),
            open: Vec::with_capacity(most_open),
            turn: 0,
            left_of_turn: 0,
            next_turn: 0,
            begun: 0,
            most_open,
            seed: own,
            pass: 0,
            begins: None,
            files,
        };
        visits.begin_pass();
        visits
    }

    /// Bytes of all slots.
    pub(super) fn slots(&self) -> u64 {
        self.slot.saturating_mul(self.files.len() as u64)
    }

    /// The next offset: of a block, or of a request with this length and alignment, bytes.
    #[inline(never)]
    pub(super) fn advance(&mut self, request: Option<(u64, u64)>) -> u64 {
        if self.left_of_turn == 0 {
            self.take_turn();
        }
        self.left_of_turn -= 1;
        let number = self.open[self.turn];
        let file = &mut self.files[number];
        let (within, len) = match request {
            None => (file.offsets.next_offset(), self.bs),
            Some((len, start)) => (file.offsets.next_offset_of(len, start), len),
        };
        file.left = file.left.saturating_sub(len);
        if file.left == 0 {
            file.left = file.bytes;
            self.end_visit();
        }
        number as u64 * self.slot + within
    }

    fn take_turn(&mut self) {
        let count = self.open.len();
        (self.turn, self.left_of_turn) = match self.order {
            FileOrder::RoundRobin(requests) => (self.next_turn % count, requests),
            FileOrder::Random(requests) => (below(&mut self.rng, count as u64) as usize, requests),
            FileOrder::Sequential => (0, u32::MAX),
        };
        self.next_turn = self.turn + 1;
    }

    /// Replaces the file whose turn it is by the next one that begins, if there is one.
    fn end_visit(&mut self) {
        self.left_of_turn = 0;
        match self.next_begin() {
            Some(number) => self.open[self.turn] = number,
            None => {
                self.open.remove(self.turn);
                self.next_turn = self.turn;
            }
        }
        if self.open.is_empty() {
            self.pass += 1;
            self.begin_pass();
        }
    }

    fn begin_pass(&mut self) {
        self.begun = 0;
        self.next_turn = 0;
        let key = derive(self.seed, BEGINS | self.pass);
        self.begins = match self.order {
            FileOrder::Random(_) => Some(Permutation::new(self.files.len() as u64, key)),
            FileOrder::RoundRobin(_) | FileOrder::Sequential => None,
        };
        while self.open.len() < self.most_open
            && let Some(number) = self.next_begin()
        {
            self.open.push(number);
        }
    }

    fn next_begin(&mut self) -> Option<usize> {
        let place = self.begun;
        if place == self.files.len() as u64 {
            return None;
        }
        self.begun += 1;
        let number = self
            .begins
            .as_ref()
            .map_or(place, |order| order.apply(place));
        Some(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::trial::Pattern;

    fn spec(files: &str, pattern: Pattern, blocks: u64, threads: u32) -> TrialSpec {
        TrialSpec {
            files: Some(files.parse().expect("files")),
            layout: FileLayout::Private,
            pattern,
            region: blocks * 4096,
            threads,
            ..TrialSpec::default()
        }
    }

    /// File and block number of each of the worker's first `requests` requests.
    fn visits(spec: &TrialSpec, worker: u32, requests: u64) -> Vec<(u64, u64)> {
        let slot = spec.file_slot();
        let mut offsets = Offsets::new(spec, worker);
        (0..requests)
            .map(|_| offsets.next_offset())
            .map(|offset| (offset / slot, offset % slot / 4096))
            .collect()
    }

    proptest! {
        #[test]
        fn each_pass_visits_every_block_once(
            seed: u64, count in 1u32..40, spread in 1u32..6, open in 1u32..40, threads in 1u32..4, more in 0u64..200,
            order in prop::sample::select(vec!["roundrobin", "roundrobin:3", "random", "random:5", "sequential"]),
            pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Reverse, Pattern::Rand]),
        ) {
            let text = format!("{count}/spread={spread}/{order}/open={}", open.min(count));
            let smallest = spec(&text, pattern, 1, threads).smallest_region() / 4096;
            let spec = TrialSpec { seed, ..spec(&text, pattern, smallest + more, threads) };
            spec.check().expect("possible");
            for worker in 0..threads {
                let sizes = spec.private_files(worker);
                let blocks: u64 = sizes.iter().sum::<u64>() / 4096;
                prop_assert_eq!(blocks * 4096, spec.private_bytes(worker));
                let seen = visits(&spec, worker, 2 * blocks);
                for pass in seen.chunks(blocks as usize) {
                    let distinct: BTreeSet<_> = pass.iter().collect();
                    prop_assert_eq!(distinct.len() as u64, blocks);
                    for (file, block) in pass {
                        prop_assert!(*block < sizes[*file as usize] / 4096);
                    }
                    let in_service = spec.files.expect("files").in_service() as usize;
                    prop_assert!(most_begun(pass, &sizes) <= in_service);
                }
            }
        }
    }

    /// Most files that were visited in part at the same time.
    fn most_begun(pass: &[(u64, u64)], sizes: &[u64]) -> usize {
        let mut left: BTreeMap<u64, u64> = BTreeMap::new();
        let mut most = 0;
        for (file, _) in pass {
            let blocks = sizes[*file as usize] / 4096;
            *left.entry(*file).or_insert(blocks) -= 1;
            most = most.max(left.len());
            left.retain(|_, blocks| *blocks > 0);
        }
        most
    }

    #[test]
    fn files_take_turns_in_the_requested_order() {
        let files = |text: &str| -> Vec<u64> {
            let seen = visits(&spec(text, Pattern::Seq, 9, 1), 0, 9);
            seen.into_iter().map(|(file, _)| file).collect()
        };
        assert_eq!(files("3"), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(files("3/roundrobin:2"), [0, 0, 1, 1, 2, 2, 0, 1, 2]);
        assert_eq!(files("3/sequential"), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(files("3/open=2"), [0, 1, 0, 1, 0, 1, 2, 2, 2]);
    }

    #[test]
    fn random_turns_are_even_and_differ_by_worker() {
        let spec = spec("8/random", Pattern::RandReplace, 8 * 4000, 2);
        let seen = |worker| visits(&spec, worker, 8000);
        let counts = |worker| {
            let mut counts = [0u32; 8];
            for (file, _) in seen(worker) {
                counts[file as usize] += 1;
            }
            counts
        };
        // Six standard deviations of the binomial around the mean.
        let bound = 6.0 * (8000.0 * 0.125 * 0.875f64).sqrt();
        for count in counts(0) {
            assert!((f64::from(count) - 1000.0).abs() < bound, "{count}");
        }
        assert_ne!(seen(0), seen(1));
    }
}
