//! What trials leave in a target for those that follow: credits and caches that are used up.

use iolab_plan::suspect::Leftover;
use iolab_stats::median;

use super::phenomenon::Phenomenon;
use super::series::drifting_cells;
use crate::analysis::{Analysis, CellAnalysis};
use crate::timeline::{Access, FACTOR_MIN, TrialShift};

/// Whether throughput of a side changes its level within its trials.
pub fn changes_inside(run: &Analysis, phenomenon: &Phenomenon) -> bool {
    let own = [phenomenon.base.cell, phenomenon.other.cell];
    run.timeline
        .within
        .iter()
        .any(|shift| own.contains(&shift.cell))
}

/// What trials of both sides leave for those that follow.
pub fn leftover(run: &Analysis, phenomenon: &Phenomenon) -> Leftover {
    // Whether idle time restores the level shows when the fall is there again.
    if let Some(fall) = phenomenon.fall() {
        return Leftover::Drained(1.0 / fall.factor);
    }
    let own = [phenomenon.base.cell, phenomenon.other.cell];
    let writes = |id: i64| run.cell(id).is_some_and(|cell| cell.cell.trial().writes());
    let timeline = &run.timeline;
    // The first trial has used up what was there, and none has found it again.
    if timeline
        .in_warm_ups
        .iter()
        .any(|shift| own.contains(&shift.cell))
    {
        return Leftover::Lasting;
    }
    let concerns = |of: Access| own.iter().any(|id| writes(*id) == (of == Access::Writes));
    let over_run = timeline.over_run.iter().filter(|shift| concerns(shift.of));
    if over_run.clone().any(|shift| shift.factor > 1.0) {
        return Leftover::Lasting;
    }
    // The factor is that of all cells, of which some never reach the limit.
    let over_run = over_run.map(|shift| match own.contains(&shift.cell) {
        true => shift.factor.min(shift.after_mb_s / shift.before_mb_s),
        false => shift.factor,
    });
    let by_itself = fell(run, &own);
    // A trial that begins slow begins anew.
    let within = timeline
        .within
        .iter()
        .filter(|shift| own.contains(&shift.cell));
    let within = within
        .map(TrialShift::factor)
        .filter(|factor| *factor < 1.0);
    let fell = over_run
        .chain(within)
        .map(|factor| 1.0 / factor)
        .chain(by_itself);
    fell.max_by(f64::total_cmp)
        .map_or(Leftover::Nothing, Leftover::Drained)
}

/// To what part the response of these cells became worse over the run, one in so many, where their trials drift: the median of the first third
/// over that of the last one; `None` where that is less than a change of level. A limit that only one side reaches is no change of all cells.
pub(super) fn fell(run: &Analysis, cells: &[i64]) -> Option<f64> {
    let of_cell = |cell: &CellAnalysis| {
        let (values, _) = cell.trials();
        let third = values.len() / 3;
        let first = median(values.get(..third)?)?;
        let last = median(values.get(values.len() - third..)?)?;
        Some(match run.response.more_is_better() {
            true => first / last,
            false => last / first,
        })
    };
    let drifting = drifting_cells(run).into_iter();
    let own = drifting.filter(|cell| cells.contains(&cell.cell.id));
    own.filter_map(of_cell)
        .filter(|factor| *factor >= FACTOR_MIN)
        .max_by(f64::total_cmp)
}
