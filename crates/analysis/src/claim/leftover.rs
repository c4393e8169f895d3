//! Effects of trials on later ones: credits and caches that they use up.

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

/// Effect that trials of both sides have on later ones.
pub fn leftover(run: &Analysis, phenomenon: &Phenomenon) -> Leftover {
    // If the fall is reproduced, idle time restores the level.
    if let Some(fall) = phenomenon.fall() {
        return Leftover::Drained(1.0 / fall.factor);
    }
    let own = [phenomenon.base.cell, phenomenon.other.cell];
    let writes = |id: i64| run.cell(id).is_some_and(|cell| cell.cell.trial().writes());
    let timeline = &run.timeline;
    // The first trial used up the credit or cache, and it never recovered.
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
    // The factor covers all cells, some of which may never reach the limit.
    let over_run = over_run.map(|shift| match own.contains(&shift.cell) {
        true => shift.factor.min(shift.after_mb_s / shift.before_mb_s),
        false => shift.factor,
    });
    let by_itself = fell(run, &own);
    // A trial that begins slow starts from a new state, and is not a fall.
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

/// The greatest factor by which the response of one of these cells became worse over the run, if its trials
/// drift. It is the ratio of the medians of the first and the last third, and `None` if it is less than a change
/// of level. A limit that only one side reaches does not change all cells.
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
