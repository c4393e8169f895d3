//! Makes runs of the built-in experiments from a given truth.

use std::time::{Duration, UNIX_EPOCH};

use iolab_plan::blocks::{block_order, trial_seed};
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::Experiment;
use iolab_record::{Cell, EndedBy, ExperimentRecord, RunRecord, Sample};
use iolab_stats::median_interval;
use iolab_workload::trial::TrialSpec;

use crate::cell_selection::At;
use crate::curve::Curve;
use crate::disturbance::Disturbance;
use crate::made_up::{record, trial};
use crate::noise::{Noise, Random};
use crate::over_time::OverTime;
use crate::truth::{TrueCell, TrueChange, Truth};

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

/// The difference of the first trials of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// Number of blocks affected, including the warm-up block; 1 is that only.
    pub blocks: u32,
    /// Throughput in them over throughput afterwards.
    pub ratio: f64,
}

/// A permanent change of the level, as when a cache of the device is full.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The cells affected.
    pub at: At,
    /// The share of the measured blocks before it.
    pub after: f64,
    /// Throughput after it over throughput before it.
    pub ratio: f64,
}

/// The description of a run to make. Begin with [`Scenario::of`] and change fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The experiment.
    pub experiment: Experiment,
    /// The name of the target.
    pub target: String,
    /// Start, in seconds since 1970.
    pub started: u64,
    /// Throughput where every factor is 1, MB/s.
    pub mb_s: f64,
    /// Dependence on numeric settings; the factors are multiplied.
    pub curves: Vec<(&'static str, Curve)>,
    /// Factors on the throughput of selected cells.
    pub effects: Vec<(At, f64)>,
    /// The scatter of the trials of a cell.
    pub noise: Noise,
    /// The scatter of selected cells; the last match counts.
    pub noises: Vec<(At, Noise)>,
    /// p99 over p50 of the latency of selected cells; the default is 3, with a scatter of 5 %.
    pub tails: Vec<(At, f64)>,
    /// Variation that all cells share.
    pub common: Common,
    /// The difference of the first trials.
    pub warm_up: WarmUp,
    /// Permanent changes.
    pub changes: Vec<Change>,
    /// Throughput within each trial; `None` where it is not recorded.
    pub over_time: Option<OverTime>,
    /// Disturbances.
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

    /// The same scenario on another target, an hour later.
    pub fn on(&self, target: &str) -> Self {
        Self {
            target: target.to_owned(),
            ..self.later()
        }
    }

    /// The same scenario an hour later: a new run to compare with a base.
    pub fn later(&self) -> Self {
        Self {
            started: self.started + 3600,
            ..self.clone()
        }
    }

    /// The run with this seed, and its truth.
    ///
    /// # Panics
    ///
    /// If the experiment has no cells.
    pub fn run(&self, seed: u64) -> (RunRecord, Truth) {
        let mut record = self.plan(seed);
        let levels: Vec<f64> = record.cells.iter().map(|cell| self.level(cell)).collect();
        let cells = levels.len();
        let mut draws: Vec<_> = (0..cells)
            .map(|cell| {
                let noise = self.noise_of(&record.cells[cell]);
                noise.draws(trial_seed(seed, cell, u32::MAX, 0))
            })
            .collect();
        let mut tails = Random::new(trial_seed(seed, cells, u32::MAX, 4));
        let mut common = CommonCourse::new(self, seed, cells);
        let mut chance = Random::new(trial_seed(seed, cells, u32::MAX, 1));
        let mut within = Random::new(trial_seed(seed, cells, u32::MAX, 3));
        let mut disturbed = vec![0; cells];
        let mut now = Duration::from_secs(self.started);
        for block in 0..=self.trials {
            common.next_block(block);
            for (position, at) in block_order(seed, block, cells).into_iter().enumerate() {
                let cell = &record.cells[at];
                let mut log = levels[at].ln() + draws[at].next_log() + common.next_log();
                log += self.course(cell, block).ln();
                let inside = self.over_time.as_ref();
                log += inside.map_or(0.0, |course| course.level(cell, block).ln());
                let mut marks: Vec<&Disturbance> = Vec::new();
                for disturbance in self.disturbances.iter().filter(|d| d.at.holds(cell)) {
                    if chance.happens(disturbance.share) {
                        log += disturbance.ratio.ln();
                        marks.push(disturbance);
                    }
                }
                let mut sample = Sample {
                    id: record.samples.len() as i64 + 1,
                    block,
                    position: position as u32,
                    warmup: block == 0,
                    started_utc: utc(now),
                    seed: trial_seed(seed, at, block, 0),
                    ..trial(cell, requests(cell.trial(), log.exp()), log.exp())
                };
                let tail = self.tail(cell) * (TAIL_SIGMA * tails.normal()).exp();
                stretch(&mut sample, tail);
                marks.iter().for_each(|mark| mark.mark(&mut sample));
                disturbed[at] += usize::from(block > 0 && !marks.is_empty());
                now += Duration::from_nanos(sample.wall_ns);
                let course = self.over_time.as_ref();
                let series = course.map(|course| course.series(cell, &sample, &mut within));
                record.series.extend(series);
                record.samples.push(sample);
            }
        }
        record.run.ended_utc = Some(utc(now));
        let truth = self.truth(&record, &levels, &disturbed);
        end(&mut record);
        (record, truth)
    }

    /// The record before the first trial.
    fn plan(&self, seed: u64) -> RunRecord {
        let plan =
            Plan::of_new_run(self.experiment.clone(), &OneProcess).expect("a plan with cells");
        let experiment = plan.experiment();
        let mut record = record(&experiment.name, &[]);
        record.run.seed = seed;
        record.run.target.clone_from(&self.target);
        record.run.started_utc = utc(Duration::from_secs(self.started));
        record.experiment = ExperimentRecord {
            question: experiment.question.clone(),
            response: experiment.response,
            response_group: experiment.response_group.clone(),
            toml: experiment.to_toml().expect("a definition can be written"),
            factors: plan.factor_names(),
            precision: experiment.design.precision,
            budget_ns: experiment.design.budget.as_nanos() as u64,
            trials_min: experiment.design.trials_min,
            trials_max: experiment.design.trials_max,
            ..record.experiment
        };
        let cells = plan.cells().iter().zip(0..);
        record.cells = cells
            .map(|(cell, id)| Cell {
                id,
                levels: cell.levels.clone(),
                spec: cell.spec.clone(),
                ended_by: None,
                pilot: None,
            })
            .collect();
        record
    }

    /// The true throughput of a cell, MB/s.
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

    /// The true 99th percentile of a cell's latency over its median.
    fn tail(&self, cell: &Cell) -> f64 {
        let own = self.tails.iter().filter(|(at, _)| at.holds(cell));
        TAIL * own.map(|(_, factor)| factor).product::<f64>()
    }

    /// The deterministic factor of a cell in a block.
    fn course(&self, cell: &Cell, block: u32) -> f64 {
        let warm_up = match block < self.warm_up.blocks {
            true => self.warm_up.ratio,
            false => 1.0,
        };
        let changes = self.changes.iter().filter(|c| c.at.holds(cell));
        let past = changes.filter(|change| block >= self.first_after(change));
        warm_up * past.map(|change| change.ratio).product::<f64>()
    }

    /// The first block after a change.
    fn first_after(&self, change: &Change) -> u32 {
        (change.after * f64::from(self.trials)).round() as u32 + 1
    }

    fn truth(&self, record: &RunRecord, levels: &[f64], disturbed: &[usize]) -> Truth {
        let cells = record.cells.iter().zip(levels).zip(disturbed);
        let warming = (self.warm_up.blocks.max(1) - 1).min(self.trials);
        let cells = cells.map(|((cell, mb_s), disturbed)| {
            let changes: Vec<TrueChange> = self
                .changes
                .iter()
                .filter(|change| change.at.holds(cell))
                .map(|change| TrueChange {
                    block: self.first_after(change),
                    ratio: change.ratio,
                })
                .chain(self.over_time.as_ref().and_then(|own| own.change(cell)))
                .collect();
            TrueCell {
                cell: cell.clone(),
                mb_s: *mb_s,
                noise: self.noise_of(cell),
                common_sigma: self.common.sigma(),
                p99_over_p50: self.tail(cell),
                changes,
                within_trials: self
                    .over_time
                    .as_ref()
                    .map_or(1.0, |own| own.ratio_in_each(cell)),
                disturbed: *disturbed,
                trials: self.trials as usize,
                warming: warming as usize,
            }
        });
        Truth {
            cells: cells.collect(),
        }
    }
}

