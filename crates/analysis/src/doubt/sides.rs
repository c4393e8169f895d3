//! Evidence against a comparison of two sides.

use iolab_record::ServedBy;
use iolab_workload::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Direction, Reason};
use crate::analysis::{CLOCK_SHOWS, CellAnalysis, Flag};
use crate::imbalance::{Disturber, Imbalance, between};

/// A preempted worker waits for about one time slice of the others, s (`base_slice_ns` of the kernel's scheduler).
const SLICE_S: f64 = 3e-3;

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparedSide {
    /// The base.
    Base,
    /// The side compared with the base.
    New,
}

/// A reason with the side that it concerns.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SideDoubt {
    /// The side; `None` for both together.
    pub side: Option<ComparedSide>,
    /// The reason.
    #[serde(flatten)]
    pub reason: Reason,
}

/// End of a ratio, new over base, that also holds for longer trials, if one side grows with the length of a
/// trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RatioBound {
    /// The new side grows: the ratio is at least as great.
    AtLeast,
    /// The base grows: the ratio is at most as great.
    AtMost,
}

impl RatioBound {
    /// The bound that a ratio with its interval gives.
    pub fn of(self, ratio: f64, interval: Option<(f64, f64)>) -> f64 {
        match (self, interval) {
            (Self::AtLeast, Some((low, _))) => low,
            (Self::AtMost, Some((_, high))) => high,
            (Self::AtLeast | Self::AtMost, None) => ratio,
        }
    }

    /// Name of the bound for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::AtLeast => "at_least",
            Self::AtMost => "at_most",
        }
    }
}

/// All evidence against a comparison of two sides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SideDoubts(Vec<SideDoubt>);

impl SideDoubts {
    /// Doubts about two cells of one run. A disturbance explains at most the share that it took, since cells of
    /// a block have the same conditions.
    pub(crate) fn of_cells(base: &CellAnalysis, new: &CellAnalysis, response: Response) -> Self {
        let sides = [(ComparedSide::Base, base), (ComparedSide::New, new)];
        let disturbed = sides.into_iter().flat_map(|(side, cell)| {
            disturbances(cell)
                .into_iter()
                .map(move |reason| SideDoubt::of(side, reason))
        });
        let after_writes = sides
            .into_iter()
            .filter(|(_, cell)| cell.reads_after_writes)
            .map(|(side, _)| SideDoubt::of(side, Reason::ReadsAfterWrites));
        Self(
            foreign(&[base], &[new], response)
                .chain(disturbed)
                .chain(after_writes)
                .chain(coarse(&[base], &[new], response))
                .collect(),
        )
    }

