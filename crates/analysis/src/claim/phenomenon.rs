//! A difference whose cause can be asked for: two cells, a shorter and a longer load of one cell, or the median
//! and p99 of its latency.

use std::time::Duration;

use iolab_plan::suspect::Compared;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialLimit;

use super::effect::CellId;
use crate::analysis::Analysis;

/// Two cells, two loads of one, or two quantiles of its latency, and the size of their difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phenomenon {
    /// The base of the comparison.
    pub base: CellId,
    /// The cell that is compared with the base.
    pub other: CellId,
    /// Ratio of the other's response to the base.
    pub seen: f64,
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
    pub(super) fn of_cells(
        [base, other]: [CellId; 2],
        seen: f64,
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

    /// The settings of both sides; `None` where the run lacks one.
    pub fn sides(&self, run: &Analysis) -> Option<[CellSpec; 2]> {
        let spec = |id: CellId| Some(&run.cell(id.cell)?.cell.spec);
        let (base, other) = (spec(self.base)?, spec(self.other)?);
        Some(match self.kind {
            PhenomenonKind::Cells => [base.clone(), other.clone()],
            PhenomenonKind::Loads(fall) => fall.sides(base),
            PhenomenonKind::Quantiles(tail) => tail.sides(base),
        })
    }

    /// Kind of the two sides, without these values.
    pub fn compared(&self) -> Compared {
        match self.kind {
            PhenomenonKind::Cells => Compared::Cells,
            PhenomenonKind::Loads(_) => Compared::Loads,
            PhenomenonKind::Quantiles(_) => Compared::Quantiles,
        }
    }

    /// Requests per second of the cell whose quantiles differ; `None` for cells and loads.
    pub fn iops(&self) -> Option<f64> {
        match &self.kind {
            PhenomenonKind::Quantiles(tail) => Some(tail.iops),
            PhenomenonKind::Cells | PhenomenonKind::Loads(_) => None,
        }
    }

    /// The fall of throughput.
    pub fn fall(&self) -> Option<&Fall> {
        match &self.kind {
            PhenomenonKind::Loads(fall) => Some(fall),
            PhenomenonKind::Cells | PhenomenonKind::Quantiles(_) => None,
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

impl Tail {
    /// The settings of both sides, which end by their time: with nothing else in flight, the bytes of a trial
    /// would take longer.
    #[expect(
        clippy::disallowed_fields,
        reason = "runs with groups are not explained"
    )]
    fn sides(&self, cell: &CellSpec) -> [CellSpec; 2] {
        let mut side = cell.clone();
        side.trial.limit = TrialLimit {
            time: Some(self.time),
            ..TrialLimit::default()
        };
        [side.clone(), side]
    }
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
    #[expect(
        clippy::disallowed_fields,
        reason = "runs with groups are not explained"
    )]
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
        limits.map(|limit| {
            let mut side = cell.clone();
            side.trial.limit = limit;
            side
        })
    }
}
