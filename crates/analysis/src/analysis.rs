//! Analyses a run per cell: a pure function of the record.

mod concurrency;
mod doubt_kind;
mod groups;
mod stages;
mod steady_rounds;
mod trials;

pub use concurrency::{
    CellRate, Concurrency, Efficiency, FasterCell, HELD_FROM, OVERLOAD_TOLD, Shortfall,
};

pub(crate) use doubt_kind::CLOCK_SHOWS;
pub use doubt_kind::{DoubtClass, DoubtKind, ExtentUnit, Looks};
pub use groups::{
    CellRanks, ClientAnalysis, ClientName, GroupAnalysis, Mix, OperationNumbers, RankThroughput,
};
pub use iolab_workload::response::{LatencySummary, PerResponse, Response};
pub use stages::{CellStages, CellVerified, StageNumbers, Timed};
pub use steady_rounds::StandardFollowed;
pub use steady_rounds::{RoundsEnd, SteadyAnalysis, Tracked, TrackedOf, limits};
pub use trials::TrialOrder;
pub use trials::{CellDrives, CellServed, MeasuredTarget};

use iolab_stats::{Summary, median, summary};
use iolab_workload::names::TargetName;
use iolab_workload::settings::Setting;
use iolab_workload::trial::{Backend, CacheState};
use std::collections::BTreeSet;

use trials::{Trials, judge, order_by_size, summaries};

use crate::disturbance::{Accounting, CellDisturbance, Surroundings};
use crate::io_limit::{MachineThreshold, ReachedLimit, machine_thresholds};
use crate::timeline::Timeline;
use crate::trial_values::{SeriesTests, median_of, series_tests};
use iolab_plan::blocks::depends_on_order;
use iolab_plan::experiment::{Experiment, Inquiry};
use iolab_record::environment::KEYS;
use iolab_record::{
    Cell, Ended, EndedBy, RunRecord, RunStatus, Sample, ServedBy, ShownLatency, TargetKind,
};

/// Fewest requests of a trial whose 99th percentile is reported: with fewer, its 95 % interval has no upper end (see
/// [`iolab_stats::quantile_ranks`]).
pub const TAIL_REQUESTS_MIN: u64 = Response::P99.requests_min();

/// Fewest values for a 95 % interval of their median.
pub const TRIALS_MIN: usize = 6;

/// One cell, over its measured trials: successful ones other than warm-ups.
#[derive(Debug, Clone, PartialEq)]
pub struct CellAnalysis {
    /// The cell.
    pub cell: Cell,
    /// Number of measured trials.
    pub n: usize,
    /// Number of failed trials.
    pub failed: usize,
    /// Number of successful warm-up trials, which no value includes; 0 for a group.
    pub warm_ups: usize,
    /// Each quantity, over the trials with enough requests for it.
    pub of: PerResponse<Option<Summary>>,
    /// The response of the experiment.
    pub response: Option<Summary>,
    /// Value of the response in each measured trial, in the order of time.
    pub values: Vec<f64>,
    /// Block of each trial in `values`.
    pub blocks: Vec<u32>,
    /// Requests per second in each measured trial, in the order of time.
    pub iops_values: Vec<f64>,
    /// Block of each trial in `iops_values`.
    pub iops_blocks: Vec<u32>,
    /// Tests of the order of the response's values.
    pub series_tests: SeriesTests,
    /// Latencies of the operation with more requests: medians over the trials, and the greatest of all.
    pub latency: Option<LatencySummary>,
    /// Likewise of the syncs that followed writes; `None` where none did.
    pub sync: Option<LatencySummary>,
    /// Numbers of each operation, if the cell has several.
    pub mix: Option<Mix>,
    /// Ratio of p99 to p50, over the trials with enough requests for p99.
    pub tail: Option<Summary>,
    /// Ratio of p99 to p50 in each of these trials, in the order of time.
    pub tail_ratios: Vec<f64>,
    /// Block of each trial in `tail_ratios`.
    pub tail_blocks: Vec<u32>,
    /// Requested and achieved rate; `None` in the closed loop.
    pub rate_report: Option<CellRate>,
    /// Concurrency, requested and achieved; `None` where it is unknown or has no meaning.
    pub concurrency: Option<Concurrency>,
    /// Share of a ceiling; `None` where no ceiling is known.
    pub efficiency: Option<Efficiency>,
    /// Median over the trials of the page faults without I/O.
    pub minor_faults: Option<f64>,
    /// Whether a time limit ended any of its trials, so that their length is a setting.
    pub ended_by_time: bool,
    /// Origin of the bytes; `None` without trials, and for commands, whose files nothing is known of.
    pub served: Option<CellServed>,
    /// Result of reading back; `None` where no trial was verified.
    pub verified: Option<CellVerified>,
    /// Time by layer, from traced trials; `None` if no trial was traced.
    pub stages: Option<CellStages>,
    /// Disturbances from outside during its trials.
    pub disturbance: CellDisturbance,
    /// Counts of the drives below it; `None` if no log of a drive was read.
    pub drives: Option<CellDrives>,
    /// The I/O limit of control groups that the cell reached, which then decides its rate.
    pub io_limit: Option<ReachedLimit>,
    /// Whether the cell only reads, and the storage may still have been writing what other cells had left in its
    /// volatile cache.
    pub reads_after_writes: bool,
    /// Number of times that the run had written the whole region before its last five trials; `None` for cells
    /// that do not write.
    pub overwritten: Option<f64>,
    /// Step of the clock that timed its requests, ns; `None` if it is unknown, and for trials of another tool.
    pub clock_resolution_ns: Option<f64>,
    /// Distance of the response's median to the farther end of its interval, over the median.
    pub precision: Option<f64>,
    /// Reason why the cell has no trial, or none after some point; `None` for most cells.
    pub gap: Option<String>,
    /// The version and the command line of another tool's last trial.
    pub peer_command: Option<String>,
    /// Warnings to readers, distinct, in a fixed order.
    pub flags: Vec<DoubtKind>,
    /// Analyses of the groups, then of all of them together; empty without groups.
    pub groups: Vec<GroupAnalysis>,
    /// Analyses of the ranks; `None` for a single process.
    pub ranks: Option<CellRanks>,
}

