//! Several runs of a side against several of the other, or a new run against earlier ones: the run is the unit, and what
//! differs from run to run is the yardstick.

pub mod comparable_runs;
mod judge;
pub(crate) mod matching;

use iolab_record::{RunRecord, ServedBy};
use iolab_stats::Contrast;
use iolab_workload::{Error, Result};

pub use judge::{Judged, RunCell, judge};

use crate::analysed_run::AnalysedRun;
use crate::analysis::Response;
use crate::compare::{ALPHA, CellVerdict, Conclusion, Difference};
use crate::doubt::SideDoubts;

/// Chance with which the change that is reported as detectable would have been found.
pub const GATE_POWER: f64 = 0.9;
/// Fewest earlier runs that a new one is held against.
pub const HISTORY_MIN: usize = 5;

/// A run and the file it was read from.
#[derive(Debug, Clone, Copy)]
pub struct FiledRun<'a> {
    /// The file as the user named it.
    pub file: &'a str,
    /// What it holds, analysed.
    pub run: &'a AnalysedRun,
}

impl FiledRun<'_> {
    /// Which run it is.
    pub(crate) fn name(&self) -> RunName {
        RunName::of(self.file, self.run.record())
    }
}

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunName {
    /// The file as the user named it.
    pub file: String,
    /// See [`iolab_record::RunRecord::id`].
    pub id: String,
    /// When it began: RFC 3339, UTC.
    pub started_utc: String,
    /// On which host, where that is known.
    pub host: Option<String>,
}

impl RunName {
    /// The run of a file.
    pub fn of(file: &str, record: &RunRecord) -> Self {
        Self {
            file: file.to_owned(),
            id: record.id(),
            started_utc: record.run.started_utc.clone(),
            host: record.host(),
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunCriteria {
    /// The smallest change that matters, a share; equivalence is shown within it.
    pub margin: f64,
    /// Family-wise level of the tests over all cells.
    pub alpha: f64,
    /// Which changes are looked for.
    pub looks_for: LooksFor,
    /// Fewest runs of the base that a cell is judged by.
    pub base_min: usize,
}

/// Which changes a comparison looks for, and when it reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LooksFor {
    /// Changes in both directions that exceed the margin, or equivalence.
    Changes,
    /// Changes whatever their size: a gate.
    AnyChange,
    /// Changes whatever their size, else equivalence: a strict gate.
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
    /// Where the bytes of most trials came from on the two sides, where that is known.
    pub served: Option<(ServedBy, ServedBy)>,
    /// What in the evidence of the two sides could speak against a claim.
    pub against: SideDoubts,
    /// What the runs say.
    pub judged: Judged,
}

impl RunsCell {
    /// Whether one side's bytes came from elsewhere than the other's.
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
    /// The factors that tell the cells apart.
    pub factors: Vec<String>,
    /// What was asked.
    pub terms: RunCriteria,
    /// The runs of the base, in the order of time.
    pub base: Vec<RunName>,
    /// The new runs.
    pub new: Vec<RunName>,
    /// The targets of the base, each once: where there are several, what differs from run to run is what differs from target to target.
    pub base_targets: Vec<String>,
    /// The targets of the new runs, likewise.
    pub new_targets: Vec<String>,
    /// Cells of the base that no new run has, in words.
    pub only_base: Vec<String>,
    /// Cells of the new runs that no run of the base has, in words.
    pub only_new: Vec<String>,
    /// In what the sides differ besides.
    pub differences: Vec<Difference>,
    /// The cells that both sides have.
    pub cells: Vec<RunsCell>,
    /// All undisturbed cells together: the mean of their logarithms. `None` for fewer than two cells.
    pub overall: Option<Judged>,
}

impl RunsComparison {
    /// Compares runs with runs, cell by cell. A run that occurs twice counts once.
    ///
    /// # Errors
    /// Of kind usage: no run on a side, a run on both sides, different responses, no cell in common, or a definition that
    /// cannot be read.
    pub fn of(base: &[FiledRun<'_>], new: &[FiledRun<'_>], terms: RunCriteria) -> Result<Self> {
        let (base, new) = (in_time(base), in_time(new));
        if base.is_empty() || new.is_empty() {
            return Err(Error::usage("a side has no run")
                .hint("name the runs of both sides: --base FILE... --new FILE..."));
        }
        let ids: Vec<String> = base.iter().map(|run| run.run.record().id()).collect();
        if let Some(twice) = new.iter().find(|run| ids.contains(&run.run.record().id())) {
            return Err(
                Error::usage(format!("the run of {} is on both sides", twice.file))
                    .hint("name it on one side only"),
            );
        }
        matching::compare(&base, &new, terms)
    }

    /// How many cells have this verdict.
    pub fn count(&self, verdict: CellVerdict) -> usize {
        let of = |cell: &&RunsCell| cell.judged.verdict == verdict;
        self.cells.iter().filter(of).count()
    }

    /// Whether the cells or all of them together have this verdict.
    pub fn any(&self, verdict: CellVerdict) -> bool {
        let overall = self
            .overall
            .as_ref()
            .is_some_and(|all| all.verdict == verdict);
        overall || self.count(verdict) > 0
    }

    /// The conclusion over all cells. Cells that only the base has leave the question open.
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

/// The runs in the order of time, each once.
pub(crate) fn in_time<'a>(runs: &[FiledRun<'a>]) -> Vec<FiledRun<'a>> {
    let mut all = runs.to_vec();
    all.sort_by(|a, b| {
        let start = |run: &FiledRun<'_>| run.run.record().run.started_utc.clone();
        start(a).cmp(&start(b))
    });
    let mut ids: Vec<String> = Vec::new();
    all.retain(|run| {
        let id = run.run.record().id();
        let is_first = !ids.contains(&id);
        ids.push(id);
        is_first
    });
    all
}

/// A ratio of new over base, from the logarithms.
pub fn ratio(contrast: &Contrast) -> f64 {
    contrast.difference.exp()
}

/// The 95 % interval of that ratio, by itself.
pub fn ratio_interval(contrast: &Contrast) -> Option<(f64, f64)> {
    let interval = contrast.interval(1.0 - ALPHA)?;
    Some((interval.low.exp(), interval.high.exp()))
}
