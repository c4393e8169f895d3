//! Evidence against a comparison of two sides.

use iolab_record::ServedBy;
use iolab_workload::named;
use iolab_workload::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Direction, Doubt, DoubtClass, DoubtKind, OWED_ERROR};
use crate::analysis::{CLOCK_SHOWS, CellAnalysis};
use crate::disturbance::CellDisturbance;

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparedSide {
    /// The base.
    Base,
    /// The side compared with the base.
    New,
}

named! {
    /// End of a ratio, new over base, that also holds for longer trials, in which one side's response becomes worse.
    pub enum RatioBound: "bound" {
        /// The ratio is at least as great.
        AtLeast = "at_least",
        /// The ratio is at most as great.
        AtMost = "at_most",
    }
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
}

/// All evidence against a comparison of two sides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SideDoubts(pub(crate) Vec<Doubt>);

impl SideDoubts {
    /// Doubts about two cells of one run. A disturbance explains at most the share that it took, since cells of
    /// a block have the same conditions.
    pub(crate) fn of_cells(base: &CellAnalysis, new: &CellAnalysis, response: Response) -> Self {
        let sides = [(ComparedSide::Base, base), (ComparedSide::New, new)];
        let own = sides.into_iter().flat_map(|(side, cell)| {
            let others = around_cell(cell).filter(|doubt| doubt.what != DoubtKind::Suspended);
            others.map(move |doubt| doubt.on(side))
        });
        let owed = owed(base, new).filter(|_| response != Response::Cpu);
        let (base, new) = ([base], [new]);
        let all = foreign(&base, &new, response).chain(own).chain(owed);
        Self(all.chain(coarse(&base, &new, response)).collect())
    }

