//! Writes that repeat data: that of one block, or of the first blocks that the threads of a trial write.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::chance::Chance;
use iolab_workload::pattern::{below, derive};
use iolab_workload::trial::TrialSpec;

/// What the stamp of a block of data says: an offset and a generation.
pub(crate) type Stamp = (u64, u64);

/// The stamp of the one block that repeats.
const REPEATED: Stamp = (0, 0);
/// What these draws are for: another purpose than those of sizes and trims, so that they do not depend on each other.
const REPEATS: u64 = 3 << 56;
/// The first part of a stamp of repeated data is one more than the number of a thread, shifted left by so many bits.
const THREAD_SHIFT: u32 = 40;

/// Which writes repeat data, and which data.
pub(crate) struct Repeats {
    chance: Chance,
    set: Option<RepeatedSet>,
}

/// The first blocks of every thread, which are repeated by all.
struct RepeatedSet {
    rng: Xoshiro256PlusPlus,
    workers: u64,
    /// Blocks of each thread.
    each: u64,
    /// The number of this thread, and of its blocks so far.
    own: u64,
    written: u64,
}

impl Repeats {
    /// Those of worker number `worker`; `None` where none repeats.
    pub(crate) fn of(spec: &TrialSpec, worker: u32) -> Option<Self> {
        let number = u64::from(spec.number_of(worker));
        let key = derive(spec.seed, REPEATS | (number + 1));
        let set = || RepeatedSet {
            rng: Xoshiro256PlusPlus::seed_from_u64(derive(key, REPEATS)),
            workers: spec.workers().into(),
            each: (spec.repeated_blocks() / u64::from(spec.workers())).max(1),
            own: number,
            written: 0,
        };
        Some(Self {
            chance: Chance::of(spec.dedup, spec, worker, REPEATS)?,
            set: spec.dedup_set.map(|_| set()),
        })
    }

    /// The stamp of the next write, which would have `own` if no data was repeated.
    pub(crate) fn stamp(&mut self, own: Stamp) -> Stamp {
        match (self.chance.comes(), &mut self.set) {
            (false, None) => own,
            (true, None) => REPEATED,
            (false, Some(set)) => set.next(),
            (true, Some(set)) => set.draw(),
        }
    }
}

impl RepeatedSet {
    fn next(&mut self) -> Stamp {
        self.written += 1;
        Self::block(self.own, self.written)
    }

    fn draw(&mut self) -> Stamp {
        let draw = below(&mut self.rng, self.workers * self.each);
        Self::block(draw % self.workers, draw / self.workers + 1)
    }

    /// The block of this number, from 1 on, of a thread.
    fn block(thread: u64, number: u64) -> Stamp {
        ((thread + 1) << THREAD_SHIFT, number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// How often each block is written by all threads of a trial.
    fn written(spec: &TrialSpec, each: usize) -> HashMap<Stamp, usize> {
        let mut counts = HashMap::new();
        for worker in 0..spec.threads {
            let mut repeats = Repeats::of(spec, worker).expect("they repeat");
            for number in 0..each as u64 {
                *counts
                    .entry(repeats.stamp((number << 12, number)))
                    .or_insert(0) += 1;
            }
        }
        counts
    }

    #[test]
    fn repeated_data_is_that_of_the_first_blocks_of_all_threads() {
        let spec = TrialSpec {
            read_percent: 0,
            region: 50_000 << 12,
            threads: 2,
            dedup: 50,
            dedup_set: Some(20),
            ..TrialSpec::default()
        };
        spec.check().expect("possible");
        // 10 000 blocks repeat, the first 5000 of 12 500 that each thread writes anew.
        let counts = written(&spec, 25_000);
        let anew = 25_000.0;
        let bound = 6.0 * (50_000.0 * 0.25f64).sqrt();
        assert!(
            (counts.len() as f64 - anew).abs() < bound,
            "{}",
            counts.len()
        );
        let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
        for ((_, number), _) in &repeated {
            assert!(*number <= 5000, "{number}");
        }
        // Of 25 000 draws from 10 000 a block has none with a probability of e^-2.5.
        let expected = 10_000.0 * (1.0 - (-2.5f64).exp());
        let difference = repeated.len() as f64 - expected;
        assert!(difference.abs() < 6.0 * 100.0, "{}", repeated.len());
    }

    #[test]
    fn without_a_set_one_block_repeats() {
        let spec = TrialSpec {
            read_percent: 0,
            dedup: 50,
            ..TrialSpec::default()
        };
        let counts = written(&spec, 10_000);
        let more: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
        assert_eq!(more.len(), 1, "{more:?}");
        assert_eq!(more[0].0, REPEATED);
    }
}
