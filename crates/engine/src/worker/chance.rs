//! Random events that happen to a share of the requests.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use iolab_workload::pattern::derive;
use iolab_workload::trial::TrialSpec;

/// Something that befalls a share of the requests, independently of each other.
pub(super) struct Chance {
    rng: Xoshiro256PlusPlus,
    percent: u64,
}

impl Chance {
    /// An event with draws of its own for each purpose; `None` if it never happens.
    pub(super) fn of(percent: u8, spec: &TrialSpec, worker: u32, purpose: u64) -> Option<Self> {
        let key = derive(spec.seed, purpose | (u64::from(spec.number_of(worker)) + 1));
        (percent > 0).then(|| Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(key),
            percent: percent.into(),
        })
    }

    #[inline]
    pub(super) fn comes(&mut self) -> bool {
        ((self.rng.next_u64() >> 32) * 100) >> 32 < self.percent
    }
}
