//! Forecast of the trials, time and written bytes of a plan, before anything is touched.

use std::collections::BTreeSet;
use std::time::Duration;

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Arrivals, TrialSpec};

use crate::batch_probes;
use crate::blocks::may_end_unsynced;
use crate::cells::{Plan, PlannedCell};
use crate::experiment::BlockTimes;
use crate::precondition::Precondition;

/// The assumed rate of fast storage, bytes per second, for estimates before the target has been measured.
pub const ASSUMED_RATE: f64 = 3e9;

/// Forecast of one experiment: number of cells and trials, time, bytes written.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Name of the experiment.
    pub experiment: String,
    /// Number of cells.
    pub cells: usize,
    /// Fewest and most trials with which the repetition ends within the budget, including warm-ups.
    pub trials: (u64, u64),
    /// Shortest and longest time of measuring: the shortest on fast storage, `None` if a trial runs a program.
    pub time: (Option<Duration>, Duration),
    /// The longest time of one trial of each cell; `None` if a trial has no time limit.
    block: Option<Duration>,
    /// Most bytes that the trials write; `None` if only time limits them.
    pub written: Option<u64>,
    /// Whether trials trim blocks, which loses what these held.
    pub trims: bool,
    /// Whether the number of trials alone ends it, and no budget.
    pub is_counted: bool,
    /// Whether trials may end with writes that no sync followed. Such data is written out from caches between trials, which
    /// `time` does not count.
    pub leaves_writes: bool,
    /// Writes before the first trial, as passes over this many bytes.
    pub precondition: (Precondition, u64),
    /// Most bytes that it writes to all targets, with their fill.
    budget: Option<u64>,
}

impl Forecast {
    /// The forecast of a plan; `overhead` is the time of a trial besides its I/O.
    pub fn of(plan: &Plan, overhead: &dyn Fn(&CellSpec) -> Duration) -> Self {
        let (design, cells) = (plan.experiment().design, plan.cells());
        let trials = |measured: u32| cells.len() as u64 * u64::from(measured + design.warm_ups());
        let fewest = design.trials_wanted(cells.len());
        let trials = (trials(fewest), trials(design.trials_max));
        let own = cells.iter().map(|cell| overhead(&cell.spec));
        let own = own.fold(Duration::ZERO, Duration::saturating_add);
        // Trials of other tools have no time limit, but take a minimum time on any storage.
        let is_bounded = block_time(cells).is_some() || !own.is_zero();
        let at_most = plan.block_at_most(overhead);
        let block = is_bounded.then_some(at_most);
        let runs_program = cells.iter().any(|cell| cell.spec.runs_program());
        let least = least_block_time(cells, overhead).saturating_mul(fewest + design.warm_ups());
        let region = cells.iter().flat_map(|cell| cell.spec.trials());
        let region = region.map(|trial| trial.region).max().unwrap_or(0);
        let probes = batch_probes::time(cells);
        let granted = at_most.saturating_mul(design.granted());
        let granted = granted.saturating_add(probes);
        let budget = design.time_at_most(block);
        let trials_of_each = match plan.adds_cells() {
            true => u64::MAX,
            false => u64::from(design.trials_max + design.warm_ups()),
        };
        Self {
            experiment: plan.experiment().name.clone(),
            cells: cells.len(),
            trials,
            time: (
                (!runs_program).then(|| least.min(design.budget)),
                budget.max(granted),
            ),
            block,
            written: written(cells, trials_of_each),
            trims: cells
                .iter()
                .any(|cell| cell.spec.trials().into_iter().any(TrialSpec::trims)),
            is_counted: design.is_counted(),
            leaves_writes: plan.leaves_writes(),
            precondition: (design.precondition, region),
            budget: design.writes.map(|most| {
                let targets = cells.iter().flat_map(|cell| cell.spec.targets());
                most.saturating_mul(targets.collect::<BTreeSet<_>>().len() as u64)
            }),
        }
    }

    /// The forecast if filling the targets writes this many bytes, which a budget of writes pays for first.
    #[must_use]
    pub fn beside_fill(mut self, filled: u64) -> Self {
        if let (Some(bytes), Some(budget)) = (&mut self.written, self.budget) {
            *bytes = (*bytes).min(budget.saturating_sub(filled));
        }
        self
    }

    /// The rest of it after this many trials, which took this time of the budget.
    #[must_use]
    pub fn after(mut self, made: u64, spent: Duration) -> Self {
        let (least, most) = self.trials;
        self.trials = (least.saturating_sub(made), most.saturating_sub(made));
        let (least_time, most_time) = self.time;
        // The other work of past counted trials says nothing about the rest.
        let share = self.trials.1 as f64 / most.max(1) as f64;
        let rest = |time: Duration| match self.is_counted {
            true => Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(time),
            false => time.saturating_sub(spent),
        };
        // A block is granted to every session.
        self.time = (
            least_time.map(rest),
            rest(most_time).max(self.block.unwrap_or_default()),
        );
        if let Some(bytes) = &mut self.written {
            *bytes = (*bytes as f64 * self.trials.1 as f64 / most.max(1) as f64) as u64;
        }
        self
    }

    /// Whether its trials change stored data: they write or trim.
    pub fn changes_data(&self) -> bool {
        self.written != Some(0) || self.trims
    }

    /// Most bytes that its trials write on storage of the assumed rate.
    pub fn writes(&self) -> Writes {
        let in_time = (ASSUMED_RATE * self.time.1.as_secs_f64()) as u64;
        let bounded = self.written.filter(|bytes| *bytes <= in_time);
        Writes {
            bytes: bounded.unwrap_or(in_time),
            is_bounded: bounded.is_some(),
        }
    }
}

