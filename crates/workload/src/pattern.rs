//! Offsets: sequential, strided, reverse, random permutation, random with replacement, zipf.
//!
//! An [`Offsets`] belongs to one worker and is an infinite stream of byte offsets, in memory that does not depend on the number
//! of blocks. Patterns that visit every block divide the blocks between the workers, which together make one pass.
//!
//! [`Mix`] decides which requests read, [`quota`] how many requests a worker gets, [`RandomBytes`] are the data of files and
//! buffers.

pub(crate) mod random;

use crate::trial::{FileLayout, FirstOffset, Pattern, TrialSpec, Zone, share};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use random::{InFiles, Law, Skewed};

pub use random::{Permutation, derive};

/// The purpose of the key that draws where an ordered pattern begins.
const FIRST: u64 = 1 << 48;

/// Number of requests of one worker under the limits of the trial; time, or the bytes of requests with drawn sizes, may end it
/// earlier.
pub fn quota(spec: &TrialSpec, worker: u32) -> u64 {
    let bound = spec.requests_bound().filter(|_| spec.bs_mix.is_none());
    let number = spec.number_of(worker);
    bound.map_or(u64::MAX, |total| share(total, number, spec.workers()).1)
}

/// One worker's infinite stream of offsets.
#[derive(Debug, Clone)]
pub struct Offsets {
    kind: Order,
    bs: u64,
    /// Start of the worker's share of the region, bytes.
    base: u64,
    /// Length of the range that a random order draws from, bytes.
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
    Skewed(Box<Skewed>),
    Zoned(Box<Zoned>),
    InFiles(Box<InFiles>),
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
struct Zoned {
    rng: Xoshiro256PlusPlus,
    zones: Vec<Zone>,
}

/// An infinite stream of incompressible random bytes for files and buffers.
#[derive(Debug)]
pub struct RandomBytes(Xoshiro256PlusPlus);

impl RandomBytes {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Fills a buffer from the stream.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

impl Offsets {
    /// The stream of worker `worker` of `spec`, which must have passed [`TrialSpec::check`].
    pub fn new(spec: &TrialSpec, worker: u32) -> Self {
        if spec.files.is_some() {
            // Several files, each in a slot as large as the largest.
            let visits = InFiles::new(spec, worker);
            return Self {
                bs: spec.bs,
                base: 0,
                length: visits.slots(),
                kind: Order::InFiles(Box::new(visits)),
            };
        }
        let worker = spec.number_of(worker);
        let own = derive(spec.seed, u64::from(worker) + 1);
        let mut part = Share {
            blocks: spec.region / spec.bs,
            bs: spec.bs,
            worker,
            workers: spec.workers(),
            interleaved: spec.layout == FileLayout::Interleaved,
            seed: spec.seed,
            own,
            turned: spec.first_offset == FirstOffset::Random,
        };
        let alone = match spec.layout {
            // Offsets in a file as large as a share.
            FileLayout::Private => Some(share(part.blocks, worker, spec.workers()).1),
            FileLayout::Overlapping => Some(part.blocks),
            FileLayout::Shared | FileLayout::Interleaved => None,
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
            Pattern::RandReplace => {
                let (rng, blocks) = (part.rng(), part.blocks);
                (0, Order::RandReplace { rng, blocks })
            }
            Pattern::Zipf(theta) => (0, part.skewed(Law::zipf(part.blocks, theta))),
            Pattern::Pareto(h) => (0, part.skewed(Law::pareto(part.blocks, h))),
            Pattern::Normal(percent) => (0, part.skewed(Law::normal(part.blocks, percent))),
            Pattern::Zoned(zones) => {
                let (rng, zones) = (part.rng(), zones.of(part.blocks));
                (0, Order::Zoned(Box::new(Zoned { rng, zones })))
            }
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
            Order::Skewed(skewed) => skewed.draw() * self.bs,
            Order::Zoned(zoned) => zoned.draw() * self.bs,
            Order::InFiles(files) => files.advance(None),
        };
        self.base + relative
    }

    /// Whether a request of `len` bytes at this offset is within the range that a random order draws from.
    #[inline]
    pub fn holds(&self, offset: u64, len: u64) -> bool {
        offset >= self.base && offset.saturating_add(len) <= self.base + self.length
    }

    /// The next offset of a request of `len` bytes, a multiple of the block size. Ordered requests follow each other; a random
    /// one begins at a drawn block, or early enough to end within the region, rounded down to a multiple of `start` from the worker's
    /// first byte on.
    pub fn next_offset_of(&mut self, len: u64, start: u64) -> u64 {
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
            Order::InFiles(files) => files.advance(Some((len, start))),
            _ => {
                let drawn = (self.next_offset() - self.base).min(self.length - len);
                match start > self.bs {
                    true => drawn - drawn % start,
                    false => drawn,
                }
            }
        };
        self.base + relative
    }
}

/// A draw from `0..bound` by Lemire's multiplication without a division; its bias is below 2^-16.
#[inline(always)]
pub fn below(rng: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// The blocks of one worker, and its seeds.
struct Share {
    /// Blocks of the region, or of the worker's own file.
    blocks: u64,
    bs: u64,
    worker: u32,
    workers: u32,
    /// Whether workers take blocks in turn.
    interleaved: bool,
    /// Seed of all workers of a region.
    seed: u64,
    /// Seed of this worker.
    own: u64,
    /// Whether an ordered pattern begins at a drawn block.
    turned: bool,
}

impl Share {
    /// First byte of an ordered pattern, distance between blocks, and that distance times the number of blocks.
    fn ordered(&self) -> (u64, u64, u64) {
        let (first, count) = share(self.blocks, self.worker, self.workers);
        if self.interleaved {
            let step = self.bs * u64::from(self.workers);
            (u64::from(self.worker) * self.bs, step, count * step)
        } else {
            (first * self.bs, self.bs, count * self.bs)
        }
    }

    /// First block of an ordered pattern over `blocks` blocks. Workers that take blocks in turn begin with adjacent ones.
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
        // A block can only be a phase if it fits between two others and into the share.
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

    /// Draws of this worker alone.
    fn rng(&self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.own)
    }

    fn skewed(&self, law: Law) -> Order {
        Order::Skewed(Box::new(Skewed::new(law, self.rng(), self.permutation())))
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
            // A phase must fit between two blocks of the previous phase, and into the share.
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

/// Decides which requests read, at random with a fixed share.
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

    /// Whether the next request is a read.
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
mod tests;
