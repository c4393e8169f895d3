//! A difference whose cause can be asked for: two cells, a shorter and a longer load of one cell, or the median
//! and p99 of its latency.

use std::time::Duration;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{CellId, Claim, Estimate, kind, longest_tail};
use iolab_plan::suspect::{Compared, QUANTILE_REQUESTS};
use iolab_workload::response::Response;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialLimit;

/// Two cells, two loads of one, or two quantiles of its latency, and the size of their difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phenomenon {
    /// The base of the comparison.
    pub base: CellId,
    /// The cell that is compared with the base.
    pub other: CellId,
    /// Ratio of the other's response to the base.
    pub seen: Estimate,
    /// Ratio that would be expected without the phenomenon: the ratio of the requests in flight, where these
    /// gain little, otherwise 1.
    pub expected: f64,
    /// The logarithm of the least ratio, of either sign, that the interval allows.
    pub size: f64,
    /// Reason why the run does not claim it; `None` if it does.
    pub unclaimed: Option<Unclaimed>,
    /// Kind of the two sides.
    pub kind: PhenomenonKind,
}

/// Reason why a difference is explained although a run does not claim it, in the order in which differences are
/// listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unclaimed {
    /// The bytes of its sides came from different sources, and that is a suspect.
    OtherSource,
    /// One side left its writes in a cache, which is a suspect.
    Owed,
    /// Others may have made the difference. Trying suspects decides: a share that disappears with one is not due
    /// to others.
    Disturbed,
}

/// Kind of the two sides of a phenomenon, with the values that determine their settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PhenomenonKind {
    /// The two cells.
    Cells,
    /// Two loads of one cell, whose throughput falls.
    Loads(Fall),
    /// Two quantiles of the latency of one cell.
    Quantiles(Tail),
}

impl Phenomenon {
    /// A difference between two cells where none is expected.
    pub(crate) fn of_cells(
        [base, other]: [CellId; 2],
        seen: Estimate,
        size: f64,
        unclaimed: Option<Unclaimed>,
    ) -> Self {
        Self {
            base,
            other,
            seen,
            expected: 1.0,
            size,
            unclaimed,
            kind: PhenomenonKind::Cells,
        }
    }

    /// Kind of the two sides, without these values.
    pub fn compared(&self) -> Compared {
        match self.kind {
            PhenomenonKind::Cells => Compared::Cells,
            PhenomenonKind::Loads(_) => Compared::Loads,
            PhenomenonKind::Quantiles(_) => Compared::Quantiles,
        }
    }
}

/// Slow requests of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// p50 and p99, ns.
    pub quantiles: (f64, f64),
    /// Requests per second.
    pub iops: f64,
    /// Time of a trial of the run, or of a trial with enough requests for the quantiles at one in flight, if
    /// that is longer.
    pub time: Duration,
}

/// The two sides of a fall: the same cell from one state, until well before the fall and beyond it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fall {
    /// Bytes of the shorter load.
    pub first_bytes: u64,
    /// Time of the shorter load.
    pub first: Duration,
    /// Bytes of the longer load.
    pub whole_bytes: u64,
    /// Time of the longer load, which is also its limit.
    pub whole: Duration,
    /// Ratio of the throughput after the fall to that before.
    pub factor: f64,
    /// Bytes before the fall.
    pub after_bytes: f64,
    /// Throughput before the fall and after it, MB/s.
    pub levels_mb_s: [f64; 2],
}

impl Fall {
    /// The settings of both sides.
    pub fn sides(&self, cell: &CellSpec) -> [CellSpec; 2] {
        let limits = [
            TrialLimit {
                bytes: Some(self.first_bytes),
                time: None,
            },
            // Loads of as many bytes without a suspect, in the same time: whatever each request uses up, as many
            // bytes use up too.
            TrialLimit {
                bytes: Some(self.whole_bytes),
                time: Some(self.whole),
            },
        ];
        with_limits(cell, limits)
    }
}

/// A cell with each of two limits; runs with groups are not explained.
pub(crate) fn with_limits(cell: &CellSpec, limits: [TrialLimit; 2]) -> [CellSpec; 2] {
    limits.map(|limit| {
        let mut side = cell.clone();
        side.trial.limit = limit;
        side
    })
}

/// Reason why a change of level, or slow requests, have no two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnpaired {
    /// Throughput rises.
    Rises,
    /// The cell reads and writes, so that its bytes before the change mix both.
    ReadsAndWrites,
    /// Requests are made at a rate, and wait for late ones however few are in flight.
    HasRate,
    /// Trials end by a rule of their own, or each fills a new file.
    OwnBounds,
    /// Several cells moved the bytes before a change over the run: a load of one of them would not use up the same.
    SeveralCells,
    /// The storage was written before the first trial, and no later trial begins in that state.
    Preconditioned,
}

/// Reason in the settings of a cell; `None` if they allow to explain it.
pub(crate) fn obstacle(cell: &CellAnalysis) -> Option<WhyUnpaired> {
    let trial = cell.cell.trial();
    if trial.has_rate() {
        return Some(WhyUnpaired::HasRate);
    }
    trial.has_own_bounds().then_some(WhyUnpaired::OwnBounds)
}

/// Reason why a long tail cannot be explained; `None` if it can, and for other claims.
pub(crate) fn unexplainable(claim: &Claim, run: &Analysis) -> Option<WhyUnpaired> {
    let is_tail = claim.kind == &kind::LONG_TAIL;
    obstacle(run.cell(claim.cells.first().filter(|_| is_tail)?.cell)?)
}

/// A tail as a difference between two quantiles of its cell; `None` if the cell is missing, or was not
/// timed.
fn phenomenon(tail: &Claim, run: &Analysis) -> Option<Phenomenon> {
    let (id, ratio) = (*tail.cells.first()?, tail.ratio?);
    let [p50, p99, ..] = tail.points.as_slice() else {
        return None;
    };
    let cell = run.cell(id.cell)?;
    let trial = cell.cell.trial();
    let in_flight = trial.in_flight_of_all() as f64;
    let seconds = |seconds: f64| {
        let time = Duration::try_from_secs_f64(seconds).ok()?;
        // The time is a setting and appears on pages: whole milliseconds.
        Some(Duration::from_millis(time.as_millis() as u64 + 1))
    };
    let iops = cell.median(Response::Iops)?;
    // Even with few requests in flight.
    let enough = seconds(QUANTILE_REQUESTS * in_flight / iops)?;
    let took = seconds(cell.median(Response::Elapsed)? / 1e9)?;
    let size = ratio.interval?.0.ln();
    Some(Phenomenon {
        kind: PhenomenonKind::Quantiles(Tail {
            quantiles: (p50.value, p99.value),
            iops,
            time: took.max(enough),
        }),
        ..Phenomenon::of_cells([id; 2], ratio, size, None)
    })
}

/// The longest tail of a run that can be explained.
pub(crate) fn explainable(run: &Analysis) -> Option<Phenomenon> {
    phenomenon(&longest_tail(run, 0, |cell| obstacle(cell).is_none())?, run)
}