/// Most bytes that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// Number of bytes.
    pub bytes: u64,
    /// Whether the trials themselves bound it; otherwise time does, on storage of the assumed rate.
    pub is_bounded: bool,
}

impl Writes {
    /// No bytes.
    pub const NOTHING: Self = Self {
        bytes: 0,
        is_bounded: true,
    };

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            is_bounded: self.is_bounded && other.is_bounded,
        }
    }
}

impl Plan {
    /// Whether the run adds cells: levels near bends, rates of a search.
    pub fn adds_cells(&self) -> bool {
        let experiment = self.experiment();
        experiment.design.refine > 0 || experiment.seek.is_some()
    }

    /// Whether trials may end with writes that no sync followed: what caches then hold is written out between trials.
    pub fn leaves_writes(&self) -> bool {
        let mut cells = self.cells().iter();
        cells.any(|cell| may_end_unsynced(&cell.spec))
    }

    /// A warning for a budget that is too short for the fewest trials, from their time limits and from `overhead`, the time of a
    /// trial besides its I/O. `None` if the budget suffices.
    pub fn shortfall(&self, overhead: &dyn Fn(&CellSpec) -> Duration) -> Option<String> {
        // An explanation has as many blocks as the times that its trials took leave room for.
        if self.experiment().inquiry.is_some() {
            return None;
        }
        let times = BlockTimes {
            probes: batch_probes::time(self.cells()),
            least: least_block_time(self.cells(), overhead),
            longest: self.block_at_most(overhead),
        };
        let design = self.experiment().design;
        design.shortfall(self.cells().len(), times)
    }

    /// The longest time that one trial of each cell takes, from the time limits of trials and from `overhead`, their time
    /// besides I/O. A cell without a limit counts with its shortest time.
    pub fn block_at_most(&self, overhead: &dyn Fn(&CellSpec) -> Duration) -> Duration {
        let times = requesting(self.cells()).map(|cell| match cell.spec.time_foreseen() {
            Some(time) => time.saturating_add(overhead(&cell.spec)),
            None => least_time(cell, overhead),
        });
        times.fold(Duration::ZERO, Duration::saturating_add)
    }
}

/// Cells whose trials are requests. The time of a program is an emergency limit and does not predict its duration.
fn requesting(cells: &[PlannedCell]) -> impl Iterator<Item = &PlannedCell> {
    cells.iter().filter(|cell| !cell.spec.runs_program())
}

/// The shortest time of one trial of each cell.
fn least_block_time(cells: &[PlannedCell], overhead: &dyn Fn(&CellSpec) -> Duration) -> Duration {
    let times = requesting(cells).map(|cell| least_time(cell, overhead));
    times.fold(Duration::ZERO, Duration::saturating_add)
}

/// The shortest time of a trial, on storage of the assumed rate, until its time or its bytes are used up.
fn least_time(cell: &PlannedCell, overhead: &dyn Fn(&CellSpec) -> Duration) -> Duration {
    let trial = &cell.spec.trial;
    // With a rate, storage is not faster than the rate.
    let bytes = trial
        .requests_bound()
        .filter(|_| trial.rate.is_none())
        .map(|count| count as f64 * trial.mean_request());
    let transfer = bytes.map(|bytes| Duration::from_secs_f64(bytes / ASSUMED_RATE));
    let time = [trial.time_foreseen(), transfer]
        .into_iter()
        .flatten()
        .min();
    time.unwrap_or_default()
        .saturating_add(cell.spec.idle)
        .saturating_add(overhead(&cell.spec))
}

/// The longest time of one trial of each cell; `None` if a trial has no time limit.
fn block_time(cells: &[PlannedCell]) -> Option<Duration> {
    let mut times = cells.iter().map(|cell| {
        let time = cell.spec.time_foreseen();
        time.filter(|_| !cell.spec.runs_program())
    });
    times.try_fold(Duration::ZERO, |sum, time| Some(sum.saturating_add(time?)))
}

/// Most bytes that this many trials of each cell write; `None` if only time limits them.
fn written(cells: &[PlannedCell], trials: u64) -> Option<u64> {
    let cells = cells.iter().filter(|cell| !cell.spec.runs_program());
    // Each group ends by its own limits.
    let writing = cells.flat_map(|cell| match cell.spec.only_trial() {
        Some(trial) => vec![trial.clone()],
        None => cell
            .spec
            .group_trials()
            .into_iter()
            .map(|group| group.trial)
            .collect(),
    });
    let mut of_block = writing.filter(TrialSpec::writes_data).map(|trial| {
        let share = trial.data_share();
        let requests = [trial.requests_bound(), requests_on_schedule(&trial)];
        let requests = requests.into_iter().flatten().min();
        let requested = requests.map(|count| (count as f64 * trial.mean_request()) as u64);
        let limit = [trial.limit.bytes, requested].into_iter().flatten().min();
        let bytes = limit.map(|bytes| (bytes as f64 * share) as u64);
        bytes.map(|bytes| bytes.saturating_mul(trials))
    });
    of_block.try_fold(0, |sum: u64, bytes| Some(sum.saturating_add(bytes?)))
}

/// Most requests that a trial has at a rate with even spacing; `None` without one, or without a time limit.
fn requests_on_schedule(trial: &TrialSpec) -> Option<u64> {
    let rate = trial
        .rate
        .filter(|_| trial.arrivals == Arrivals::Constant)?;
    let due = rate.per_second(trial.mean_request()) * trial.limit.time?.as_secs_f64();
    // The first request of each thread may be due at the start.
    Some((due.ceil() as u64).saturating_add(trial.threads.into()))
}
