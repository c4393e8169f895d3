//! Description of runs of the built-in experiments with a given truth.

use iolab_plan::experiment::Experiment;
use iolab_record::Cell;

use crate::cell_selection::At;
use crate::curve::Curve;
use crate::disturbance::Disturbance;
use crate::noise::Noise;
use crate::over_time::OverTime;
use crate::truth::{TrueCell, TrueChange};

/// Variation over time that all cells share, as logarithms of factors on the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Common {
    /// Standard deviation of a factor that all trials of a block share.
    pub block_sigma: f64,
    /// Change from the first to the last measured block, in equal steps; the middle of the run has the true level.
    pub trend: f64,
    /// Standard deviation of a factor that varies from trial to trial as a first-order autoregressive series.
    pub wander_sigma: f64,
    /// Correlation of that factor between trials that are one block apart, below 1.
    pub wander_correlation: f64,
}

impl Common {
    /// Standard deviation of all random parts.
    fn sigma(&self) -> f64 {
        self.block_sigma.hypot(self.wander_sigma)
    }
}

/// Deviation of the first trials of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// Number of blocks affected, including the warm-up block; 1 is that only.
    pub blocks: u32,
    /// Throughput in the affected blocks over throughput afterwards.
    pub ratio: f64,
}

/// A permanent change of the level, as when a cache of the device is full.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Cells affected.
    pub at: At,
    /// Share of the measured blocks before it.
    pub after: f64,
    /// Throughput after it over throughput before it.
    pub ratio: f64,
}

/// Description of a run to make. Begin with [`Scenario::of`] and change fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Experiment of the run.
    pub experiment: Experiment,
    /// Name of the target.
    pub target: String,
    /// Start, in seconds since 1970.
    pub started: u64,
    /// Throughput where every factor is 1, MB/s.
    pub mb_s: f64,
    /// Dependence on numeric settings; the factors are multiplied.
    pub curves: Vec<(&'static str, Curve)>,
    /// Factors on the throughput of selected cells.
    pub effects: Vec<(At, f64)>,
    /// Scatter of the trials of a cell.
    pub noise: Noise,
    /// Scatter of selected cells; the last match counts.
    pub noises: Vec<(At, Noise)>,
    /// p99 over p50 of the latency of selected cells; the default is 3, with a scatter of 5 %.
    pub tails: Vec<(At, f64)>,
    /// Variation that all cells share.
    pub common: Common,
    /// Deviation of the first trials.
    pub warm_up: WarmUp,
    /// Permanent changes.
    pub changes: Vec<Change>,
    /// Throughput within each trial; `None` if it is not recorded.
    pub over_time: Option<OverTime>,
    /// Disturbances of some trials.
    pub disturbances: Vec<Disturbance>,
    /// Number of measured trials of each cell.
    pub trials: u32,
}

impl Scenario {
    /// A built-in experiment with changes as for `--set`: 100 MB/s in every cell, 3 % lognormal scatter, ten trials.
    ///
    /// # Panics
    ///
    /// If there is no such experiment or setting.
    pub fn of(experiment: &str, changes: &[&str]) -> Self {
        let mut experiment = Experiment::find(experiment).unwrap_or_else(|e| panic!("{e}"));
        for change in changes {
            experiment
                .apply_set(change)
                .unwrap_or_else(|e| panic!("{change}: {e}"));
        }
        Self {
            experiment,
            target: "/data".to_owned(),
            // 2026-01-02T03:04:05Z
            started: 1_767_323_045,
            mb_s: 100.0,
            curves: Vec::new(),
            effects: Vec::new(),
            noise: Noise::Lognormal { sigma: 0.03 },
            noises: Vec::new(),
            tails: Vec::new(),
            common: Common::default(),
            warm_up: WarmUp {
                blocks: 1,
                ratio: 0.7,
            },
            changes: Vec::new(),
            over_time: None,
            disturbances: Vec::new(),
            trials: 10,
        }
    }

    /// This scenario on another target, an hour later.
    pub fn on(&self, target: &str) -> Self {
        Self {
            target: target.to_owned(),
            ..self.later()
        }
    }

    /// This scenario an hour later: a new run to compare with a base.
    pub fn later(&self) -> Self {
        Self {
            started: self.started + 3600,
            ..self.clone()
        }
    }

    /// This scenario with this scatter, and a factor shared by blocks: half as much again as in a quiet run.
    pub fn drifting(&self, noise: Noise, trials: u32) -> Self {
        Self {
            noise,
            trials,
            common: Common {
                block_sigma: 0.1,
                trend: 0.1,
                ..Common::default()
            },
            ..self.clone()
        }
    }

    /// Truth of a cell in a run without disturbed trials.
    pub(crate) fn truth_of(&self, cell: &Cell) -> TrueCell {
        let changes = self.changes.iter().filter(|change| change.at.holds(cell));
        let changes = changes.map(|change| TrueChange {
            block: self.first_after(change),
            ratio: change.ratio,
        });
        let inside = self.over_time.as_ref();
        let once = inside.and_then(|own| own.change(cell));
        TrueCell {
            cell: cell.clone(),
            mb_s: self.level(cell),
            noise: self.noise_of(cell),
            common_sigma: self.common.sigma(),
            p99_over_p50: self.tail(cell),
            changes: changes.chain(once).collect(),
            within_trials: inside.map_or(1.0, |own| own.ratio_in_each(cell)),
            disturbed: 0,
            trials: self.trials as usize,
            warming: (self.warm_up.blocks.max(1) - 1).min(self.trials) as usize,
        }
    }

    /// True throughput of a cell, MB/s.
    fn level(&self, cell: &Cell) -> f64 {
        let curves = self.curves.iter();
        let effects = self.effects.iter().filter(|(at, _)| at.holds(cell));
        self.mb_s
            * curves
                .map(|(name, curve)| curve.of(name, cell))
                .product::<f64>()
            * effects.map(|(_, ratio)| ratio).product::<f64>()
    }

    fn noise_of(&self, cell: &Cell) -> Noise {
        let own = self.noises.iter().rfind(|(at, _)| at.holds(cell));
        own.map_or(self.noise, |(_, noise)| *noise)
    }

    /// True 99th percentile of a cell's latency over its median.
    fn tail(&self, cell: &Cell) -> f64 {
        let own = self.tails.iter().filter(|(at, _)| at.holds(cell));
        TAIL * own.map(|(_, factor)| factor).product::<f64>()
    }

    /// Deterministic factor of a cell in a block.
    pub(crate) fn course(&self, cell: &Cell, block: u32) -> f64 {
        let warm_up = match block < self.warm_up.blocks {
            true => self.warm_up.ratio,
            false => 1.0,
        };
        let changes = self.changes.iter().filter(|c| c.at.holds(cell));
        let past = changes.filter(|change| block >= self.first_after(change));
        warm_up * past.map(|change| change.ratio).product::<f64>()
    }

    /// First block after a change.
    fn first_after(&self, change: &Change) -> u32 {
        (change.after * f64::from(self.trials)).round() as u32 + 1
    }
}

/// Default of p99 over p50.
const TAIL: f64 = 3.0;