impl CellAnalysis {
    /// The median of a quantity over the trials.
    pub fn median(&self, of: Response) -> Option<f64> {
        self.of[of].map(|summary| summary.median)
    }

    /// Whether it has a requested rate, and no trial missed it.
    pub fn keeps_rate(&self) -> bool {
        let report = self.rate_report.as_ref();
        report.is_some_and(|report| report.not_held == 0)
    }

    /// Whether a requested rate decides throughput and IOPS: all workers have one, and no trial missed it.
    pub fn is_paced(&self) -> bool {
        match self.groups.as_slice() {
            [own @ .., _all] if self.rate_report.is_none() => {
                own.iter().all(|group| group.cell.keeps_rate())
            }
            _ => self.keeps_rate(),
        }
    }

    /// Whether every measured trial was served by the device.
    pub fn is_device(&self) -> bool {
        self.served.as_ref().and_then(CellServed::unanimous) == Some(ServedBy::Device)
    }

    /// Whether every measured trial was served by the target, a device or a model, or there is no source to ask for.
    pub fn is_target(&self) -> bool {
        let target = [Some(ServedBy::Device), Some(ServedBy::Model)];
        let served = self.served.as_ref();
        served.is_none_or(|served| target.contains(&served.unanimous()))
    }

    /// The origin of its bytes, if it is known for these bytes alone; `None` for one of several groups.
    pub fn served_alone(&self) -> Option<&CellServed> {
        self.served.as_ref().filter(|served| !served.is_shared)
    }

    /// Whether its trials were disturbed from outside: by others' traffic, shared CPUs, a quota, or a suspended machine.
    pub fn is_disturbed(&self) -> bool {
        self.flags.iter().any(|flag| flag.disturbs())
    }

    /// Whether the machine or iolab was suspended during a trial.
    pub fn is_suspended(&self) -> bool {
        self.disturbance.slept().is_some()
    }

    /// Its requests per second, and the block of each trial.
    pub(crate) fn iops_trials(&self) -> (&[f64], &[u32]) {
        (&self.iops_values, &self.iops_blocks)
    }

    /// The values of its response, and the block of each trial.
    pub fn trials(&self) -> (&[f64], &[u32]) {
        (&self.values, &self.blocks)
    }

