//! Comparison of several runs with several others, or of a new run with earlier ones. The run is the unit of replication, and the
//! scatter between runs decides.

pub mod comparable_runs;
mod judge;

use std::collections::{BTreeMap, BTreeSet};

use iolab_record::ServedBy;
use iolab_workload::Result;

use comparable_runs::targets;
pub use judge::{RunCell, judge};

use crate::analysed_run::AnalysedRun;
use crate::analysis::CellAnalysis;
use crate::compare::matching::match_sides;
use crate::compare::{Comparison, Criteria, ReplicationUnit, RunSide, SideName};
use crate::doubt::SideDoubts;
use crate::refusal;
pub use crate::run_name::RunName;

/// Probability with which the detectable change would have been found.
pub const GATE_POWER: f64 = 0.9;

/// A run and the file it was read from.
#[derive(Debug, Clone, Copy)]
pub struct FiledRun<'a> {
    /// The path as the user wrote it.
    pub file: &'a str,
    /// Analysed content of the run.
    pub run: &'a AnalysedRun,
}

impl FiledRun<'_> {
    /// The identity of the run.
    pub fn name(&self) -> RunName {
        RunName::of(self.file, self.run.record())
    }
}

/// The parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunCriteria {
    /// The smallest change that matters, a share; equivalence is shown within it.
    pub margin: f64,
    /// Kind of changes to report.
    pub looks_for: ReportedChanges,
    /// Fewest runs of the base that a cell is judged by.
    pub base_min: usize,
}

/// Kind of changes that a comparison reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedChanges {
    /// Changes in both directions that exceed the margin, or equivalence.
    Changes,
    /// Changes of any size: a gate.
    AnyChange,
    /// Changes of any size, or else equivalence: a strict gate.
    AnyChangeOrEquivalence,
}

impl Comparison {
    /// Compares runs with runs, cell by cell. A run that occurs twice counts once.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no run on a side, a run on both sides, different responses, no cell in
    /// common, or a definition that cannot be read.
    pub fn of_several(
        base: &[FiledRun<'_>],
        new: &[FiledRun<'_>],
        terms: RunCriteria,
    ) -> Result<Self> {
        let (base, new) = (in_time(base), in_time(new));
        if base.is_empty() || new.is_empty() {
            return Err(refusal::side_without_run());
        }
        let ids: Vec<String> = base.iter().map(|run| run.run.record().id()).collect();
        if let Some(twice) = new.iter().find(|run| ids.contains(&run.run.record().id())) {
            return Err(refusal::on_both_sides(twice.file));
        }
        let [sources_base, sources_new] = [&base, &new].map(|runs| sources(runs));
        let matched = match_sides(&sources_base, &sources_new)?;
        let response = matched.response;
        let cells = matched.cells.iter().map(|cell| RunCell {
            levels: cell.levels.clone(),
            base: medians(&cell.base),
            new: medians(&cell.new),
            served: [&cell.base, &cell.new].map(|side| served_of(side)),
            against: SideDoubts::of_runs(&known(&cell.base), &known(&cell.new), response),
        });
        let cells: Vec<RunCell> = cells.collect();
        let (cells, overall) = judge(&cells, response.into(), &terms);
        let lacking = base.iter().chain(&new);
        let lacking = lacking.filter(|run| !run.run.analysis().has_definition);
        let criteria = Criteria {
            margin: terms.margin,
            better: response.into(),
            ..Criteria::default()
        };
        Ok(Self {
            undefined: lacking.map(|run| run.file.to_owned()).collect(),
            unit: ReplicationUnit::Runs,
            intervals: cells.len() + usize::from(overall.is_some()),
            cells,
            overall,
            ..Self::of_matched([side_name(&base), side_name(&new)], matched, criteria)
        })
    }
}

/// The runs as sides of a comparison.
pub fn sources<'a>(runs: &[FiledRun<'a>]) -> Vec<RunSide<'a>> {
    runs.iter().map(|run| RunSide::whole(run.run)).collect()
}

/// The side in a comparison: named after its first run.
fn side_name(runs: &[FiledRun<'_>]) -> SideName {
    let last = runs[runs.len() - 1].run.record();
    SideName {
        name: runs[0].file.to_owned(),
        of: [&last.experiment.name, " on ", &last.target_text()].concat(),
        runs: runs.iter().map(FiledRun::name).collect(),
        targets: targets(runs),
    }
}

/// The cells of the runs that have the cell.
fn known<'a>(side: &[Option<&'a CellAnalysis>]) -> Vec<&'a CellAnalysis> {
    side.iter().copied().flatten().collect()
}

/// The median of each run; `None` for a run without one.
fn medians(side: &[Option<&CellAnalysis>]) -> Vec<Option<f64>> {
    let median = |cell: &Option<&CellAnalysis>| Some(cell.as_ref()?.response?.median);
    side.iter()
        .map(|cell| median(cell).filter(|median| *median > 0.0))
        .collect()
}

/// The most frequent origin of the bytes, over the trials of all runs.
fn served_of(cells: &[Option<&CellAnalysis>]) -> Option<ServedBy> {
    let mut places: BTreeMap<ServedBy, usize> = BTreeMap::new();
    let of_runs = cells
        .iter()
        .flatten()
        .filter_map(|cell| cell.served.as_ref());
    for (place, trials) in of_runs.flat_map(|served| &served.trials) {
        *places.entry(*place).or_default() += trials;
    }
    let most = places.into_iter().max_by_key(|(_, trials)| *trials)?;
    Some(most.0)
}

/// The distinct runs in the order of time.
pub fn in_time<'a>(runs: &[FiledRun<'a>]) -> Vec<FiledRun<'a>> {
    let mut all = runs.to_vec();
    let start = |run: &FiledRun<'a>| &run.run.record().run.started_utc;
    all.sort_by(|a, b| start(a).cmp(start(b)));
    let mut ids = BTreeSet::new();
    all.retain(|run| ids.insert(run.run.record().id()));
    all
}