/// The default of p99 over p50.
const TAIL: f64 = 3.0;
/// Standard deviation of its logarithm from trial to trial.
const TAIL_SIGMA: f64 = 0.05;

/// Sets p99 of a trial's latencies to a multiple of the median, and the higher quantiles above it.
fn stretch(sample: &mut Sample, tail: f64) {
    for done in sample.operations.as_mut().into_values() {
        if let Some(latency) = &mut done.latency {
            let times = |factor: f64| (latency.p50_ns as f64 * factor) as u64;
            latency.p90_ns = times(tail.sqrt());
            latency.p99_ns = times(tail);
            latency.p999_ns = times(tail * 1.5);
            latency.max_ns = times(tail * 2.0);
        }
    }
}

/// The variation that all cells share, as a sequence.
struct CommonCourse {
    common: Common,
    blocks: u32,
    cells: usize,
    random: Random,
    /// The factor of the current block.
    block: f64,
    /// The current value of the autoregressive series, over its standard deviation.
    wandered: f64,
}

impl CommonCourse {
    fn new(scenario: &Scenario, seed: u64, cells: usize) -> Self {
        let mut random = Random::new(trial_seed(seed, cells, u32::MAX, 2));
        Self {
            common: scenario.common,
            blocks: scenario.trials,
            cells,
            block: 0.0,
            wandered: random.normal(),
            random,
        }
    }