    /// Whether every measured trial was served as requested: by the page cache if it was filled on purpose, by
    /// nothing for programs and null I/O, otherwise by the device, the model or the file server.
    pub fn is_as_asked(&self) -> bool {
        let Some(served) = &self.served else {
            return true;
        };
        // A report that leaves settings out does not show what was asked for.
        let is_known = self.cell.spec.unknown.is_empty();
        let Some(verdict) = served.unanimous().filter(|_| is_known) else {
            return false;
        };
        // The client sees only that its own page cache had no part.
        let storage = [ServedBy::Device, ServedBy::Model, ServedBy::Network];
        let mut trials = self.cell.spec.trials().into_iter();
        trials.all(|trial| match (trial.backend, trial.cache) {
            (Backend::Null, _) => verdict == ServedBy::NotStorage,
            (_, CacheState::Hot) => verdict == ServedBy::PageCache,
            _ => storage.contains(&verdict),
        })
    }
}

/// A whole run, analysed.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Name of the experiment.
    pub experiment: String,
    /// Question of the experiment.
    pub question: String,
    /// Measured quantity.
    pub response: Response,
    /// The group that the response covers; `None` for whole trials.
    pub response_group: Option<String>,
    /// The operation whose latency is shown.
    pub timed: ShownLatency,
    /// Names of the factors, in the order of the cells' levels.
    pub factors: Vec<String>,
    /// Whether the definition could be read. If not, it is unknown how trials follow each other, what was
    /// repeated until steady, and which standard or cause was asked for. Trials then count as blocks in random
    /// order.
    pub has_definition: bool,
    /// Whether the experiment lists its cells one by one, as ways to do one task, instead of sweeping a grid.
    pub is_listed: bool,
    /// Precision goal: distance of the median to the farther end of its 95 % interval, over the median.
    pub precision_goal: f64,
    /// Whether trials are repeated for the precision goal: not if steady rounds end them, or if each cell gets
    /// one trial.
    pub seeks_precision: bool,
    /// State of the run.
    pub status: RunStatus,
    /// The target, as the run file names it.
    pub target: String,
    /// The kind of the target.
    pub target_kind: TargetKind,
    /// Each of its targets, the run's own first.
    pub targets: Vec<MeasuredTarget>,
    /// Identity of the storage, as far as the run records it: host, device and model, or the digest of a
    /// modelled disk. Two runs on a path of the same name used the same storage if this is equal.
    pub storage: String,
    /// The title of the model; `None` for a device.
    pub model: Option<String>,
    /// Seed of the run, which seeds the resampling too.
    pub seed: u64,
    /// Sizes at which the machine changes its behaviour, in ascending order.
    pub machine_thresholds: Vec<MachineThreshold>,
    /// Length of the device's queue in requests (`nr_requests`); `None` where unknown.
    pub requests_max: Option<f64>,
    /// All cells in the order of the definition; sizes that the run added are sorted in.
    pub cells: Vec<CellAnalysis>,
    /// Changes of the level of throughput, over the run and within trials.
    pub timeline: Timeline,
    /// The rounds that were repeated until they were steady; `None` where there were none.
    pub steady: Option<SteadyAnalysis>,
    /// The test of a standard that it follows, and its deviations.
    pub standard: Option<StandardFollowed>,
    /// The question of a run that was made to find a cause.
    pub inquiry: Option<Inquiry>,
    /// Whether its storage was written before the first trial.
    pub is_preconditioned: bool,
    /// Whether the order of its cells may decide their results.
    pub depends_on_order: bool,
    /// Order in which the trials follow each other; `None` if that is not known.
    pub trial_order: Option<TrialOrder>,
}

impl Analysis {
    /// Name of the target with this path; without a path, of the run's target.
    pub fn target_of<'a>(&'a self, named: Option<&'a TargetName>) -> &'a str {
        let Some(named) = named.filter(|_| self.targets.len() > 1) else {
            return &self.target;
        };
        let mut targets = self.targets.iter();
        let found = targets.find(|target| target.path == named.as_str());
        found.map_or(named.as_str(), |target| &target.name)
    }

    /// The level of a cell in a factor, or the value of a setting that is not a factor of its run.
    pub fn level(&self, cell: &CellAnalysis, name: &str) -> String {
        let mut levels = self.factors.iter().zip(&cell.cell.levels);
        let spec = &cell.cell.spec;
        match (levels.find(|(factor, _)| *factor == name), name) {
            (Some((_, level)), _) => level.clone(),
            (None, "target") => self.target_of(spec.target.as_ref()).to_owned(),
            (None, _) => Setting::find(name).map_or_else(String::new, |one| one.get(spec)),
        }
    }

    /// Whether the user has ended the repetition of a cell.
    pub fn is_ended_by_user(&self) -> bool {
        let mut cells = self.cells.iter();
        cells.any(|cell| cell.cell.ended_by == Some(EndedBy::User))
    }