    /// Doubts about single cells of a run, each kind once with its greatest extent.
    pub(crate) fn of_values<'a>(cells: impl IntoIterator<Item = &'a CellAnalysis>) -> Self {
        let mut all = Self::default();
        for cell in cells {
            all.add(around_cell(cell));
        }
        all
    }

    /// Doubts about a cell in the runs of two sides. If these differ in a disturbance, its effect is unknown.
    pub(crate) fn of_runs(
        base: &[&CellAnalysis],
        new: &[&CellAnalysis],
        response: Response,
    ) -> Self {
        let all = || base.iter().chain(new);
        let differing = match all().any(|cell| is_computed(cell)) {
            true => Vec::new(),
            false => imbalances(&around(base), &around(new)),
        };
        // A program reads few bytes for its time: other traffic is always a multiple of them, and irrelevant.
        let runs_program = new.iter().any(|cell| cell.cell.spec.runs_program());
        let is_left_out = |doubt: &Doubt| runs_program && doubt.what == DoubtKind::OtherTraffic;
        let differing = differing.into_iter().filter(|doubt| !is_left_out(doubt));
        let all = foreign(base, new, response).chain(differing);
        Self(all.chain(coarse(base, new, response)).collect())
    }

    /// Doubts about a cell in two single runs: both kinds, without repeating a disturbance in which they differ.
    pub(crate) fn of_two_runs(base: &CellAnalysis, new: &CellAnalysis, response: Response) -> Self {
        let mut all = Self::of_runs(&[base], &[new], response);
        all.add(Self::of_cells(base, new, response).0);
        all
    }

    /// Doubts about several pairs of cells together, each kind once for a side.
    pub(crate) fn of_any(all: impl Iterator<Item = Self>) -> Self {
        let mut merged = Self::default();
        all.for_each(|Self(doubts)| merged.add(doubts));
        merged
    }

    /// Adds doubts of kinds and sides that are not there yet. Of the same kind and side, the doubt that explains
    /// more is kept.
    fn add(&mut self, doubts: impl IntoIterator<Item = Doubt>) {
        for doubt in doubts {
            let is_alike =
                |known: &&mut Doubt| known.side == doubt.side && known.what == doubt.what;
            match self.0.iter_mut().find(is_alike) {
                Some(known) if doubt.explains() > known.explains() => *known = doubt,
                Some(_) => {}
                None => self.0.push(doubt),
            }
        }
    }

    /// Whether there is no doubt.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Direction of the bound on a ratio, if only one side did not hold its rate, or owes time for what it left in a cache: that side
    /// is worse in longer trials.
    pub(crate) fn bound(&self, more_is_better: bool) -> Option<RatioBound> {
        let is_better_now = |side: Option<ComparedSide>| {
            let is = |what: DoubtKind| what.is_owed() || what == DoubtKind::RateNotHeld;
            let mut all = self.0.iter();
            all.any(|doubt| doubt.side == side && is(doubt.what))
        };
        let sides = [ComparedSide::Base, ComparedSide::New].map(Some);
        match (is_better_now(None), sides.map(is_better_now)) {
            (false, [base, new]) if base != new => Some(match base == more_is_better {
                true => RatioBound::AtLeast,
                false => RatioBound::AtMost,
            }),
            _ => None,
        }
    }

    /// The factor that owed time explains of a ratio; 1 where none is owed.
    pub(crate) fn owed(&self) -> f64 {
        let owed = self.0.iter().filter(|doubt| doubt.what.is_owed());
        owed.map(Doubt::explains).fold(1.0, f64::max)
    }

    /// Doubts that make the sides measure different things, so that nothing can be claimed.
    pub(crate) fn foreign(&self) -> Vec<Doubt> {
        let is = |doubt: &&Doubt| {
            doubt.what.class() == DoubtClass::Source
                || matches!(doubt.what, DoubtKind::RateNotHeld | DoubtKind::TimeLimit)
        };
        self.0.iter().filter(is).cloned().collect()
    }

    /// Doubts that could reverse a claim with these directions for the base and the new side, and a difference
    /// of at least `size`, a factor.
    pub(crate) fn turning(&self, [base, new]: [Direction; 2], size: f64) -> Vec<Doubt> {
        let turned = |doubt: &Doubt| match doubt.side {
            // Memory may be slower than a fast device: bytes of different origins are not comparable in either direction.
            _ if doubt.what.class() == DoubtClass::Source => true,
            Some(ComparedSide::Base) => doubt.what.turns(base),
            Some(ComparedSide::New) => doubt.what.turns(new),
            None => doubt.what.turns(base) || doubt.what.turns(new),
        };
        let all = self.0.iter();
        let turning = all.filter(|doubt| turned(doubt) && doubt.explains() >= size);
        turning.cloned().collect()
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
) -> impl Iterator<Item = Doubt> {
    let verdict = |cell: &CellAnalysis| {
        let served = cell.served.as_ref();
        served.map(|served| served.unanimous().unwrap_or(ServedBy::Mixed))
    };
    let mut differ = base.iter();
    let differ = differ.all(|cell| new.iter().all(|other| verdict(cell) != verdict(other)));
    let reasons = |side: &[&CellAnalysis]| {
        let not_as_asked =
            |cell: &&&CellAnalysis| !cell.cell.spec.runs_program() && !cell.is_as_asked();
        let served = side.iter().find(not_as_asked).filter(|_| differ);
        let of_source = |cell: &&CellAnalysis| {
            let reason = &cell.served.as_ref()?.reason;
            Some(Doubt::of_source(verdict(cell)?, reason))
        };
        let slept = !side.is_empty() && side.iter().all(|cell| cell.is_suspended());
        let is_set = response == Response::Elapsed && side.iter().any(|cell| cell.ended_by_time);
        let slept = slept.then(|| DoubtKind::Suspended.into());
        let is_set = is_set.then(|| DoubtKind::TimeLimit.into());
        [served.and_then(of_source), slept, is_set]
    };
    let sides = [(ComparedSide::Base, base), (ComparedSide::New, new)];
    let all = sides.map(|(side, cells)| reasons(cells).map(|doubt| Some(doubt?.on(side))));
    let behind = side_behind(base, new).filter(|_| response.is_time());
    let behind = behind.map(|side| Doubt {
        side,
        ..DoubtKind::RateNotHeld.into()
    });
    all.into_iter().flatten().flatten().chain(behind)
}

/// Time that a side owes for what its trials left in a cache, if it owes more than the other.
fn owed(base: &CellAnalysis, new: &CellAnalysis) -> impl Iterator<Item = Doubt> {
    let of = |cell: &CellAnalysis| {
        let around = &cell.disturbance;
        [
            (DoubtKind::WriteBackOwed, around.owed),
            (DoubtKind::StorageCache, around.owed_by_storage),
        ]
        .map(|(what, owed)| (what, owed.unwrap_or(0.0), what.extent(around).is_some()))
    };
    let pairs = of(base).into_iter().zip(of(new));
    pairs.filter_map(|((what, base, of_base), (_, new, of_new))| {
        let is_more = |one: f64, than: f64| one > than * (1.0 + OWED_ERROR);
        let side = match (is_more(base, new), is_more(new, base)) {
            (true, _) => Some(ComparedSide::Base),
            (_, true) => Some(ComparedSide::New),
            _ => None,
        };
        let doubt = || Doubt {
            side,
            levels: Some([base, new].map(|owed| (owed, owed))),
            ..Doubt::of(what, base.max(new))
        };
        (base != new && (of_base || of_new)).then(doubt)
    })
}