    /// Doubts about single cells of a run, each kind once with its greatest extent.
    pub(crate) fn of_values<'a>(cells: impl IntoIterator<Item = &'a CellAnalysis>) -> Self {
        let mut all = Self::default();
        for cell in cells {
            let slept = cell.disturbance.suspended_ns > 0;
            let slept = slept.then_some(Reason::Suspended);
            let after_writes = cell.reads_after_writes.then_some(Reason::ReadsAfterWrites);
            let found = disturbances(cell).into_iter().chain(slept);
            let found = found.chain(after_writes);
            all.add(found.map(|reason| SideDoubt { side: None, reason }));
        }
        all
    }

    /// Doubts about a cell in the runs of two sides. If these differ in a disturbance, its effect is unknown.
    pub(crate) fn of_runs(
        base: &[&CellAnalysis],
        new: &[&CellAnalysis],
        response: Response,
    ) -> Self {
        let is_computed = base.iter().chain(new).any(|cell| is_computed(cell));
        let found = between(base, new).into_iter();
        let imbalances = found.filter(|_| !is_computed).map(|found| {
            let side = match found.new.0 > found.base.1 {
                true => ComparedSide::New,
                false => ComparedSide::Base,
            };
            SideDoubt::of(side, Reason::Imbalance(found))
        });
        Self(
            foreign(base, new, response)
                .chain(imbalances)
                .chain(coarse(base, new, response))
                .collect(),
        )
    }

    /// Doubts about a cell in two single runs: both kinds, without repeating a disturbance in which they differ.
    pub(crate) fn of_two_runs(base: &CellAnalysis, new: &CellAnalysis, response: Response) -> Self {
        let mut all = Self::of_runs(&[base], &[new], response);
        all.add(Self::of_cells(base, new, response).0);
        all
    }

    /// Doubts about several pairs of cells together, each kind once for a side.
    pub(crate) fn of_any<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut merged = Self::default();
        all.for_each(|Self(doubts)| merged.add(doubts.iter().cloned()));
        merged
    }

    /// Adds doubts of kinds and sides that are not there yet. Of the same kind and side, the doubt that explains
    /// more is kept.
    fn add(&mut self, doubts: impl IntoIterator<Item = SideDoubt>) {
        for doubt in doubts {
            let is_alike = |known: &&mut SideDoubt| {
                known.side == doubt.side && known.reason.name() == doubt.reason.name()
            };
            match self.0.iter_mut().find(is_alike) {
                Some(known) if doubt.reason.explains() > known.reason.explains() => *known = doubt,
                Some(_) => {}
                None => self.0.push(doubt),
            }
        }
    }

    /// Doubts of these sides, for tests.
    #[cfg(test)]
    pub(crate) fn made_of(doubts: impl IntoIterator<Item = SideDoubt>) -> Self {
        Self(doubts.into_iter().collect())
    }

    /// Whether there is no doubt.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All reasons, for either side.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &Reason> {
        self.0.iter().map(|SideDoubt { side: _, reason }| reason)
    }

    /// The disturbances in which the sides differ.
    pub fn imbalances(&self) -> impl Iterator<Item = &Imbalance> {
        self.0.iter().filter_map(|doubt| match &doubt.reason {
            Reason::Imbalance(found) => Some(found),
            _ => None,
        })
    }

    /// Direction of the bound on a ratio of times, if only one side did not hold its rate.
    pub(crate) fn bound(&self) -> Option<RatioBound> {
        let is_behind = |side: Option<ComparedSide>| {
            let mut all = self.0.iter();
            all.any(|doubt| doubt.side == side && doubt.reason == Reason::RateNotHeld)
        };
        let sides = [ComparedSide::Base, ComparedSide::New].map(Some);
        match (is_behind(None), sides.map(is_behind)) {
            (false, [true, false]) => Some(RatioBound::AtMost),
            (false, [false, true]) => Some(RatioBound::AtLeast),
            _ => None,
        }
    }

    /// Doubts that make the sides measure different things, so that nothing can be claimed.
    pub(crate) fn foreign(&self) -> Vec<SideDoubt> {
        let is = |doubt: &&SideDoubt| {
            matches!(
                doubt.reason,
                Reason::ServedBy { .. } | Reason::RateNotHeld | Reason::EndedByTime
            )
        };
        self.0.iter().filter(is).cloned().collect()
    }

    /// Doubts that could reverse a claim with these directions for the base and the new side, and a difference
    /// of at least `size`, a factor.
    pub(crate) fn turning(&self, [base, new]: [Direction; 2], size: f64) -> Vec<SideDoubt> {
        let turned = |doubt: &SideDoubt| match doubt.side {
            // Memory may be slower than a fast device: bytes of different origins are not comparable in either direction.
            _ if matches!(doubt.reason, Reason::ServedBy { .. }) => true,
            Some(ComparedSide::Base) => doubt.reason.turns(base),
            Some(ComparedSide::New) => doubt.reason.turns(new),
            None => doubt.reason.turns(base) || doubt.reason.turns(new),
        };
        let all = self.0.iter();
        all.filter(|doubt| turned(doubt) && doubt.reason.explains() >= size)
            .cloned()
            .collect()
    }
}

impl Direction {
    /// The directions of a difference, for the base and the new side: the better side is at least as good as measured, the worse
    /// one at most.
    pub(crate) fn of_sides(new_is_better: bool) -> [Self; 2] {
        match new_is_better {
            true => [Self::AtMost, Self::AtLeast],
            false => [Self::AtLeast, Self::AtMost],
        }
    }
}

impl SideDoubt {
    fn of(side: ComparedSide, reason: Reason) -> Self {
        Self {
            side: Some(side),
            reason,
        }
    }
}

