//! The measurements of a run so far, in all of its sessions: the basis of every decision of a strategy.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::peers::PeerList;
use iolab_analysis::snapshot::{CellSnapshot, RepetitionGoal};
use iolab_plan::cells::FittedPlan;
use iolab_plan::experiment::writes_at_most;
use iolab_record::{Event, EventKind, RunRecord, Sample, ShownLatency};
use iolab_workload::outcome::Outcome;

use super::sample::VisitPosition;

/// The trials of a run, their plan, and what follows from both.
pub(super) struct Record {
    /// The plan, with all cells that the run has added.
    pub(super) plan: FittedPlan,
    /// The peers of the program.
    pub(super) peers: PeerList,
    /// The run's seed.
    pub(super) seed: u64,
    /// The run file.
    pub(super) path: PathBuf,
    /// The current time by the clock that budgets count.
    pub(super) now: Duration,
    /// Alignment of direct requests, bytes.
    pub(super) alignment: u64,
    /// All trials, in the order of time.
    pub(super) trials: Vec<Trial>,
    /// Cell and block of the trials that succeeded.
    done: HashSet<(usize, u32)>,
    /// The last block of the successful trials.
    pub(super) last_block: Option<u32>,
    /// Cells that get no further trial.
    pub(super) closed: HashSet<usize>,
    /// Earlier sessions.
    sessions_before: u64,
    /// The times that the next trials are expected to take.
    pub(super) costs: Costs,
    /// All time that counts against the budget.
    pub(super) spent: Duration,
    /// Time of this session that counts against the budget, and that no trial took.
    pub(super) probed: Duration,
    /// The trial that was just made, if it succeeded; `None` before the next one, which needs its memory.
    pub(super) last: Option<Last>,
}

/// A trial of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    pub(super) place: VisitPosition,
    /// Its duration, including preparation and the idle time before it.
    pub(super) wall: Duration,
    /// Whether it counts: no warm-up, and none that failed.
    pub(super) is_measured: bool,
    /// The response, if it has requests enough for one.
    pub(super) value: Option<f64>,
    /// Whether it succeeded.
    pub(super) ok: bool,
    /// Bytes that it wrote.
    pub(super) written: u64,
}

/// A trial in full.
pub(super) struct Last {
    pub(super) sample: Sample,
    pub(super) outcome: Outcome,
}

impl Record {
    /// The record of a run without any trial.
    pub(super) fn new(plan: FittedPlan, peers: PeerList, seed: u64, path: PathBuf) -> Self {
        Self {
            plan,
            peers,
            seed,
            path,
            now: Duration::ZERO,
            alignment: 1,
            trials: Vec::new(),
            done: HashSet::new(),
            last_block: None,
            closed: HashSet::new(),
            sessions_before: 0,
            costs: Costs::default(),
            spent: Duration::ZERO,
            probed: Duration::ZERO,
            last: None,
        }
    }

    /// Takes over what earlier sessions have measured. Samples of cells that the plan does not have are left alone.
    pub(super) fn take_over(&mut self, record: &RunRecord) {
        let cells = self.plan.cells().len();
        for sample in &record.samples {
            let cell = usize::try_from(sample.cell).ok();
            let Some(cell) = cell.filter(|cell| *cell < cells) else {
                continue;
            };
            let place = VisitPosition {
                cell,
                block: sample.block,
                position: sample.position,
                warmup: sample.warmup,
            };
            let wall = Duration::from_nanos(sample.wall_ns);
            self.add(place, wall, sample, record.groups_of(sample.id));
        }
        let is_resume = |event: &&Event| event.kind == EventKind::Resume;
        self.sessions_before = 1 + record.events.iter().filter(is_resume).count() as u64;
    }

    /// Adds a trial with its sample, and the samples of its groups.
    pub(super) fn add(
        &mut self,
        place: VisitPosition,
        wall: Duration,
        sample: &Sample,
        groups: &[Sample],
    ) {
        self.costs.add(place.cell, place.warmup, wall);
        self.spent += wall;
        let ok = sample.ok && self.done.insert((place.cell, place.block));
        if sample.ok {
            self.last_block = self.last_block.max(Some(place.block));
        }
        let is_measured = ok && !place.warmup;
        let value = self.response(place.cell, sample, groups);
        self.trials.push(Trial {
            place,
            wall,
            is_measured,
            value,
            ok,
            written: sample.operations.write.bytes,
        });
    }

    /// The measured quantity of a trial, or of the group that the experiment asks about.
    fn response(&self, cell: usize, sample: &Sample, groups: &[Sample]) -> Option<f64> {
        let experiment = self.plan.experiment();
        let cell = &self.plan.cells()[cell].spec;
        let number = cell.number_of(experiment.response_group.as_deref());
        let timed = self.timed(number);
        match number {
            None => sample.value(experiment.response, timed),
            Some(number) => {
                let own = groups.iter().find(|group| group.group == number);
                own.and_then(|group| group.value(experiment.response, timed))
            }
        }
    }

    /// The requests whose latency the trials show, or a group of this number.
    pub(super) fn timed(&self, group: Option<u32>) -> ShownLatency {
        let cells = self.plan.cells().iter().map(|cell| &cell.spec);
        ShownLatency::of(cells, group.unwrap_or(0))
    }

