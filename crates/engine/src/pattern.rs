//! Offsets: sequential, strided, reverse, random permutation, random with replacement, zipf.
//!
//! An [`Offsets`] belongs to one worker and is an endless stream of byte offsets. Its memory
//! does not depend on the number of blocks. Patterns that visit every block divide the blocks
//! between the workers: all workers together make one pass.

use crate::request::Action;
use iolab_spec::trial::share;
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use iolab_spec::trial::{FirstOffset, Layout, Pattern, TrialSpec, Zone, Zones};

/// A keyed permutation of `0..blocks` in constant memory.
///
/// Rounds of invertible steps on the next power of two (add a key, multiply by an odd key, fold
/// the high half down), followed by cycle walking: a value outside is permuted again until it
/// falls inside, which keeps the map a bijection and takes fewer than two rounds on average.
/// Source: A. Kensler, "Correlated Multi-Jittered Sampling", Pixar TM 13-01 (2013), section 3;
/// cycle walking: J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains" (2002).
#[derive(Debug, Clone)]
pub struct Permutation {
    blocks: u64,
    mask: u64,
    shift: u32,
    add: [u64; ROUNDS],
    multiply: [u64; ROUNDS],
}

const ROUNDS: usize = 4;
/// The purpose of the key that draws where an ordered pattern begins.
const FIRST: u64 = 1 << 48;

impl Permutation {
    /// The permutation of `0..blocks` that belongs to `key`; `blocks` is at least 1.
    pub fn new(blocks: u64, key: u64) -> Self {
        assert!(blocks > 0, "a permutation of nothing");
        let mask = blocks.next_power_of_two() - 1;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(key);
        Self {
            blocks,
            mask,
            shift: mask.count_ones().div_ceil(2).max(1),
            add: std::array::from_fn(|_| rng.next_u64()),
            multiply: std::array::from_fn(|_| rng.next_u64() | 1),
        }
    }

    /// Where `index` goes; `index` is below the number of blocks.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            for round in 0..ROUNDS {
                x = x
                    .wrapping_add(self.add[round])
                    .wrapping_mul(self.multiply[round])
                    & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.blocks {
                return x;
            }
        }
    }
}

/// One worker's endless stream of offsets.
#[derive(Debug, Clone)]
pub struct Offsets {
    kind: Order,
    bs: u64,
    /// Where the worker's share of the region begins, bytes.
    base: u64,
    /// Length of what a random order draws from, bytes.
    length: u64,
}

#[derive(Debug, Clone)]
enum Order {
    Seq {
        next: u64,
        step: u64,
        end: u64,
    },
    Reverse {
        next: u64,
        step: u64,
        end: u64,
    },
    Strided(Strided),
    Rand(Shuffled),
    RandReplace {
        rng: Xoshiro256PlusPlus,
        blocks: u64,
    },
    Zipf(Box<Popular>),
    Zoned(Box<Zoned>),
}

#[derive(Debug, Clone)]
struct Strided {
    next: u64,
    phase: u64,
    length: u64,
    stride: u64,
}

#[derive(Debug, Clone)]
struct Shuffled {
    permutation: Permutation,
    next: u64,
    first: u64,
    step: u64,
    seed: u64,
    pass: u64,
}

#[derive(Debug, Clone)]
struct Popular {
    rng: Xoshiro256PlusPlus,
    rank: Zipf<f64>,
    scatter: Permutation,
}

#[derive(Debug, Clone)]
struct Zoned {
    rng: Xoshiro256PlusPlus,
    zones: Vec<Zone>,
}