/// Doubts that make the sides measure different things. These are bytes of different origins, one of them not
/// the requested one; a suspended machine; a length of trials that is a setting; and times of sides that missed
/// their rates, which grow with the length of a trial.
///
/// If only one side missed its rate in most trials, it is worse whatever the length, by an unknown amount. All
/// runs of a side must agree.
fn foreign(
    base: &[&CellAnalysis],
    new: &[&CellAnalysis],
    response: Response,
) -> impl Iterator<Item = SideDoubt> {
    let verdict = |cell: &CellAnalysis| {
        let served = cell.served.as_ref();
        served.map(|served| served.unanimous().unwrap_or(ServedBy::Mixed))
    };
    let differ = base
        .iter()
        .all(|cell| new.iter().all(|other| verdict(cell) != verdict(other)));
    let reasons = |side: &[&CellAnalysis]| {
        let not_as_asked =
            |cell: &&&CellAnalysis| !cell.cell.spec.runs_program() && !cell.is_as_asked();
        let served = side.iter().find(not_as_asked).filter(|_| differ);
        let served = served.and_then(|cell| {
            Some(Reason::ServedBy {
                served_by: verdict(cell)?,
                reason: cell.served.as_ref()?.reason.clone(),
                is_one: cell.served.as_ref()?.unanimous().is_some(),
            })
        });
        let slept = |cell: &&CellAnalysis| cell.disturbance.suspended_ns > 0;
        let slept = !side.is_empty() && side.iter().all(slept);
        let is_set = response == Response::Elapsed && side.iter().any(|cell| cell.ended_by_time);
        served
            .into_iter()
            .chain(slept.then_some(Reason::Suspended))
            .chain(is_set.then_some(Reason::EndedByTime))
            .collect::<Vec<_>>()
    };
    let sides = [(ComparedSide::Base, base), (ComparedSide::New, new)];
    let all = sides.map(|(side, cells)| {
        let own = reasons(cells).into_iter();
        own.map(move |reason| SideDoubt::of(side, reason))
            .collect::<Vec<_>>()
    });
    let behind = side_behind(base, new).filter(|_| response.is_time());
    let behind = behind.map(|side| SideDoubt {
        side,
        reason: Reason::RateNotHeld,
    });
    all.into_iter().flatten().chain(behind)
}

/// The side that did not hold its rate; `Some(None)` for both.
fn side_behind(base: &[&CellAnalysis], new: &[&CellAnalysis]) -> Option<Option<ComparedSide>> {
    let is_behind = |cell: &&CellAnalysis| cell.flags.contains(&Flag::RateNotHeld);
    // Only if most trials fell behind, the median of a side is one of them.
    let is_mostly = |cell: &&CellAnalysis| {
        let report = cell.rate_report.as_ref();
        is_behind(cell) && report.is_none_or(|report| 2 * report.not_held > cell.n)
    };
    let [base, new] =
        [base, new].map(|side| (side.iter().any(is_behind), side.iter().any(is_mostly)));
    match (base, new) {
        ((true, _), (true, _)) => Some(None),
        ((_, true), _) => Some(Some(ComparedSide::Base)),
        (_, (_, true)) => Some(Some(ComparedSide::New)),
        _ => None,
    }
}

/// The step of the clock in the latencies of each side, if it shows; for several cells the step with the
/// greatest share.
fn coarse(
    base: &[&CellAnalysis],
    new: &[&CellAnalysis],
    response: Response,
) -> impl Iterator<Item = SideDoubt> {
    let of_cell = |cell: &&CellAnalysis| {
        let step_ns = cell.clock_resolution_ns?;
        let median = cell.response.filter(|_| response.is_latency())?.median;
        Some((step_ns / median, step_ns)).filter(|(share, _)| *share > CLOCK_SHOWS)
    };
    let sides = [(ComparedSide::Base, base), (ComparedSide::New, new)];
    let found = sides.map(|(side, cells)| {
        let (share, step_ns) = cells
            .iter()
            .filter_map(of_cell)
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(SideDoubt::of(
            side,
            Reason::ClockResolution { step_ns, share },
        ))
    });
    found.into_iter().flatten()
}

/// Whether a model served a cell: it computes its times, whatever the machine does.
fn is_computed(cell: &CellAnalysis) -> bool {
    let served = cell.served.as_ref();
    served.is_some_and(|served| served.unanimous() == Some(ServedBy::Model))
}

/// The disturbances of the trials of a cell.
fn disturbances(cell: &CellAnalysis) -> Vec<Reason> {
    if is_computed(cell) {
        return Vec::new();
    }
    let around = &cell.disturbance;
    let disturbed =
        Disturber::taken_by_others(around).map(|(by, worst)| Reason::Disturbed { by, worst });
    disturbed.collect()
}

impl Reason {
    /// The largest factor by which the reason can have changed the response of a side.
    fn explains(&self) -> f64 {
        let of_share = |share: f64| match share < 1.0 {
            true => 1.0 / (1.0 - share.max(0.0)),
            false => f64::INFINITY,
        };
        match self {
            Self::Disturbed {
                by: Disturber::Preempted,
                worst,
            } => of_share(worst * SLICE_S),
            Self::Disturbed { worst, .. } => of_share(*worst),
            Self::Unsynced { share } => of_share(*share),
            Self::ClockResolution { share, .. } => of_share(*share),
            Self::NotSynced { .. }
            | Self::NeverFlushed { .. }
            | Self::ServedBy { .. }
            | Self::Suspended
            | Self::ReadsAfterWrites
            | Self::Imbalance(_)
            | Self::RateNotHeld
            | Self::EndedByTime
            | Self::Contradicted
            | Self::TwoGroups { .. }
            | Self::Dependent { .. } => f64::INFINITY,
        }
    }
}