    /// Whether several processes (ranks) measured together.
    pub fn spans_ranks(&self) -> bool {
        self.cells.iter().any(|cell| cell.ranks.is_some())
    }
}

/// Analyses a run. Deterministic.
pub fn analyse(record: &RunRecord) -> Analysis {
    analyse_timed(record, |number| record.timed(number))
}

/// Analyses a run. `timed` chooses the latency to show by group number; 0 stands for whole trials.
pub(crate) fn analyse_timed(record: &RunRecord, timed: impl Fn(u32) -> ShownLatency) -> Analysis {
    let trials = Trials::of(record);
    let definition = Experiment::from_toml(&record.experiment.toml, "the run file");
    let experiment = definition.as_ref().ok();
    let context = Context::of(record, experiment, timed(0));
    let mut cells = summaries(record, &context, &trials, &timed);
    let depends_on_order = experiment.is_some_and(|experiment| {
        let measured = cells.iter().filter(|cell| cell.n > 0);
        depends_on_order(&experiment.design, measured.map(|cell| &cell.cell.spec))
    });
    trials::mark_reads_after_writes(record, &mut cells);
    if experiment.is_some_and(|one| one.refined.is_some() || one.seek.is_some()) {
        order_by_size(&mut cells, &record.experiment.factors);
    }
    judge(record, &context, &trials, &mut cells);
    let steady =
        experiment.and_then(|experiment| SteadyAnalysis::of(record, experiment, context.timed));
    let environment = &record.environment;
    // Further targets may have other queues.
    let is_only = record.further_targets.is_empty();
    let requests_max = environment.get(&KEYS.device_requests_max);
    let requests_max = requests_max.filter(|count| *count > 0 && is_only);
    Analysis {
        standard: experiment.and_then(|experiment| {
            StandardFollowed::of_run(record, experiment, steady.as_ref(), &cells)
        }),
        experiment: record.experiment.name.clone(),
        question: record.experiment.question.clone(),
        response: record.experiment.response,
        response_group: record.experiment.response_group.clone(),
        timed: timed(record.asked_group().unwrap_or(0)),
        factors: record.experiment.factors.clone(),
        has_definition: experiment.is_some(),
        is_listed: experiment.is_some_and(|experiment| !experiment.only.is_empty()),
        precision_goal: record.experiment.precision,
        seeks_precision: context.seeks_precision(),
        status: record.run.status,
        target: record.target_text(),
        targets: trials::all(record),
        target_kind: record.run.target_kind,
        storage: [record.run.target_kind.name(), " ", &record.storage_of(0)].concat(),
        model: (record.run.target_kind == TargetKind::Model)
            .then(|| environment.get(&KEYS.model_title).unwrap_or_default()),
        seed: record.run.seed,
        machine_thresholds: machine_thresholds(&record.environment),
        requests_max: requests_max.map(|count| count as f64),
        cells,
        timeline: Timeline::of(record, &crate::disturbance::of_trials(record)),
        steady,
        inquiry: experiment.and_then(|experiment| experiment.inquiry.clone()),
        is_preconditioned: experiment
            .is_some_and(|experiment| experiment.design.precondition.writes()),
        depends_on_order,
        // Trials of other tools are not in blocks.
        trial_order: experiment
            .filter(|_| record.run.target_kind != TargetKind::Imported)
            .map(TrialOrder::of),
    }
}

/// Properties of the run that the analysis of each cell needs.
struct Context<'a> {
    record: &'a RunRecord,
    /// The latency that whole trials show; groups have their own.
    timed: ShownLatency,
    /// The definition of the run, where it can be read.
    definition: Option<&'a Experiment>,
    /// Number of hosts on which the processes of the run were.
    hosts: u32,
}

