//! Traced trials with a known division of their time.

use iolab_record::RunRecord;
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, Stage, StageSummary, SyncCounts, TraceCounts, TraceSummary,
};
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{add_cell, record};

/// Requests, and syncs, of each trial.
const REQUESTS: u64 = 1000;
/// Mean time of a request, and of one of the slowest 1 %, ns.
const MEAN_NS: f64 = 1e5;
const TAIL_NS: f64 = 1e6;

/// Division of a time among three layers; the shares scatter from trial to trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerShares {
    /// Median share of the first layer.
    pub first: f64,
    /// Share of the second layer in the rest; the third layer has what remains.
    pub second: f64,
    /// Standard deviation of the logarithm of the odds of the first share.
    pub sigma: f64,
}

impl LayerShares {
    /// Median shares of the three layers: each is a monotonic function of the first.
    pub fn medians(self) -> [f64; 3] {
        self.shares(self.first)
    }

    fn shares(self, first: f64) -> [f64; 3] {
        let rest = 1.0 - first;
        [first, rest * self.second, rest * (1.0 - self.second)]
    }

    fn draw(self, random: &mut Xoshiro256PlusPlus) -> [f64; 3] {
        let normal: f64 = StandardNormal.sample(random);
        let odds = self.first / (1.0 - self.first) * (self.sigma * normal).exp();
        self.shares(odds / (1.0 + odds))
    }
}

/// True division of a cell's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layers {
    /// Division of the mean time of a request among [`LAYERS`].
    pub mean: LayerShares,
    /// Division of the time of the slowest requests.
    pub tail: LayerShares,
    /// Division of the mean time of a sync among [`SYNC_LAYERS`].
    pub sync: LayerShares,
    /// Division of the time of the slowest syncs.
    pub sync_tail: LayerShares,
}

/// Layers that requests pass.
pub const LAYERS: [Stage; 3] = [Stage::Device, Stage::CpuWait, Stage::Reaping];
/// Layers of syncs.
pub const SYNC_LAYERS: [Stage; 3] = [Stage::SyncFlush, Stage::SyncJournal, Stage::SyncHost];

/// A run with `trials` measured trials in each cell. Later cells have slower requests.
pub fn traced(seed: u64, trials: usize, cells: &[Layers]) -> RunRecord {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut made = record("traced", &["threads"]);
    for number in 0..cells.len() {
        let throughput = vec![100.0 / (number + 1) as f64; trials];
        add_cell(
            &mut made,
            &[&format!("threads={}", number + 1)],
            &throughput,
        );
    }
    for sample in made.samples.iter_mut().filter(|sample| !sample.warmup) {
        let layers = cells[sample.cell as usize];
        let mut stages = PerStage::from_fn(|_| Some(StageSummary::default()));
        let mut divide = |names: [Stage; 3], mean: LayerShares, tail: LayerShares| {
            let (mean, tail) = (mean.draw(&mut random), tail.draw(&mut random));
            for (stage, (mean, tail)) in names.into_iter().zip(mean.into_iter().zip(tail)) {
                stages[stage] = Some(StageSummary {
                    mean_ns: MEAN_NS * mean,
                    p50_ns: (MEAN_NS * mean) as u64,
                    p99_ns: (TAIL_NS * tail) as u64,
                    tail_mean_ns: TAIL_NS * tail,
                });
            }
        };
        divide(LAYERS, layers.mean, layers.tail);
        divide(SYNC_LAYERS, layers.sync, layers.sync_tail);
        let of = |stages: &PerStage<Option<StageSummary>>, value: fn(StageSummary) -> f64| -> f64 {
            let parts = [stages.cpu_wait, stages.reaping];
            parts.into_iter().flatten().map(value).sum()
        };
        stages.delivery = Some(StageSummary {
            mean_ns: of(&stages, |stage| stage.mean_ns),
            tail_mean_ns: of(&stages, |stage| stage.tail_mean_ns),
            ..StageSummary::default()
        });
        sample.traced = Some(Box::new(TraceSummary {
            counts: TraceCounts {
                joined: REQUESTS,
                carried: REQUESTS,
                syncs: SyncCounts {
                    syncs: REQUESTS,
                    commits: REQUESTS,
                    flushes: REQUESTS,
                    ..SyncCounts::default()
                },
                ..TraceCounts::default()
            },
            note: String::new(),
            carried_by: CarriedBy::Disk,
            journal: Some(Journal::Commits),
            stages,
        }));
    }
    made
}
