//! Runs of a scenario.

use std::time::{Duration, UNIX_EPOCH};

use iolab_plan::blocks::{block_order, trial_seed};
use iolab_plan::cells::{OneProcess, Plan};
use iolab_record::{Cell, EndedBy, ExperimentRecord, RunRecord, Sample};
use iolab_stats::median_interval;
use iolab_workload::response::Response;
use iolab_workload::trial::TrialSpec;

use crate::disturbance::Disturbance;
use crate::made_up::{latencies, record, trial};
use crate::noise::{Draws, Random};
use crate::over_time::OverTime;
use crate::scenario::{Common, Scenario};
use crate::truth::{TrueCell, Truth};

/// Part shared by all runs of a scenario, whatever their seed.
struct Prepared {
    /// Record before the first trial.
    record: RunRecord,
    cells: Vec<PreparedCell>,
    started: u64,
    trials: u32,
    common: Common,
    over_time: Option<OverTime>,
}

/// Part of a cell shared by all runs of a scenario.
struct PreparedCell {
    truth: TrueCell,
    draws: Draws,
    /// Logarithms of the deterministic factors of each block: of the run, and of changes inside trials.
    course: Vec<[f64; 2]>,
    /// Disturbances that can affect its trials.
    disturbances: Vec<Disturbance>,
}

impl Scenario {
    /// Run with this seed, and its truth.
    ///
    /// # Panics
    ///
    /// If the experiment has no cells.
    pub fn run(&self, seed: u64) -> (RunRecord, Truth) {
        Prepared::of(self).run(seed)
    }

    /// Function from a seed to its run and truth; the shared part of the runs is made once.
    ///
    /// # Panics
    ///
    /// If the experiment has no cells.
    pub fn runs(&self) -> impl Fn(u64) -> (RunRecord, Truth) + use<> {
        let prepared = Prepared::of(self);
        move |seed| prepared.run(seed)
    }
}

impl Prepared {
    fn of(scenario: &Scenario) -> Self {
        let record = before_first_trial(scenario);
        let cell = |cell: &Cell| {
            let truth = scenario.truth_of(cell);
            let inside = scenario.over_time.as_ref();
            let course = (0..=scenario.trials).map(|block| {
                let inside = inside.map_or(0.0, |course| course.level(cell, block).ln());
                [scenario.course(cell, block).ln(), inside]
            });
            let disturbances = scenario.disturbances.iter();
            PreparedCell {
                draws: truth.noise.draws(0),
                course: course.collect(),
                disturbances: disturbances
                    .filter(|one| one.at.holds(cell))
                    .cloned()
                    .collect(),
                truth,
            }
        };
        Self {
            cells: record.cells.iter().map(cell).collect(),
            record,
            started: scenario.started,
            trials: scenario.trials,
            common: scenario.common,
            over_time: scenario.over_time.clone(),
        }
    }

    /// Run with this seed, and its truth.
    fn run(&self, seed: u64) -> (RunRecord, Truth) {
        let mut record = self.record.clone();
        record.run.seed = seed;
        let cells = self.cells.len();
        let mut truth = Truth {
            cells: self.cells.iter().map(|own| own.truth.clone()).collect(),
        };
        let own_draws = self.cells.iter().enumerate();
        let mut draws: Vec<Draws> = own_draws
            .map(|(at, own)| own.draws.with_seed(trial_seed(seed, at, u32::MAX)))
            .collect();
        let mut tails = Random::new(stream_seed(seed, cells, 4));
        let mut common = CommonCourse::new(self.common, self.trials, seed, cells);
        let mut chance = Random::new(stream_seed(seed, cells, 1));
        let mut within = Random::new(stream_seed(seed, cells, 3));
        let mut now = Duration::from_secs(self.started);
        for block in 0..=self.trials {
            common.next_block(block);
            for (position, at) in block_order(seed, block, cells).into_iter().enumerate() {
                let own = &self.cells[at];
                let cell = &own.truth.cell;
                let mut log = own.truth.mb_s.ln() + draws[at].next_log() + common.next_log();
                for factor in own.course[block as usize] {
                    log += factor;
                }
                let mut marks: Vec<&Disturbance> = Vec::new();
                for disturbance in &own.disturbances {
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
                    seed: trial_seed(seed, at, block),
                    ..trial(cell, requests(&cell.spec.trial, log.exp()), log.exp())
                };
                let tail = own.truth.p99_over_p50 * (TAIL_SIGMA * tails.normal()).exp();
                stretch(&mut sample, tail);
                marks.iter().for_each(|mark| mark.mark(&mut sample));
                truth.cells[at].disturbed += usize::from(block > 0 && !marks.is_empty());
                now += Duration::from_nanos(sample.wall_ns);
                let course = self.over_time.as_ref();
                let series = course.map(|course| course.series(cell, &sample, &mut within));
                record.series.extend(series);
                record.samples.push(sample);
            }
        }
        record.run.ended_utc = Some(utc(now));
        end(&mut record);
        (record, truth)
    }
}

/// Record of a scenario before the first trial.
fn before_first_trial(scenario: &Scenario) -> RunRecord {
    let plan =
        Plan::of_new_run(scenario.experiment.clone(), &OneProcess).expect("a plan with cells");
    let experiment = plan.experiment();
    let mut record = record(&experiment.name, &[]);
    record.run.target.clone_from(&scenario.target);
    record.run.started_utc = utc(Duration::from_secs(scenario.started));
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
        })
        .collect();
    record
}

/// Seed of a stream of random numbers that no trial of these cells has.
fn stream_seed(seed: u64, cells: usize, stream: usize) -> u64 {
    trial_seed(seed, cells | stream << 32, u32::MAX)
}

/// Standard deviation of the logarithm of p99 over p50 from trial to trial.
const TAIL_SIGMA: f64 = 0.05;

/// Sets p99 of a trial's latencies to a multiple of the median, and the higher quantiles above it.
fn stretch(sample: &mut Sample, tail: f64) {
    for done in sample.operations.as_mut().into_values() {
        if let Some(latency) = &mut done.latency {
            let p50 = latency[Response::Latency].unwrap_or_default();
            **latency = latencies(p50, [1.0, tail.sqrt(), tail, tail * 1.5, tail * 2.0]);
        }
    }
}

/// Variation that all cells share, as a sequence.
struct CommonCourse {
    common: Common,
    blocks: u32,
    cells: usize,
    random: Random,
    /// Factor of the current block.
    block: f64,
    /// Current value of the autoregressive series, over its standard deviation.
    wandered: f64,
}

impl CommonCourse {
    fn new(common: Common, blocks: u32, seed: u64, cells: usize) -> Self {
        let mut random = Random::new(stream_seed(seed, cells, 2));
        Self {
            common,
            blocks,
            cells,
            block: 0.0,
            wandered: random.normal(),
            random,
        }
    }

    fn next_block(&mut self, block: u32) {
        // Measured blocks are numbered from 1; the warm-up is like the first, and a single one is in the
        // middle.
        let place = match self.blocks {
            0 | 1 => 0.0,
            blocks => f64::from(block.max(1) - 1) / f64::from(blocks - 1) - 0.5,
        };
        self.block = self.common.block_sigma * self.random.normal() + self.common.trend * place;
    }

    /// Logarithm of the factor of the next trial.
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
    in_time.min(in_bytes).max(1)
}

/// Sets the reason for the end of each cell's repetition.
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
            let reached = median_interval(&values, 0.95)
                .zip(iolab_stats::median(&values))
                .and_then(|(interval, median)| interval.precision(median));
            match reached.is_some_and(|reached| reached <= precision) {
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