    fn next_block(&mut self, block: u32) {
        // Measured blocks are numbered from 1; the warm-up is like the first, and a single one is the middle.
        let place = match self.blocks {
            0 | 1 => 0.0,
            blocks => f64::from(block.max(1) - 1) / f64::from(blocks - 1) - 0.5,
        };
        self.block = self.common.block_sigma * self.random.normal() + self.common.trend * place;
    }

    /// The logarithm of the factor of the next trial.
    fn next_log(&mut self) -> f64 {
        let kept = self.common.wander_correlation.powf(1.0 / self.cells as f64);
        self.wandered = kept * self.wandered + (1.0 - kept * kept).sqrt() * self.random.normal();
        self.block + self.common.wander_sigma * self.wandered
    }
}

/// Number of requests of a trial that ends at its limits; at least one.
fn requests(spec: &TrialSpec, mb_s: f64) -> u64 {
    let seconds = spec.limit.time.map_or(0.5, |time| time.as_secs_f64());
    let in_time = (mb_s * 1e6 * seconds / spec.bs as f64) as u64;
    let in_bytes = spec.limit.bytes.map_or(u64::MAX, |bytes| bytes / spec.bs);
    let most = spec.limit.requests.unwrap_or(u64::MAX);
    in_time.min(in_bytes).min(most).max(1)
}

/// Sets what ended the repetition of each cell.
fn end(record: &mut RunRecord) {
    let precision = record.experiment.precision;
    let response = record.experiment.response;
    let timed = record.asked_timed();
    let ended: Vec<EndedBy> = record
        .measured()
        .map(|(_, trials)| {
            let values: Vec<f64> = trials
                .iter()
                .filter_map(|s| s.value(response, timed))
                .collect();
            let half_width = median_interval(&values, 0.95)
                .zip(iolab_stats::median(&values))
                .and_then(|(interval, median)| interval.relative_half_width(median));
            match half_width.is_some_and(|width| width <= precision) {
                true => EndedBy::Precision,
                false => EndedBy::Budget,
            }
        })
        .collect();
    for (cell, ended) in record.cells.iter_mut().zip(ended) {
        cell.ended_by = Some(ended);
    }
}

fn utc(since_1970: Duration) -> String {
    humantime::format_rfc3339_nanos(UNIX_EPOCH + since_1970).to_string()
}
