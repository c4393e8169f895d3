//! What the trials of an explanation may take: how long they are, how long the target is idle before them, and what that leaves time for.

use std::time::Duration;

use iolab_workload::trial::TrialSpec;
use iolab_workload::units::budget_to_recommend;

use super::{Phenomenon, suspects, variants};
use crate::suspect::Leftover;
use crate::untried_suspect::Obstacle;

/// Blocks that a suspect is worth leaving out for.
pub(super) const BLOCKS_WANTED: u32 = 20;
/// A trial that is this long shows what a longer one does, where its level does not change.
const LONG: Duration = Duration::from_secs(1);
/// Shorter trials show too little.
const SHORT: Duration = Duration::from_millis(100);
/// A level that falls by more than this is gone for good, as far as idle time is concerned.
const DRAINED_MAX: f64 = 1e4;
/// What a trial on real storage takes beside its I/O, about: files, buffers, page cache.
const AROUND: Duration = Duration::from_millis(20);

impl Phenomenon {
    /// What a trial of each side takes; one that ends by its bytes takes what it took.
    pub(super) fn times(&self) -> [Duration; 2] {
        let foreseen = self.sides.trials().map(TrialSpec::time_foreseen);
        let [base, other] = self.took;
        let of_side = |foreseen: Option<Duration>, took: Duration| match self.sides.is_model {
            true => foreseen.unwrap_or(took),
            false => foreseen.map_or(took, |most| most.min(took)),
        };
        let [of_base, of_other] = foreseen;
        [of_side(of_base, base), of_side(of_other, other)]
    }

    /// What a trial takes beside its I/O.
    pub(super) fn around(&self) -> Duration {
        match self.sides.is_model {
            true => Duration::ZERO,
            false => AROUND,
        }
    }

    /// What filling the scratch file leaves of the budget.
    pub(super) fn trials_time(&self) -> Duration {
        self.budget.saturating_sub(self.fill)
    }

    /// A time limit below what a trial took, where the budget has no room for trials of that length in enough blocks: one that has room for all
    /// suspects, but no less than a second if that has room for one. `None` where trials stay as long, or have to.
    pub(super) fn shorter(&self) -> Option<Duration> {
        let longest = self.times().into_iter().max()?;
        if self.changes_inside || !self.sides.share(|trial| trial.limit.time) {
            return None;
        }
        let room = |suspects: usize| {
            let cells = self.sides.cells().len() * variants(suspects).len();
            let trials = cells as u32 * (BLOCKS_WANTED + 1);
            let each = (self.trials_time() / trials).saturating_sub(self.around());
            each.div_f64(1.0 + self.drained())
        };
        let all = suspects(&self.sides).0.len();
        let time = room(all)
            .max(room(1).min(LONG))
            .max(SHORT.max(self.time_min));
        let whole_ms = Duration::from_millis(time.as_millis() as u64);
        (whole_ms < longest).then_some(whole_ms)
    }

    /// Throughput fell to one part in this many; 0 if trials leave nothing that idle time removes.
    fn drained(&self) -> f64 {
        match self.sides.machine.leftover {
            Leftover::Drained(factor) => factor.clamp(1.0, DRAINED_MAX),
            Leftover::Nothing | Leftover::Lasting => 0.0,
        }
    }

    /// The idle time before each trial that brings back what the one before has drained. What is drained at one rate and refilled at a lower one
    /// all the time, as credits and caches of drives are, needs `before / after - 1` times the time of a trial; it gets once more that time.
    pub(super) fn idle(&self) -> Duration {
        let trial = self.times().into_iter().max().unwrap_or_default();
        tenths_of_a_second(trial.mul_f64(self.drained()))
    }
}

/// Why a suspect is not tried for which the budget has no time, which trials of `wanted` would take after filling.
pub(super) fn no_time(idle: Duration, fill: Duration, wanted: Duration) -> Obstacle {
    Obstacle::NoTime {
        budget_s: budget_to_recommend(wanted + fill).as_secs(),
        idle_ns: idle.as_nanos() as u64,
        fill_ns: fill.as_nanos() as u64,
    }
}

/// The next whole tenth of a second.
fn tenths_of_a_second(time: Duration) -> Duration {
    Duration::from_millis(100 * (time.as_millis() as u64).div_ceil(100))
}
