//! How far the numbers of several runs can be trusted, in one verdict with what it rests on.

use std::collections::BTreeMap;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{Analysis, Caution, CellAnalysis};
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

/// Why numbers are not fully trusted: the first of these that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Nothing was measured.
    NoTrials,
    /// Trials without a valid number: the worst of what ruins them.
    Ruined(Caution),
    /// Most cells were not served by what they ask for.
    NotAsAsked,
    /// Others used the disk or the CPUs during most cells, and most missed the precision goal.
    DisturbedAndImprecise,
    /// Most intervals are wider than their medians.
    NothingPrecise,
    /// Some cells were not served by what they ask for.
    SomeNotAsAsked,
    /// Some cells were disturbed.
    SomeDisturbed,
    /// Some cells only read while the storage may still have written for others.
    ReadsAfterWrites,
    /// A run did not finish.
    Unfinished,
    /// The definition of a run cannot be read.
    NoDefinition,
    /// More than a tenth of the cells missed the precision goal.
    Imprecise,
}

/// How far numbers can be trusted. Counts are of cells with measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// The verdict.
    pub level: Level,
    /// What it rests on, where it is not the best one.
    pub reason: Option<Reason>,
    /// Cells with measured trials.
    pub cells: usize,
    /// Cells without any.
    pub unmeasured: usize,
    /// Cells per source of their bytes; a cell whose trials disagree counts as [`ServedBy::Mixed`].
    pub served: BTreeMap<ServedBy, usize>,
    /// Cells whose run repeats trials for a precision goal.
    pub sought: usize,
    /// Those of them that reached it.
    pub precise: usize,
    /// The least strict goal of the runs.
    pub goal: f64,
    /// The widest interval: its half-width over the median.
    pub widest: Option<f64>,
    /// Cells that were disturbed from outside.
    pub disturbed: usize,
    /// Cells that only read while the storage may still have written for others.
    pub after_writes: usize,
    /// Cells with a trial that has no valid number.
    pub ruined: usize,
    /// Whether the machine is virtual; `None` where that is not known or differs between runs.
    pub is_virtual: Option<bool>,
    /// Runs that did not finish.
    pub unfinished: usize,
    /// Runs whose definition cannot be read.
    pub undefined: usize,
}

/// Share of cells that may miss the precision goal in a run that is trusted.
const IMPRECISE_MAX: f64 = 0.1;

impl Trust {
    /// Judges runs together.
    pub fn of(runs: &[&AnalysedRun]) -> Self {
        Self::of_cells(runs, |_, _| true)
    }

    /// Judges what runs measured on one target, as they name it.
    pub fn on(runs: &[&AnalysedRun], target: &str) -> Self {
        Self::of_cells(runs, |run, cell| {
            run.target_of(cell.cell.spec.target.as_ref()) == target
        })
    }

