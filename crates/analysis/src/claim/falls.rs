//! Effects within a single cell: falls of throughput, which a shorter and a longer load of the cell reproduce,
//! and effects without two sides that can be measured.

use std::time::Duration;

use super::phenomenon::{Fall, Phenomenon, PhenomenonKind, Unclaimed};
use super::series::{Groups, two_groups};
use super::tail::{TailObstacle, unexplainable};
use super::{Claim, LevelChange};
use crate::analysis::{Analysis, CellAnalysis};
use crate::timeline::Access;

/// Share of the bytes before the fall after which the shorter load ends.
const SHORTER: f64 = 0.5;
/// Length of the longer load, as a multiple of the time before the fall.
const LONGER: f64 = 2.0;
/// The bytes of both loads are a multiple of this: the largest requests of a suspect.
const UNIT: u64 = 256 << 10;

/// An effect of a run that has no two sides to be measured again.
#[derive(Debug, Clone, PartialEq)]
pub enum Unpaired {
    /// A change of the level of throughput.
    Change(LevelChange, WhyUnpaired),
    /// Trials in two groups, not caused by a change over the run.
    TwoGroups(Groups),
    /// Slow requests.
    LongTail(Box<Claim>, TailObstacle),
}

/// Reason why a change of level has no two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnpaired {
    /// Throughput rises.
    Rises,
    /// The cell reads and writes, so that its bytes before the change mix both.
    ReadsAndWrites,
    /// The requests of the cell are made at a rate.
    HasRate,
    /// The trials end by a rule of their own, or each trial fills a new file.
    OwnBounds,
    /// Several cells moved the bytes before a change over the run: a load of one of them would not use up the same.
    SeveralCells,
    /// The storage was written before the first trial, and no later trial begins in that state.
    Preconditioned,
}

/// The greatest change of each cell that has one.
fn changes(claims: &[Claim]) -> Vec<LevelChange> {
    let size = |change: &LevelChange| change.factor().ln().abs();
    let mut all: Vec<LevelChange> = Vec::new();
    for change in claims.iter().filter_map(Claim::level_change) {
        match all.iter_mut().find(|known| known.cell == change.cell) {
            Some(known) if size(&change) > size(known) => *known = change,
            Some(_) => {}
            None => all.push(change),
        }
    }
    all
}

/// The falls among the claims of a run.
pub(super) fn falls(run: &Analysis, claims: &[Claim]) -> Vec<Phenomenon> {
    let all = changes(claims).into_iter();
    all.filter_map(|change| fall(run, &change)?.ok()).collect()
}

/// A fall as a difference between a shorter and a longer load; `None` if its cell is missing.
fn fall(run: &Analysis, change: &LevelChange) -> Option<Result<Phenomenon, WhyUnpaired>> {
    let cell = run.cell(change.cell.cell)?;
    if let Some(why) = obstacle(run, cell, change) {
        return Some(Err(why));
    }
    let seconds = change.since.bytes / 1e6 / change.before_mb_s;
    // The time is a setting and appears on pages: whole milliseconds.
    let time = |part: f64| {
        let ms = Duration::try_from_secs_f64(part * seconds)
            .ok()?
            .as_millis();
        Some(Duration::from_millis(ms.max(1) as u64))
    };
    let bytes =
        |part: f64| (part * change.since.bytes / UNIT as f64).round().max(1.0) as u64 * UNIT;
    let seen = (1.0 + (LONGER - 1.0) * change.factor()) / LONGER;
    let unclaimed = change.is_disturbed.then_some(Unclaimed::Disturbed);
    Some(Ok(Phenomenon {
        kind: PhenomenonKind::Loads(Fall {
            first_bytes: bytes(SHORTER),
            whole_bytes: bytes(1.0 + (LONGER - 1.0) * change.factor()),
            first: time(SHORTER)?,
            whole: time(LONGER)?,
            factor: change.factor(),
            after_bytes: change.since.bytes,
            levels_mb_s: [change.before_mb_s, change.after_mb_s],
        }),
        ..Phenomenon::of_cells([change.cell; 2], seen, -seen.ln(), unclaimed)
    }))
}

fn obstacle(run: &Analysis, cell: &CellAnalysis, change: &LevelChange) -> Option<WhyUnpaired> {
    let trial = cell.cell.trial();
    if change.factor() >= 1.0 {
        Some(WhyUnpaired::Rises)
    } else if trial.reads() && trial.writes() {
        Some(WhyUnpaired::ReadsAndWrites)
    } else if trial.has_rate() {
        Some(WhyUnpaired::HasRate)
    } else if trial.has_own_bounds() {
        Some(WhyUnpaired::OwnBounds)
    } else if change.is_of_run && run.cells.len() > 1 {
        Some(WhyUnpaired::SeveralCells)
    } else {
        run.is_preconditioned.then_some(WhyUnpaired::Preconditioned)
    }
}

/// Effects within the cells of a run that no difference shows, in the order of its claims.
pub fn unpaired(run: &Analysis) -> Vec<Unpaired> {
    let all = super::claims(&[run]);
    let changed = changes(&all).into_iter().filter_map(|change| {
        let why = fall(run, &change)?.err()?;
        Some(Unpaired::Change(change, why))
    });
    let tails = all.iter().filter_map(|claim| {
        let why = unexplainable(claim, run)?;
        Some(Unpaired::LongTail(Box::new(claim.clone()), why))
    });
    let groups = two_groups(run, 0, |cell| is_steady(run, cell));
    changed
        .chain(tails)
        .chain(groups.map(Unpaired::TwoGroups))
        .collect()
}

/// Whether a cell did not change with others over the run: otherwise its levels before and after the change are
/// two groups of trials.
fn is_steady(run: &Analysis, cell: &CellAnalysis) -> bool {
    let writes = cell.cell.trial().writes();
    !run.timeline.over_run.iter().any(|shift| match shift.cells {
        1 => shift.cell == cell.cell.id,
        _ => writes == (shift.of == Access::Writes),
    })
}