/// The side that did not hold its rate; `Some(None)` for both.
fn side_behind(base: &[&CellAnalysis], new: &[&CellAnalysis]) -> Option<Option<ComparedSide>> {
    let is_behind = |cell: &&CellAnalysis| cell.flags.contains(&DoubtKind::RateNotHeld);
    // Only if most trials missed the rate, the median of a side is one of them.
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
) -> impl Iterator<Item = Doubt> {
    let of_cell = |cell: &&CellAnalysis| {
        let step_ns = cell.clock_resolution_ns?;
        let median = cell.response.filter(|_| response.is_latency())?.median;
        Some(step_ns / median).filter(|share| *share > CLOCK_SHOWS)
    };
    let sides = [(ComparedSide::Base, base), (ComparedSide::New, new)];
    let found = sides.map(|(side, cells)| {
        let shares = cells.iter().filter_map(of_cell);
        let share = shares.max_by(f64::total_cmp)?;
        Some(Doubt::of(DoubtKind::ClockResolution, share).on(side))
    });
    found.into_iter().flatten()
}

/// Whether a model served a cell: it computes its times, whatever the machine does.
fn is_computed(cell: &CellAnalysis) -> bool {
    let served = cell.served.as_ref();
    served.is_some_and(|served| served.unanimous() == Some(ServedBy::Model))
}

/// Work of others around some trials, and a suspended machine, with their extents.
pub(super) fn disturbances(around: &CellDisturbance) -> impl Iterator<Item = Doubt> {
    let is_outside =
        |what: &DoubtKind| what.class() == DoubtClass::Others || *what == DoubtKind::Suspended;
    let all = DoubtKind::ALL.iter().copied().filter(is_outside);
    all.filter_map(|what| Some(Doubt::of(what, what.extent(around)?)))
}

/// All doubts about the trials of a cell.
pub fn of_cell(cell: &CellAnalysis) -> Vec<Doubt> {
    let known = [DoubtClass::Source, DoubtClass::Others];
    let is_known = |what: DoubtKind| known.contains(&what.class()) || what == DoubtKind::Suspended;
    let flags = cell.flags.iter().copied().filter(|what| !is_known(*what));
    let flags = flags.map(|what| Doubt {
        extent: what.extent(&cell.disturbance),
        ..Doubt::from(what)
    });
    let source = cell.served.as_ref().filter(|_| !cell.is_as_asked());
    let source = source.map(|served| {
        let reason = served.unanimous().map_or("", |_| served.reason.as_str());
        Doubt::of_source(served.unanimous().unwrap_or(ServedBy::Mixed), reason)
    });
    around_cell(cell).chain(source).chain(flags).collect()
}

/// Conditions around the trials of a cell, and what other cells had left.
fn around_cell(cell: &CellAnalysis) -> impl Iterator<Item = Doubt> {
    let others = disturbances(&cell.disturbance);
    let others = others.filter(|doubt| doubt.what == DoubtKind::Suspended || !is_computed(cell));
    let after_writes = cell.reads_after_writes;
    others.chain(after_writes.then(|| DoubtKind::EarlierWrites.into()))
}

fn around<'a>(cells: &[&'a CellAnalysis]) -> Vec<&'a CellDisturbance> {
    cells.iter().map(|cell| &cell.disturbance).collect()
}

/// The disturbances in which the runs of two sides differ: every run of one side is above every run of the other, by
/// enough to matter. An unknown value is not a difference.
pub fn imbalances(base: &[&CellDisturbance], new: &[&CellDisturbance]) -> Vec<Doubt> {
    let differing = |what: DoubtKind| {
        let (base, new) = (range(what, base)?, range(what, new)?);
        let side = match base.1 < new.0 {
            true => what.differs(base.1, new.0).then_some(ComparedSide::New)?,
            false if new.1 < base.0 => what.differs(new.1, base.0).then_some(ComparedSide::Base)?,
            false => return None,
        };
        Some(Doubt {
            levels: Some([base, new]),
            ..Doubt::from(what).on(side)
        })
    };
    let all = DoubtKind::ALL.iter().copied();
    all.filter_map(differing).collect()
}

/// The lowest and the highest value; `None` where no run has one.
fn range(what: DoubtKind, runs: &[&CellDisturbance]) -> Option<(f64, f64)> {
    let values = || runs.iter().filter_map(|around| what.compared(around));
    let least = values().min_by(f64::total_cmp)?;
    let most = values().max_by(f64::total_cmp)?;
    Some((least, most))
}