impl<'a> Context<'a> {
    /// Context of a run, with its definition if that can be read.
    fn of(record: &'a RunRecord, definition: Option<&'a Experiment>, timed: ShownLatency) -> Self {
        let hosts: BTreeSet<u32> = record.ranks.iter().map(|rank| rank.host).collect();
        Self {
            record,
            timed,
            definition,
            hosts: u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1),
        }
    }

    fn seeks_precision(&self) -> bool {
        self.definition
            .is_none_or(|experiment| experiment.design.seeks_precision())
    }

    fn trials_min(&self) -> usize {
        self.record.experiment.trials_min as usize
    }

    fn cell(
        &self,
        cell: &Cell,
        trials: &[&Sample],
        gap: Option<&str>,
        timed: ShownLatency,
    ) -> CellAnalysis {
        let around = Surroundings::of(&self.record.environment_of(cell));
        let accounting = Accounting::of(cell, around);
        let (ok, failed): (Vec<&Sample>, Vec<&Sample>) = trials.iter().partition(|s| s.ok);
        let mut values: PerResponse<(Vec<f64>, Vec<u32>)> = PerResponse::default();
        for response in Response::ALL {
            let of_each = ok
                .iter()
                .map(|trial| Some((trial.value(response, timed)?, trial.block)));
            values[response] = match response.is_latency() {
                false => of_each.flatten().unzip(),
                true => of_all(of_each),
            };
        }
        let tails = ok.iter();
        let tails = tails.map(|trial| Some((tail(trial, timed)?, trial.block)));
        let (tail_ratios, tail_blocks) = of_all(tails);
        let step_ns = self.record.run.clock_resolution_ns;
        let peer = ok.last().filter(|_| is_peer(cell));
        let shown = self.record.experiment.response;
        let (measured, blocks) = values[shown].clone();
        let (iops_values, iops_blocks) = values[Response::Iops].clone();
        let of = values.map(|(values, _)| summary(&values));
        let response = of[shown];
        CellAnalysis {
            cell: cell.clone(),
            n: ok.len(),
            failed: failed.len(),
            warm_ups: 0,
            of,
            response,
            series_tests: series_tests(&measured),
            values: measured,
            blocks,
            iops_values,
            iops_blocks,
            latency: over_trials(&ok, |s| timed.requests(s).waited()),
            sync: over_trials(&ok, |s| s.operations.sync.latency.as_deref()),
            mix: groups::mix(cell, &ok, timed),
            tail: summary(&tail_ratios),
            tail_ratios,
            tail_blocks,
            rate_report: CellRate::of(cell, &ok, timed),
            concurrency: Concurrency::of(cell, &ok, &accounting),
            efficiency: None,
            minor_faults: median_of(&ok, |s| Some(s.counters.usage.minor_faults as f64)),
            ended_by_time: ok.iter().any(|sample| sample.ended == Ended::Time),
            served: trials::served(&ok)
                .filter(|_| self.record.run.target_kind != TargetKind::Commands),
            verified: CellVerified::of(cell, trials),
            stages: CellStages::of(&ok),
            reads_after_writes: false,
            io_limit: None,
            drives: CellDrives::of(&ok),
            disturbance: CellDisturbance::of(&accounting, &ok),
            overwritten: None,
            clock_resolution_ns: step_ns.filter(|_| !is_peer(cell)),
            precision: response.as_ref().and_then(Summary::precision),
            gap: gap.map(str::to_owned),
            peer_command: peer.map(|last| last.command().unwrap_or_default()),
            flags: Vec::new(),
            groups: Vec::new(),
            ranks: None,
        }
    }
}

/// p99 over p50 of a trial's latency; `None` with too few requests.
fn tail(sample: &Sample, timed: ShownLatency) -> Option<f64> {
    let direction = timed.requests(sample);
    let latency = direction.waited()?;
    let (p50, p99) = (latency[Response::Latency]?, latency[Response::P99]?);
    (direction.requests >= TAIL_REQUESTS_MIN && p50 > 0.0).then(|| p99 / p50)
}

/// Values with their blocks: all trials have one, or none counts. A trial of a set time that has too few requests for a
/// quantile was slow: the others alone would be the fast ones.
fn of_all(trials: impl Iterator<Item = Option<(f64, u32)>>) -> (Vec<f64>, Vec<u32>) {
    trials.collect::<Option<_>>().unwrap_or_default()
}

fn is_peer(cell: &Cell) -> bool {
    cell.spec.tool.is_peer()
}

/// Latencies over the trials, of one of the histograms of each: medians, and the greatest of all.
pub(crate) fn over_trials(
    trials: &[&Sample],
    which: impl Fn(&Sample) -> Option<&LatencySummary>,
) -> Option<LatencySummary> {
    let all: Vec<&LatencySummary> = trials.iter().filter_map(|s| which(s)).collect();
    let value = |of: Response| {
        let values: Vec<f64> = all.iter().filter_map(|one| one[of]).collect();
        match of {
            Response::Max => values.into_iter().reduce(f64::max),
            _ => median(&values),
        }
    };
    (!all.is_empty()).then(|| LatencySummary::from_fn(value))
}