    /// Judges these cells of runs; a run without any does not count.
    fn of_cells(runs: &[&AnalysedRun], is_own: impl Fn(&Analysis, &CellAnalysis) -> bool) -> Self {
        let with_cells = runs.iter().map(|run| {
            let analysis = run.analysis();
            let own = analysis.cells.iter();
            let own: Vec<&CellAnalysis> = own.filter(|cell| is_own(analysis, cell)).collect();
            (*run, own)
        });
        let runs: Vec<(&AnalysedRun, Vec<&CellAnalysis>)> = with_cells
            .filter(|(run, own)| !own.is_empty() || run.analysis().cells.is_empty())
            .collect();
        let all = || runs.iter().flat_map(|(_, own)| own.iter().copied());
        let measured: Vec<&CellAnalysis> = all().filter(|cell| cell.n > 0).collect();
        let ruin = |cell: &&CellAnalysis| {
            let cautions = cell.flags.iter().filter_map(|flag| flag.caution());
            let ruins = cautions.filter(|caution| caution.ruins);
            ruins.min_by_key(|caution| caution.rank)
        };
        let ruins: Vec<Caution> = measured.iter().filter_map(ruin).collect();
        let mut served = BTreeMap::new();
        for cell in &measured {
            let verdict = cell
                .served
                .as_ref()
                .map(|s| s.unanimous().unwrap_or(ServedBy::Mixed));
            *served.entry(verdict.unwrap_or_default()).or_insert(0) += 1;
        }
        let seeking = || {
            let runs = runs.iter();
            runs.filter(|(run, _)| run.analysis().seeks_precision)
        };
        let sought = || seeking().flat_map(|(_, own)| own.iter().copied());
        let precise = seeking().flat_map(|(run, own)| {
            let goal = run.analysis().precision_goal;
            let is_silent = |cell: &CellAnalysis| cell.n > 0 && !run.analysis().has_response(cell);
            let reached = move |cell: &&CellAnalysis| {
                cell.precision.is_some_and(|p| p <= goal) || is_silent(cell)
            };
            own.iter().copied().filter(reached)
        });
        let mut virtuals = runs
            .iter()
            .map(|(run, _)| run.record().environment.get(&KEYS.machine_is_virtual));
        let first = virtuals.next().flatten();
        let mut trust = Self {
            level: Level::Good,
            reason: None,
            cells: measured.len(),
            unmeasured: all().count() - measured.len(),
            served,
            sought: sought().filter(|cell| cell.n > 0).count(),
            precise: precise.count(),
            goal: seeking()
                .map(|(run, _)| run.analysis().precision_goal)
                .fold(0.0, f64::max),
            widest: sought()
                .filter_map(|cell| cell.precision)
                .max_by(f64::total_cmp),
            disturbed: measured.iter().filter(|cell| cell.is_disturbed()).count(),
            after_writes: measured
                .iter()
                .filter(|cell| cell.reads_after_writes)
                .count(),
            ruined: ruins.len(),
            is_virtual: first.filter(|_| virtuals.all(|other| other == first)),
            unfinished: runs
                .iter()
                .filter(|(run, _)| run.analysis().status != RunStatus::Done)
                .count(),
            undefined: runs
                .iter()
                .filter(|(run, _)| !run.analysis().has_definition)
                .count(),
        };
        let asked = measured.iter().filter(|cell| cell.is_as_asked()).count();
        let unprecise = measured
            .iter()
            .filter(|cell| cell.precision.is_some_and(|p| p > 1.0))
            .count();
        let worst = ruins.into_iter().min_by_key(|caution| caution.rank);
        trust.reason = match worst {
            Some(caution) => Some(Reason::Ruined(caution)),
            None => trust.judge(asked, unprecise),
        };
        trust.level = trust.reason.map_or(Level::Good, Reason::level);
        trust
    }

    /// `asked`: cells that were served by what they asked for; `unprecise`: cells whose interval is wider than their median.
    fn judge(&self, asked: usize, unprecise: usize) -> Option<Reason> {
        let imprecise = self.sought - self.precise;
        let is_most = |n: usize| 2 * n > self.cells;
        let reasons = [
            (self.cells == 0, Reason::NoTrials),
            (2 * asked < self.cells, Reason::NotAsAsked),
            (
                is_most(self.disturbed) && is_most(imprecise),
                Reason::DisturbedAndImprecise,
            ),
            (is_most(unprecise), Reason::NothingPrecise),
            (asked < self.cells, Reason::SomeNotAsAsked),
            (self.disturbed > 0, Reason::SomeDisturbed),
            (self.after_writes > 0, Reason::ReadsAfterWrites),
            (self.unfinished > 0, Reason::Unfinished),
            (self.undefined > 0, Reason::NoDefinition),
            (
                imprecise as f64 > IMPRECISE_MAX * self.cells as f64,
                Reason::Imprecise,
            ),
        ];
        let found = reasons.into_iter().find(|(holds, _)| *holds);
        found.map(|(_, reason)| reason)
    }
}

impl Reason {
    fn level(self) -> Level {
        match self {
            Self::NoTrials
            | Self::Ruined(_)
            | Self::NotAsAsked
            | Self::DisturbedAndImprecise
            | Self::NothingPrecise => Level::Poor,
            Self::SomeNotAsAsked
            | Self::SomeDisturbed
            | Self::ReadsAfterWrites
            | Self::Unfinished
            | Self::NoDefinition
            | Self::Imprecise => Level::Limited,
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