/// A key for one purpose, derived from a seed (SplitMix64's output function, Steele et al. 2014).
pub(crate) fn derive(seed: u64, purpose: u64) -> u64 {
    let mut z = seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Offsets {
    /// The stream of worker `worker` of `spec`, which has passed [`TrialSpec::check`].
    pub fn new(spec: &TrialSpec, worker: u32) -> Self {
        let worker = spec.number_of(worker);
        let own = derive(spec.seed, u64::from(worker) + 1);
        let mut part = Share {
            blocks: spec.region / spec.bs,
            bs: spec.bs,
            worker,
            workers: spec.workers(),
            interleaved: spec.layout == Layout::Interleaved,
            seed: spec.seed,
            own,
            turned: spec.first_offset == FirstOffset::Random,
        };
        let alone = match spec.layout {
            // In a file that has the size of a share.
            Layout::Private => Some(share(part.blocks, worker, spec.workers()).1),
            Layout::Overlapping => Some(part.blocks),
            Layout::Shared | Layout::Interleaved => None,
        };
        if let Some(blocks) = alone {
            part = Share {
                blocks,
                worker: 0,
                workers: 1,
                seed: own,
                ..part
            };
        }
        let (start, kind) = match spec.pattern {
            Pattern::Seq => part.seq(),
            Pattern::Reverse => part.reverse(),
            Pattern::Strided => part.strided(spec.skip),
            Pattern::Rand => (0, Order::Rand(part.shuffled())),
            Pattern::RandReplace => (0, part.replaced()),
            Pattern::Zipf(theta) => (0, Order::Zipf(Box::new(part.popular(theta)))),
            Pattern::Zoned(zones) => (0, Order::Zoned(Box::new(part.zoned(zones)))),
        };
        Self {
            kind,
            bs: spec.bs,
            base: spec.offset + start,
            length: part.blocks * spec.bs,
        }
    }

    /// The next offset.
    #[inline(always)]
    pub fn next_offset(&mut self) -> u64 {
        let relative = match &mut self.kind {
            Order::Seq { next, step, end } => {
                let at = *next;
                *next = if at + *step < *end { at + *step } else { 0 };
                at
            }
            Order::Reverse { next, step, end } => {
                if *next == 0 {
                    *next = *end;
                }
                *next -= *step;
                *next
            }
            Order::Strided(strided) => strided.advance(self.bs),
            Order::Rand(shuffled) => shuffled.advance() * self.bs,
            Order::RandReplace { rng, blocks } => below(rng, *blocks) * self.bs,
            Order::Zipf(popular) => popular.draw() * self.bs,
            Order::Zoned(zoned) => zoned.draw() * self.bs,
        };
        self.base + relative
    }

    /// The next offset of a request of `len` bytes, a multiple of the block size. Ordered requests follow each other; a
    /// random one begins at a block that was drawn, or so far before it that it ends where the region does.
    pub fn next_offset_of(&mut self, len: u64) -> u64 {
        let relative = match &mut self.kind {
            Order::Seq { next, end, .. } => {
                let at = if *next + len > *end { 0 } else { *next };
                *next = at + len;
                at
            }
            Order::Reverse { next, end, .. } => {
                let before = if *next < len { *end } else { *next };
                *next = before - len;
                *next
            }
            _ => (self.next_offset() - self.base).min(self.length - len),
        };
        self.base + relative
    }
}

/// A draw from `0..bound`: Lemire's multiplication maps it to a range without division; its bias is below 2^-16.
#[inline(always)]
fn below(rng: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// What falls to one worker, and the seeds it draws from.
struct Share {
    /// Blocks of the region, or of the worker's own file.
    blocks: u64,
    bs: u64,
    worker: u32,
    workers: u32,
    /// Blocks are dealt out in turn.
    interleaved: bool,
    /// Common to all workers of a region.
    seed: u64,
    /// The worker's own.
    own: u64,
    /// Whether an ordered pattern begins at a block that is drawn.
    turned: bool,
}

impl Share {
    /// First byte, distance from block to block, and that distance times the number of blocks, of an ordered pattern.
    fn ordered(&self) -> (u64, u64, u64) {
        let (first, count) = share(self.blocks, self.worker, self.workers);
        if self.interleaved {
            let step = self.bs * u64::from(self.workers);
            (u64::from(self.worker) * self.bs, step, count * step)
        } else {
            (first * self.bs, self.bs, count * self.bs)
        }
    }

    /// Which of so many blocks an ordered pattern begins with. Workers that take blocks in turn begin with neighbours.
    fn first_of(&self, blocks: u64) -> u64 {
        match (self.turned, self.interleaved) {
            (false, _) => 0,
            (true, false) => derive(self.own, FIRST) % blocks.max(1),
            (true, true) => {
                derive(self.seed, FIRST) % (self.blocks / u64::from(self.workers)).max(1)
            }
        }
    }

    fn seq(&self) -> (u64, Order) {
        let (start, step, end) = self.ordered();
        let next = self.first_of(end / step) * step;
        (start, Order::Seq { next, step, end })
    }

    fn reverse(&self) -> (u64, Order) {
        let (start, step, end) = self.ordered();
        let next = end - self.first_of(end / step) * step;
        (start, Order::Reverse { next, step, end })
    }

    fn strided(&self, skip: u64) -> (u64, Order) {
        let (start, _, length) = self.ordered();
        let stride = self.bs + skip;
        let first = self.first_of(length / self.bs) * self.bs;
        let phase = first % stride / self.bs * self.bs;
        // Not every block can be a phase, nor lie on one.
        let fits = phase + self.bs <= stride.min(length);
        let phase = if fits { phase } else { 0 };
        let next = phase + first / stride * stride;
        let strided = Strided {
            next: if next + self.bs <= length {
                next
            } else {
                phase
            },
            phase,
            length,
            stride,
        };
        (start, Order::Strided(strided))
    }

    fn shuffled(&self) -> Shuffled {
        Shuffled {
            permutation: self.permutation(),
            next: u64::from(self.worker),
            first: u64::from(self.worker),
            step: u64::from(self.workers),
            seed: self.seed,
            pass: 0,
        }
    }

    fn replaced(&self) -> Order {
        Order::RandReplace {
            rng: Xoshiro256PlusPlus::seed_from_u64(self.own),
            blocks: self.blocks,
        }
    }

    fn popular(&self, theta: f64) -> Popular {
        Popular {
            rng: Xoshiro256PlusPlus::seed_from_u64(self.own),
            rank: Zipf::new(self.blocks as f64, theta).expect("checked with the pattern"),
            scatter: self.permutation(),
        }
    }

    fn zoned(&self, zones: Zones) -> Zoned {
        Zoned {
            rng: Xoshiro256PlusPlus::seed_from_u64(self.own),
            zones: zones.of(self.blocks),
        }
    }

    fn permutation(&self) -> Permutation {
        Permutation::new(self.blocks, derive(self.seed, 0))
    }
}

impl Strided {
    #[inline]
    fn advance(&mut self, bs: u64) -> u64 {
        let at = self.next;
        self.next += self.stride;
        if self.next + bs > self.length {
            self.phase += bs;
            // A phase must fit between two blocks of the phase before, and into the share.
            if self.phase + bs > self.stride.min(self.length) {
                self.phase = 0;
            }
            self.next = self.phase;
        }
        at
    }
}

impl Shuffled {
    #[inline]
    fn advance(&mut self) -> u64 {
        if self.next >= self.permutation.blocks {
            self.pass += 1;
            self.next = self.first;
            let key = derive(self.seed, self.pass << 32);
            self.permutation = Permutation::new(self.permutation.blocks, key);
        }
        let block = self.permutation.apply(self.next);
        self.next += self.step;
        block
    }
}

impl Popular {
    fn draw(&mut self) -> u64 {
        let rank = self.rank.sample(&mut self.rng) as u64;
        self.scatter.apply(rank.clamp(1, self.scatter.blocks) - 1)
    }
}

impl Zoned {
    fn draw(&mut self) -> u64 {
        let percent = below(&mut self.rng, 100);
        let is_it = |zone: &&Zone| percent < u64::from(zone.up_to);
        match self.zones.iter().find(is_it) {
            Some(zone) => zone.first + below(&mut self.rng, zone.blocks),
            None => 0,
        }
    }
}

/// Decides which requests read, from a seed, at a fixed share.
#[derive(Debug, Clone)]
pub struct Mix {
    rng: Xoshiro256PlusPlus,
    read_percent: u8,
}

impl Mix {
    /// The mix of worker `worker`.
    pub fn new(spec: &TrialSpec, worker: u32) -> Self {
        let key = derive(spec.seed, (u64::from(spec.number_of(worker)) + 1) << 16);
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(key),
            read_percent: spec.read_percent,
        }
    }

    /// What the next request does.
    #[inline(always)]
    pub(crate) fn next_action(&mut self) -> Action {
        match self.next_is_read() {
            true => Action::Read,
            false => Action::Write,
        }
    }

    /// Whether the next request reads.
    #[inline(always)]
    pub fn next_is_read(&mut self) -> bool {
        match self.read_percent {
            100 => true,
            0 => false,
            percent => ((self.rng.next_u64() >> 32) * 100) >> 32 < u64::from(percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_spec::trial::share;
    use std::collections::HashSet;

    use iolab_spec::trial::Others;
    use proptest::prelude::*;

    use super::*;
    use crate::worker::quota;

    fn spec(pattern: Pattern, bs: u64, blocks: u64, threads: u32) -> TrialSpec {
        TrialSpec {
            pattern,
            bs,
            region: bs * blocks,
            threads,
            ..TrialSpec::default()
        }
    }

    fn pass(spec: &TrialSpec, worker: u32, count: u64) -> Vec<u64> {
        let mut offsets = Offsets::new(spec, worker);
        (0..count).map(|_| offsets.next_offset()).collect()
    }

    /// The inverse, step by step: its existence at any size shows that every block comes exactly once.
    fn invert(p: &Permutation, value: u64) -> u64 {
        let inverse_of = |odd: u64| {
            // Newton's iteration for the inverse modulo 2^64.
            (0..6).fold(odd, |x, _| {
                x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)))
            })
        };
        let mut x = value;
        loop {
            for round in (0..ROUNDS).rev() {
                let (mut unfolded, mut shift) = (x, p.shift);
                while shift < 64 {
                    unfolded = x ^ (unfolded >> p.shift);
                    shift += p.shift;
                }
                x = unfolded
                    .wrapping_mul(inverse_of(p.multiply[round]))
                    .wrapping_sub(p.add[round])
                    & p.mask;
            }
            if x < p.blocks {
                return x;
            }
        }
    }

    proptest! {
        #[test]
        fn permutation_visits_each_block_once(blocks in 1u64..5_000, key: u64) {
            let p = Permutation::new(blocks, key);
            let seen: HashSet<u64> = (0..blocks).map(|i| p.apply(i)).collect();
            prop_assert_eq!(seen.len() as u64, blocks);
            prop_assert!(seen.iter().all(|b| *b < blocks));
        }

        #[test]
        fn permutation_is_a_bijection_up_to_2_48(
            bits in 1u32..=48, below: u64, index: u64, key: u64
        ) {
            let blocks = (1u64 << bits) - below % (1u64 << (bits - 1)).max(1);
            let index = index % blocks;
            let p = Permutation::new(blocks, key);
            let image = p.apply(index);
            prop_assert!(image < blocks);
            prop_assert_eq!(invert(&p, image), index);
        }

        #[test]
        fn workers_together_make_one_pass(
            blocks in 1u64..400, threads in 1u32..9, seed: u64,
            pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Reverse, Pattern::Rand]),
            layout in prop::sample::select(vec![Layout::Shared, Layout::Interleaved]),
            first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
        ) {
            prop_assume!(u64::from(threads) <= blocks);
            let spec = TrialSpec { seed, layout, first_offset, offset: 1 << 20, ..spec(pattern, 512, blocks, threads) };
            for passes in 1..=2 {
                let mut seen: Vec<u64> = (0..threads)
                    .flat_map(|t| {
                        let count = share(blocks, t, threads).1;
                        pass(&spec, t, passes * count).split_off(((passes - 1) * count) as usize)
                    })
                    .collect();
                seen.sort_unstable();
                let all: Vec<u64> = (0..blocks).map(|b| (1 << 20) + b * 512).collect();
                prop_assert_eq!(seen, all);
            }
        }

        #[test]
        fn zones_get_their_share_of_the_requests(
            blocks in 100u64..100_000, threads in 1u32..4, seed: u64, first in 1u64..99, share in 1u64..99,
        ) {
            let zones = format!("zones:{share}/{first}:{}/{}", 100 - share, 100 - first);
            let spec = TrialSpec { seed, offset: 1 << 20, ..spec(zones.parse().expect("zones"), 4096, blocks, threads) };
            const DRAWS: u64 = 4000;
            for worker in 0..threads {
                let drawn: Vec<u64> = pass(&spec, worker, DRAWS).iter().map(|at| (at - (1 << 20)) / 4096).collect();
                prop_assert!(drawn.iter().all(|block| *block < blocks));
                let inside = drawn.iter().filter(|block| **block < blocks * first / 100).count() as f64;
                let p = share as f64 / 100.0;
                // Six standard deviations of the binomial distribution.
                let bound = 6.0 * (DRAWS as f64 * p * (1.0 - p)).sqrt();
                prop_assert!((inside - DRAWS as f64 * p).abs() <= bound, "{inside} of {DRAWS} for {zones}");
            }
        }

        #[test]
        fn processes_together_touch_each_block_of_the_region_once(
            blocks in 1u64..400, ranks in 1u32..7, threads in 1u32..5, bs in 1u64..9_000, slack in 0u64..9_000, seed: u64,
            pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Reverse, Pattern::Rand]),
            layout in prop::sample::select(vec![Layout::Shared, Layout::Interleaved]),
        ) {
            let workers = ranks * threads;
            prop_assume!(u64::from(workers) <= blocks);
            let region = blocks * bs + slack % bs;
            let of_rank = |rank: u32| {
                let before = rank * threads;
                let others = Others { before, after: workers - threads - before };
                TrialSpec { seed, layout, region, others, ..spec(pattern, bs, blocks, threads) }
            };
            let mut seen = Vec::new();
            for rank in 0..ranks {
                let spec = of_rank(rank);
                prop_assert!(spec.check().is_ok());
                for worker in 0..threads {
                    seen.extend(pass(&spec, worker, quota(&spec, worker)));
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..blocks).map(|block| block * bs).collect::<Vec<_>>());
            let private: u64 = (0..ranks)
                .flat_map(|rank| (0..threads).map(move |worker| (rank, worker)))
                .map(|(rank, worker)| of_rank(rank).private_bytes(worker))
                .sum();
            prop_assert_eq!(private, blocks * bs);
        }

        #[test]
        fn a_process_does_what_its_threads_would_do_among_all(
            blocks in 16u64..400, seed: u64, first in 0u32..4,
            pattern in prop::sample::select(vec![
                Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::RandReplace, Pattern::Zipf(1.2),
            ]),
            layout in prop::sample::select(vec![
                Layout::Shared, Layout::Interleaved, Layout::Overlapping, Layout::Private,
            ]),
        ) {
            let all = TrialSpec { seed, layout, read_percent: 50, ..spec(pattern, 512, blocks, 4) };
            let others = Others { before: first, after: 3 - first };
            let alone = TrialSpec { threads: 1, others, ..all.clone() };
            prop_assert_eq!(pass(&alone, 0, 50), pass(&all, first, 50));
            prop_assert_eq!(alone.private_bytes(0), all.private_bytes(first));
            prop_assert_eq!(quota(&alone, 0), quota(&all, first));
            let (mut one, mut other) = (Mix::new(&alone, 0), Mix::new(&all, first));
            prop_assert!((0..50).all(|_| one.next_is_read() == other.next_is_read()));
        }

        #[test]
        fn each_worker_makes_one_pass_over_its_own_file(
            blocks in 1u64..400, threads in 1u32..9, seed: u64,
            pattern in prop::sample::select(vec![
                Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::Strided,
            ]),
            first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
        ) {
            prop_assume!(u64::from(threads) <= blocks);
            let spec = TrialSpec { seed, first_offset, layout: Layout::Private, ..spec(pattern, 512, blocks, threads) };
            for worker in 0..threads {
                let count = share(blocks, worker, threads).1;
                let mut seen = pass(&spec, worker, 2 * count).split_off(count as usize);
                seen.sort_unstable();
                prop_assert_eq!(count * 512, spec.private_bytes(worker));
                prop_assert_eq!(seen, (0..count).map(|block| block * 512).collect::<Vec<_>>());
            }
        }

        #[test]
        fn overlapping_workers_make_a_pass_each(
            blocks in 1u64..400, threads in 1u32..9, seed: u64,
            pattern in prop::sample::select(vec![
                Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::Strided,
            ]),
            first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
        ) {
            let spec = TrialSpec { seed, first_offset, layout: Layout::Overlapping, ..spec(pattern, 512, blocks, threads) };
            for worker in 0..threads {
                let mut seen = pass(&spec, worker, blocks);
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..blocks).map(|block| block * 512).collect::<Vec<_>>());
            }
        }

        #[test]
        fn every_offset_is_aligned_and_inside(
            blocks in 1u64..2_000, threads in 1u32..5, skip_blocks in 0u64..50, bs in 1u64..9_000,
            slack in 0u64..9_000,
            pattern in prop::sample::select(vec![
                Pattern::Seq, Pattern::Reverse, Pattern::Strided, Pattern::Rand,
                Pattern::RandReplace, Pattern::Zipf(1.2),
            ]),
            layout in prop::sample::select(vec![
                Layout::Shared, Layout::Interleaved, Layout::Overlapping, Layout::Private,
            ]),
            first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
        ) {
            prop_assume!(u64::from(threads) <= blocks);
            prop_assume!(layout != Layout::Interleaved || pattern != Pattern::Strided);
            let spec = TrialSpec {
                layout,
                first_offset,
                skip: skip_blocks * bs,
                region: blocks * bs + slack % bs,
                ..spec(pattern, bs, blocks, threads)
            };
            for worker in 0..threads {
                for offset in pass(&spec, worker, 600) {
                    prop_assert_eq!(offset % bs, 0);
                    let end = match layout {
                        Layout::Private => spec.private_bytes(worker),
                        Layout::Shared | Layout::Interleaved | Layout::Overlapping => spec.region,
                    };
                    prop_assert!(offset + bs <= end);
                }
            }
        }

        #[test]
        fn strided_visits_each_block_once_when_phases_tile(
            blocks in 1u64..500, skip_blocks in 0u64..600, seed: u64,
            first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
        ) {
            let spec = TrialSpec { seed, first_offset, skip: skip_blocks * 4096, ..spec(Pattern::Strided, 4096, blocks, 1) };
            let seen: HashSet<u64> = pass(&spec, 0, blocks).into_iter().collect();
            prop_assert_eq!(seen.len() as u64, blocks);
        }

        #[test]
        fn mix_keeps_its_share(percent in 0u8..=100, seed: u64) {
            let spec = TrialSpec { read_percent: percent, seed, ..TrialSpec::default() };
            let mut mix = Mix::new(&spec, 0);
            let reads = (0..10_000).filter(|_| mix.next_is_read()).count() as f64;
            // Six standard deviations of the binomial: about one false alarm in 5e8.
            prop_assert!((reads - 100.0 * f64::from(percent)).abs() <= 300.0);
        }
    }

    #[test]
    fn strided_reads_what_was_asked() {
        let spec = TrialSpec {
            skip: 8192,
            ..spec(Pattern::Strided, 4096, 10, 1)
        };
        let blocks: Vec<u64> = pass(&spec, 0, 11).into_iter().map(|o| o / 4096).collect();
        assert_eq!(blocks, [0, 3, 6, 9, 1, 4, 7, 2, 5, 8, 0]);
    }

    #[test]
    fn a_skip_that_is_no_multiple_leaves_what_does_not_fit() {
        let spec = TrialSpec {
            skip: 1024,
            ..spec(Pattern::Strided, 4096, 4, 1)
        };
        assert_eq!(pass(&spec, 0, 4), [0, 5120, 10240, 0]);
    }

    #[test]
    fn interleaved_workers_take_turns() {
        let spec = TrialSpec {
            layout: Layout::Interleaved,
            ..spec(Pattern::Seq, 4096, 7, 3)
        };
        let blocks = |worker| -> Vec<u64> {
            let offsets = pass(&spec, worker, 4).into_iter();
            offsets.map(|offset| offset / 4096).collect()
        };
        assert_eq!(blocks(0), [0, 3, 6, 0]);
        assert_eq!(blocks(1), [1, 4, 1, 4]);
        assert_eq!(blocks(2), [2, 5, 2, 5]);
    }

    #[test]
    fn trials_begin_at_different_blocks() {
        for pattern in [Pattern::Seq, Pattern::Reverse, Pattern::Strided] {
            let begins: HashSet<u64> = (0..20)
                .map(|seed| {
                    let spec = TrialSpec {
                        seed,
                        first_offset: FirstOffset::Random,
                        ..spec(pattern, 4096, 1 << 20, 1)
                    };
                    pass(&spec, 0, 1)[0]
                })
                .collect();
            assert!(begins.len() > 18, "{pattern}: {begins:?}");
        }
    }

    #[test]
    fn workers_that_take_turns_begin_as_neighbours() {
        let spec = TrialSpec {
            layout: Layout::Interleaved,
            first_offset: FirstOffset::Random,
            ..spec(Pattern::Seq, 4096, 3000, 3)
        };
        let first = pass(&spec, 0, 1)[0];
        assert!(first > 0);
        assert_eq!(pass(&spec, 1, 1)[0], first + 4096);
        assert_eq!(pass(&spec, 2, 1)[0], first + 8192);
    }

    #[test]
    fn passes_differ_and_seeds_differ() {
        let one = spec(Pattern::Rand, 512, 64, 1);
        let two = pass(&one, 0, 128);
        assert_ne!(two[..64], two[64..]);
        let other = TrialSpec {
            seed: 2,
            ..one.clone()
        };
        assert_ne!(pass(&one, 0, 64), pass(&other, 0, 64));
        assert_eq!(pass(&one, 0, 128), two);
    }

    /// Neighbours in a random order are far apart: the mean distance of a uniform shuffle is n/3.
    #[test]
    fn permutation_looks_random() {
        for (blocks, key) in [(1_000u64, 1), (4_096, 2), (262_144, 3), (1_000_003, 4)] {
            let p = Permutation::new(blocks, key);
            let mean = (1..10_000.min(blocks))
                .map(|i| p.apply(i).abs_diff(p.apply(i - 1)) as f64)
                .sum::<f64>()
                / (10_000.min(blocks) - 1) as f64;
            let ratio = mean / (blocks as f64 / 3.0);
            assert!((0.85..1.15).contains(&ratio), "{blocks}: {ratio}");
        }
    }

    #[test]
    fn zipf_prefers_few_blocks() {
        let spec = spec(Pattern::Zipf(1.2), 4096, 10_000, 1);
        let offsets = pass(&spec, 0, 20_000);
        let mut counts = std::collections::HashMap::new();
        for offset in &offsets {
            *counts.entry(offset).or_insert(0u32) += 1;
        }
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // P(rank k) = k^-1.2 / H(10000, 1.2); H is about 4.78, so the most popular has 0.209 and the ratio is 2^1.2.
        let top = f64::from(counts[0]) / 20_000.0;
        assert!((0.19..0.23).contains(&top), "{top}");
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((2.0..2.65).contains(&ratio), "{ratio}");
    }
}
