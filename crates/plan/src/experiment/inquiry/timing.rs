//! Time limits of the trials of an explanation: their length, the idle time of the target before them, and the number that
//! fits.

use std::time::Duration;

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialSpec;
use iolab_workload::units::budget_to_recommend;

use super::super::BUDGET_MAX;
use super::{Phenomenon, suspects};
use super::{variants_of, without_all};
use crate::carry_over::leaves_writes;
use crate::suspect::{Leftover, QUANTILE_REQUESTS, Sides, Suspect};
use crate::untried_suspect::Obstacle;

/// Blocks that a suspect is worth leaving out for.
pub(super) const BLOCKS_WANTED: u32 = 20;
/// A trial of this length shows as much as a longer one if its level does not change.
const LONG: Duration = Duration::from_secs(1);
/// Shorter trials show too little.
const SHORT: Duration = Duration::from_millis(100);
/// A level that falls by more than this is gone for good, as far as idle time is concerned.
const DRAINED_MAX: f64 = 1e4;
/// Least time of a trial on real storage besides its I/O: files, buffers, page cache.
const AROUND: Duration = Duration::from_millis(20);

impl Phenomenon {
    /// Time of a trial of each side: its time in the first run, or its time limit if shorter.
    pub(super) fn times(&self) -> [Duration; 2] {
        let foreseen = self.sides.trials().map(TrialSpec::time_foreseen);
        let [base, other] = self.took;
        let of_side = |foreseen: Option<Duration>, took: Duration| {
            foreseen.map_or(took, |most| most.min(took))
        };
        let [of_base, of_other] = foreseen;
        [of_side(of_base, base), of_side(of_other, other)]
    }

    /// Time of a trial besides its I/O.
    pub(super) fn around(&self) -> Duration {
        match self.sides.is_model {
            true => self.around,
            false => self.around.max(AROUND),
        }
    }

    /// Time of a block that tries these suspects: the trials of all variants, and writing out their caches.
    pub(super) fn block(&self, sides: &Sides, tried: &[&'static Suspect]) -> Duration {
        let variants = variants_of(sides, tried);
        let cells = variants
            .iter()
            .flat_map(|(_, sides)| sides.cells().into_iter().zip(self.times()));
        let takes = cells.map(|(cell, time)| cell.idle + time + self.beside(cell));
        takes.sum()
    }

    /// Time of a trial besides its I/O, writing out included.
    fn beside(&self, cell: &CellSpec) -> Duration {
        match leaves_writes(cell) {
            true => self.around() + self.write_out,
            false => self.around(),
        }
    }

    /// Whether trials still have enough requests for the quantity if fewer are in flight without this suspect. At worst
    /// each request takes as long as before.
    pub(super) fn is_long_enough_without(&self, suspect: &'static Suspect) -> bool {
        let without = without_all(&self.sides, &[suspect]);
        let least = self.time_of_requests(without.base.trial.in_flight());
        self.times().into_iter().all(|time| time >= least)
    }

    /// Time of a trial with enough requests for the quantity, with `in_flight` in flight, if each takes as long as it did.
    /// Zero if any number of requests is enough.
    fn time_of_requests(&self, in_flight: u64) -> Duration {
        let of_own = self.sides.base.trial.in_flight() as f64 / in_flight.max(1) as f64;
        self.sides.iops.map_or(Duration::ZERO, |iops| {
            // A setting that pages show: whole milliseconds.
            let ms = 1e3 * QUANTILE_REQUESTS * of_own.max(1.0) / iops;
            Duration::from_millis(ms.ceil() as u64).min(BUDGET_MAX)
        })
    }

    /// The budget without filling the scratch file.
    pub(super) fn trials_time(&self) -> Duration {
        self.budget.saturating_sub(self.fill)
    }

    /// A time limit below the earlier time of a trial, if the budget has no room for enough blocks of such trials. The
    /// limit leaves room for all suspects, but is at least a second if that has room for one. `None` if trials keep their
    /// length.
    pub(super) fn shorter(&self) -> Option<Duration> {
        let longest = self.times().into_iter().max()?;
        if self.changes_inside || !self.sides.share(|trial| trial.limit.time) {
            return None;
        }
        let all = suspects(&self.sides, &self.only).0;
        let room = |suspects: &[&'static Suspect]| {
            let block = self.trials_time() / (BLOCKS_WANTED + 1);
            let variants = variants_of(&self.sides, suspects);
            let cells = || variants.iter().flat_map(|(_, sides)| sides.cells());
            let beside = cells().map(|cell| self.beside(cell)).sum();
            let each = block.saturating_sub(beside) / cells().count() as u32;
            each.div_f64(1.0 + self.drained())
        };
        let one = room(all.get(..1).unwrap_or_default());
        // Room for one request in flight as well, if the budget allows it.
        let requests = [1, self.sides.base.trial.in_flight()]
            .map(|in_flight| self.time_of_requests(in_flight));
        let least = requests
            .into_iter()
            .find(|time| *time <= one)
            .unwrap_or(requests[1]);
        let time = room(&all).max(one.min(LONG)).max(SHORT.max(least));
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

    /// The idle time before each trial that restores what the one before has drained. Credits and caches of drives drain at
    /// one rate and refill at a lower one all the time. They need `before / after - 1` times the time of a trial; the idle
    /// time adds one trial time as a reserve.
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
