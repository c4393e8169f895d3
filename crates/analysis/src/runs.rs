//! Comparison of several runs with several others, or of a new run with earlier ones. The run is the unit of replication, and the
//! scatter between runs decides.

pub mod comparable_runs;
mod judge;
pub mod matching;

use std::collections::BTreeSet;

use iolab_workload::Result;

pub use judge::{RunCell, judge};

use crate::analysed_run::AnalysedRun;
use crate::compare::Comparison;
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
        matching::compare(&base, &new, terms)
    }
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