    /// The end of the repetition of trials; for rounds, of the round in which a cell is measured next.
    pub(super) fn goal(&self, now: usize) -> RepetitionGoal {
        let experiment = self.plan.experiment();
        let design = &experiment.design;
        if experiment.seek.is_some() {
            return RepetitionGoal::Rate;
        }
        match design.precondition.rounds_of_cells() {
            Some(steady) => {
                let of_cell = |trial: &&Trial| trial.is_measured && trial.place.cell == now;
                RepetitionGoal::SteadyRounds {
                    round: self.trials.iter().filter(of_cell).count() + 1,
                    most: steady.rounds,
                }
            }
            None if design.seeks_precision() => RepetitionGoal::Precision(design.precision),
            None => RepetitionGoal::OneTrial,
        }
    }

    /// The state of each cell so far. Summaries exclude trials that have chosen finer sizes, and rounds before the last
    /// window.
    pub(super) fn cells(&self) -> Vec<CellSnapshot> {
        let mut values = vec![Vec::new(); self.plan.cells().len()];
        let refined = self.plan.experiment().refined.as_ref();
        let first = refined.map_or(0, |refined| refined.block);
        let counts = |trial: &&Trial| trial.is_measured && trial.place.block >= first;
        for trial in self.trials.iter().filter(counts) {
            values[trial.place.cell].push(trial.value);
        }
        let rounds = self.plan.experiment().design.precondition.rounds_of_cells();
        let window = rounds.map_or(usize::MAX, |steady| steady.window as usize);
        let cells = self.plan.cells().iter().zip(&values);
        cells
            .map(|(cell, values)| {
                let before = values.len().saturating_sub(window);
                CellSnapshot::new(cell.levels.clone(), &values[before..])
            })
            .collect()
    }

    /// Trials that succeeded, in all sessions.
    pub(super) fn trials_done(&self) -> u64 {
        self.done.len() as u64
    }

    /// Trials that count, in all sessions.
    pub(super) fn measured(&self) -> u64 {
        self.trials.iter().filter(|trial| trial.is_measured).count() as u64
    }

    /// Whether the trial of a cell in a block has succeeded, or will never be made.
    pub(super) fn has(&self, cell: usize, block: u32) -> bool {
        self.closed.contains(&cell) || self.done.contains(&(cell, block))
    }

    /// Cells that get further trials.
    pub(super) fn open_cells(&self) -> impl Iterator<Item = usize> {
        let cells = 0..self.plan.cells().len();
        cells.filter(|cell| !self.closed.contains(cell))
    }

    /// Whether a cell has any trial.
    pub(super) fn has_any(&self, cell: usize) -> bool {
        self.done.iter().any(|(with, ..)| *with == cell)
    }

    /// Whether the writes that the design allows pay for a trial of a cell, whose target a session fills with `filled` bytes. A trial
    /// that ended an earlier session left no sample.
    pub(super) fn pays_writes(&self, cell: usize, filled: u64) -> bool {
        let Some(most) = self.plan.experiment().design.writes else {
            return true;
        };
        let cells = self.plan.cells();
        let spec = &cells[cell].spec;
        let next = writes_at_most(spec);
        let same = |id: usize| cells[id].spec.target == spec.target;
        let cut_off = (0..cells.len()).filter(|id| same(*id));
        let cut_off = cut_off.map(|id| writes_at_most(&cells[id].spec)).max();
        let before = filled.saturating_add(cut_off.unwrap_or(0));
        let before = before.saturating_mul(self.sessions_before);
        let made = self.trials.iter().filter(|trial| same(trial.place.cell));
        let made = made.fold(filled, |sum, trial| sum.saturating_add(trial.written));
        next == 0 || before.saturating_add(made).saturating_add(next) <= most
    }

    /// Counts time outside of trials against the budget.
    pub(super) fn probe(&mut self, took: Duration) {
        self.probed += took;
        self.spent += took;
    }
}

/// Times of the trials of each cell.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Per cell, time and number of its warm-up trials, and of its measured ones.
    cells: HashMap<usize, [(Duration, u32); 2]>,
    /// Time and number of all trials.
    all: (Duration, u32),
}

impl Costs {
    /// Notes a trial.
    pub(super) fn add(&mut self, cell: usize, warmup: bool, took: Duration) {
        let own = &mut self.cells.entry(cell).or_default()[usize::from(!warmup)];
        for (time, trials) in [own, &mut self.all] {
            *time += took;
            *trials += 1;
        }
    }

    /// Expected time of the next trial of a cell: the mean of its measured trials, otherwise of its warm-up, otherwise of
    /// all cells.
    pub(super) fn of(&self, cell: usize) -> Duration {
        let mean = |(time, trials): (Duration, u32)| time.checked_div(trials);
        let own = self.cells.get(&cell);
        let own = own.and_then(|[warmup, measured]| mean(*measured).or_else(|| mean(*warmup)));
        own.or_else(|| mean(self.all)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cells_next_trial_takes_its_measured_mean() {
        let seconds = Duration::from_secs;
        let mut costs = Costs::default();
        assert_eq!(costs.of(0), seconds(0), "nothing is known");
        costs.add(0, true, seconds(9));
        assert_eq!(costs.of(0), seconds(9), "the warm-up");
        assert_eq!(costs.of(1), seconds(9), "the mean of all");
        costs.add(0, false, seconds(1));
        costs.add(0, false, seconds(3));
        assert_eq!(costs.of(0), seconds(2));
    }
}
