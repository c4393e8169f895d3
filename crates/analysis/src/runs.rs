//! Comparison of several runs with several others, or of a new run with earlier ones. The run is the unit of replication, and the
//! scatter between runs decides.

pub mod comparable_runs;
mod judge;
pub(crate) mod matching;

use std::collections::BTreeSet;

use iolab_record::{RunRecord, ServedBy};
use iolab_stats::Contrast;
use iolab_workload::Result;

pub use judge::{Judged, RunCell, judge};

use crate::analysed_run::AnalysedRun;
use crate::analysis::Response;
use crate::compare::{ALPHA, CellVerdict, Conclusion, Difference};
use crate::doubt::SideDoubts;
use crate::refusal;

/// Probability with which the detectable change would have been found.
pub const GATE_POWER: f64 = 0.9;
/// Fewest earlier runs for a comparison with a new one.
pub const HISTORY_MIN: usize = 5;

/// A run and the file it was read from.
#[derive(Debug, Clone, Copy)]
pub struct FiledRun<'a> {
    /// The path as the user wrote it.
    pub file: &'a str,
    /// Its analysed content.
    pub run: &'a AnalysedRun,
}

impl FiledRun<'_> {
    /// The identity of the run.
    pub(crate) fn name(&self) -> RunName {
        RunName::of(self.file, self.run.record())
    }
}

/// The identity of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunName {
    /// The path as the user wrote it.
    pub file: String,
    /// See [`iolab_record::RunRecord::id`].
    pub id: String,
    /// Start: RFC 3339, UTC.
    pub started_utc: String,
    /// Its host; `None` where unknown.
    pub host: Option<String>,
}

impl RunName {
    /// The identity of a file's run.
    pub fn of(file: &str, record: &RunRecord) -> Self {
        Self {
            file: file.to_owned(),
            id: record.id(),
            started_utc: record.run.started_utc.clone(),
            host: record.host(),
        }
    }
}

/// The parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunCriteria {
    /// The smallest change that matters, a share; equivalence is shown within it.
    pub margin: f64,
    /// Family-wise level of the tests over all cells.
    pub alpha: f64,
    /// Which changes to report.
    pub looks_for: ReportedChanges,
    /// Fewest runs of the base that a cell is judged by.
    pub base_min: usize,
}

/// Which changes a comparison reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedChanges {
    /// Changes in both directions that exceed the margin, or equivalence.
    Changes,
    /// Changes of any size: a gate.
    AnyChange,
    /// Changes of any size, or else equivalence: a strict gate.
    AnyChangeOrEquivalence,
}

/// One cell of all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunsCell {
    /// The levels that both sides share, in the order of [`RunsComparison::factors`].
    pub levels: Vec<String>,
    /// Median of each run of the base, in the order of the runs; `None` where a run has none.
    pub base: Vec<Option<f64>>,
    /// The same of the new runs.
    pub new: Vec<Option<f64>>,
    /// Origin of most trials' bytes on each side; `None` where unknown.
    pub served: Option<(ServedBy, ServedBy)>,
    /// Evidence against the comparison.
    pub against: SideDoubts,
    /// The result.
    pub judged: Judged,
}

impl RunsCell {
    /// Whether the bytes of the sides have different origins.
    pub fn is_served_differently(&self) -> bool {
        self.served.is_some_and(|(base, new)| base != new)
    }
}

/// Two sides of several runs, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct RunsComparison {
    /// What all runs measured.
    pub response: Response,
    /// Name of the experiment of the newest new run.
    pub experiment: String,
    /// Its target.
    pub target: String,
    /// The factors that distinguish the cells.
    pub factors: Vec<String>,
    /// The parameters.
    pub terms: RunCriteria,
    /// The runs of the base, in the order of time.
    pub base: Vec<RunName>,
    /// The new runs.
    pub new: Vec<RunName>,
    /// The targets of the base, each once: where there are several, what differs from run to run is what differs from target to target.
    pub base_targets: Vec<String>,
    /// The targets of the new runs, likewise.
    pub new_targets: Vec<String>,
    /// Labels of cells of the base that no new run has.
    pub only_base: Vec<String>,
    /// Labels of cells of the new runs that no run of the base has.
    pub only_new: Vec<String>,
    /// Labels of cells that are not compared, because no run makes requests there that the response is of.
    pub without_requests: Vec<String>,
    /// Other differences of the sides.
    pub differences: Vec<Difference>,
    /// Run files in which the definition cannot be read.
    pub undefined: Vec<String>,
    /// The cells that both sides have.
    pub cells: Vec<RunsCell>,
    /// All undisturbed cells together: the mean of their logarithms. `None` for fewer than two cells.
    pub overall: Option<Judged>,
}

impl RunsComparison {
    /// Compares runs with runs, cell by cell. A run that occurs twice counts once.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no run on a side, a run on both sides, different responses, no cell in
    /// common, or a definition that
    /// cannot be read.
    pub fn of(base: &[FiledRun<'_>], new: &[FiledRun<'_>], terms: RunCriteria) -> Result<Self> {
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

    /// Number of cells with this verdict.
    pub fn count(&self, verdict: CellVerdict) -> usize {
        let of = |cell: &&RunsCell| cell.judged.verdict == verdict;
        self.cells.iter().filter(of).count()
    }

    /// Whether any cell, or all together, has this verdict.
    pub fn any(&self, verdict: CellVerdict) -> bool {
        let overall = self
            .overall
            .as_ref()
            .is_some_and(|all| all.verdict == verdict);
        overall || self.count(verdict) > 0
    }

    /// The conclusion over all cells. Undecided where only the base has a cell.
    pub fn conclusion(&self) -> Conclusion {
        let open = |cell: &RunsCell| cell.judged.verdict.is_open();
        if self.any(CellVerdict::Slower) {
            Conclusion::Regression
        } else if self.cells.iter().any(open) || !self.only_base.is_empty() {
            Conclusion::CannotTell
        } else {
            Conclusion::Settled
        }
    }
}

/// The distinct runs in the order of time.
pub(crate) fn in_time<'a>(runs: &[FiledRun<'a>]) -> Vec<FiledRun<'a>> {
    let mut all = runs.to_vec();
    let start = |run: &FiledRun<'a>| &run.run.record().run.started_utc;
    all.sort_by(|a, b| start(a).cmp(start(b)));
    let mut ids = BTreeSet::new();
    all.retain(|run| ids.insert(run.run.record().id()));
    all
}

/// The ratio of new over base.
pub fn ratio(contrast: &Contrast) -> f64 {
    contrast.difference.exp()
}

/// The 95 % interval of that ratio on its own.
pub fn ratio_interval(contrast: &Contrast) -> Option<(f64, f64)> {
    let interval = contrast.interval(1.0 - ALPHA)?;
    Some((interval.low.exp(), interval.high.exp()))
}
