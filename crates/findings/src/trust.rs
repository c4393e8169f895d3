//! How far the numbers of several runs can be trusted, in one verdict with what it rests on.

use std::collections::BTreeMap;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{Caution, CellAnalysis, Flag};
use iolab_record::environment::KEYS;
use iolab_record::{RunStatus, ServedBy};

/// The verdict, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing was found that colours the numbers, and nearly all cells reached the precision goal.
    Good,
    /// Some cells are disturbed, imprecise or not of the device.
    Limited,
    /// Trials failed, data was wrong, or most cells say nothing of the device.
    Poor,
}

/// See the module. Counts are of cells with measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// The verdict.
    pub level: Level,
    /// Cells with measured trials.
    pub cells: usize,
    /// Cells without any.
    pub unmeasured: usize,
    /// Cells per source of their bytes; a cell whose trials disagree counts as [`ServedBy::Mixed`].
    pub served: BTreeMap<ServedBy, usize>,
    /// Cells that reached the precision goal.
    pub precise: usize,
    /// The least strict goal of the runs.
    pub goal: f64,
    /// The widest interval: its half-width over the median.
    pub widest: Option<f64>,
    /// Cells that were disturbed from outside.
    pub disturbed: usize,
    /// Cells with a failed trial or wrong data.
    pub faulty: usize,
    /// Whether the machine is virtual; `None` where that is not known or differs between runs.
    pub is_virtual: Option<bool>,
    /// Runs that did not come to their end.
    pub unfinished: usize,
}

/// Share of cells that may miss the precision goal in a run that is trusted.
const IMPRECISE_MAX: f64 = 0.25;

impl Trust {
    /// Judges runs together.
    pub fn of(runs: &[&AnalysedRun]) -> Self {
        let all = || runs.iter().flat_map(|run| &run.analysis().cells);
        let measured: Vec<&CellAnalysis> = all().filter(|cell| cell.n > 0).collect();
        let flagged = |is: fn(Caution) -> bool| {
            let counts = |flag: &Flag| flag.caution().is_some_and(is);
            let has = |cell: &&&CellAnalysis| cell.flags.iter().any(counts);
            measured.iter().filter(has).count()
        };
        let mut served = BTreeMap::new();
        for cell in &measured {
            let verdict = cell
                .served
                .as_ref()
                .map(|s| s.unanimous().unwrap_or(ServedBy::Mixed));
            *served.entry(verdict.unwrap_or_default()).or_insert(0) += 1;
        }
        let precise = runs.iter().flat_map(|run| {
            let goal = run.analysis().precision_goal;
            let reached = move |cell: &&CellAnalysis| cell.precision.is_some_and(|p| p <= goal);
            run.analysis().cells.iter().filter(reached)
        });
        let mut virtuals = runs
            .iter()
            .map(|run| run.record().environment.get(&KEYS.machine_is_virtual));
        let first = virtuals.next().flatten();
        let mut trust = Self {
            level: Level::Good,
            cells: measured.len(),
            unmeasured: all().count() - measured.len(),
            served,
            precise: precise.count(),
            goal: runs
                .iter()
                .map(|run| run.analysis().precision_goal)
                .fold(0.0, f64::max),
            widest: measured
                .iter()
                .filter_map(|cell| cell.precision)
                .max_by(f64::total_cmp),
            disturbed: flagged(|caution| caution.disturbs),
            faulty: flagged(|caution| caution.ruins),
            is_virtual: first.filter(|_| virtuals.all(|other| other == first)),
            unfinished: runs
                .iter()
                .filter(|run| run.analysis().status != RunStatus::Done)
                .count(),
        };
        let asked = measured.iter().filter(|cell| cell.is_as_asked()).count();
        trust.level = trust.judge(asked);
        trust
    }

    /// `asked`: cells that were served by what they asked for.
    fn judge(&self, asked: usize) -> Level {
        let imprecise = (self.cells - self.precise) as f64;
        if self.cells == 0 || self.faulty > 0 || 2 * asked < self.cells {
            Level::Poor
        } else if asked < self.cells
            || self.disturbed > 0
            || self.unfinished > 0
            || imprecise > IMPRECISE_MAX * self.cells as f64
        {
            Level::Limited
        } else {
            Level::Good
        }
    }
}

impl Level {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Limited => "limited",
            Self::Poor => "poor",
        }
    }
}
