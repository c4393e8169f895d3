//! The tables of a test of a standard, which precede the table of all cells in a report: the judged window, and
//! the means of its rounds in a grid.
//!
//! Tables and figures follow the order of an implementation of PTS 2.0. First come the tracked values round by
//! round, then the measurement window with allowed and measured values. The table of all mixes and sizes and
//! their figure follow.

use iolab_analysis::analysis::{Analysis, CellAnalysis, SteadyAnalysis, Tracked, TrackedOf};
use iolab_stats::mean;
use iolab_workload::settings::cell_label;
use iolab_workload::units::{format_percent, significant};

use super::clean;
use crate::block::Table;
use crate::layout::{Column, none};
use crate::pivot;

/// The tables, in their order; empty for a run that follows no standard, or has no rounds of cells.
pub(super) fn of(analysis: &Analysis) -> Vec<Table> {
    let steady = analysis.steady.as_ref();
    let steady = steady.filter(|steady| analysis.standard.is_some() && steady.is_of_cells());
    let Some(steady) = steady else {
        return Vec::new();
    };
    window(analysis, steady)
        .into_iter()
        .chain(grid(analysis))
        .collect()
}

/// The rounds of the last window in the tracked cells; `None` if there are fewer rounds.
fn window(analysis: &Analysis, steady: &SteadyAnalysis) -> Option<Table> {
    let length = steady.asked.window as usize;
    let has_window = |one: &&Tracked| one.values.len() >= length;
    let tracked = steady.tracked.iter().filter(has_window);
    let of_cells = tracked.filter_map(|one| match one.of {
        TrackedOf::Cell(id) => Some((id, one)),
        TrackedOf::Target(_) => None,
    });
    let (ids, tracked): (Vec<i64>, Vec<&Tracked>) = of_cells.unzip();
    let rounds = tracked.first()?.values.len();
    let name = |id: &i64| clean(&cell_label(&analysis.factors, analysis.levels_of(*id)));
    let names = ids.iter().map(name);
    let mut columns = vec![Column::new("tracked", 0, names).left()];
    for place in 0..length {
        let heading = format!("round {}", rounds - length + place + 1);
        let values = tracked
            .iter()
            .map(|one| significant(one.last_window(&steady.asked)[place]));
        columns.push(Column::new(heading, 1, values));
    }
    let column = |heading: &str, value: &dyn Fn(&Tracked) -> Option<String>| {
        let values = tracked.iter().map(|one| value(one).unwrap_or_else(none));
        Column::new(heading, 0, values)
    };
    columns.extend([
        column("mean", &|one| {
            mean(one.last_window(&steady.asked)).map(significant)
        }),
        column("range", &|one| Some(format_percent(one.steadiness?.range))),
        column("slope", &|one| Some(format_percent(one.steadiness?.slope))),
    ]);
    Some(Table::new(
        format!(
            "measurement window: {} of the tracked cells in the last {length} of {rounds} rounds",
            named(analysis)
        ),
        [format!(
            "range and slope of the line of least squares over the mean: at most {} and {} are allowed",
            format_percent(steady.asked.range),
            format_percent(steady.asked.slope)
        )],
        columns,
    ))
}

/// `IOPS`, `throughput (MB/s)`.
fn named(analysis: &Analysis) -> String {
    let (quantity, unit) = (clean(&analysis.quantity()), analysis.response.unit());
    match quantity == unit {
        true => quantity,
        false => format!("{quantity} ({unit})"),
    }
}

/// The mean of each cell over the measured rounds: a row for each level of the second factor, a column for each
/// of the first. `None` with another number of factors, or with too many levels for a page.
fn grid(analysis: &Analysis) -> Option<Table> {
    const COLUMNS_MAX: usize = 12;
    let [across, down] = analysis.factors.as_slice() else {
        return None;
    };
    let (columns, rows) = (analysis.levels(0).len(), analysis.levels(1).len());
    if !(2..=COLUMNS_MAX).contains(&columns) || rows < 2 {
        return None;
    }
    let (across, down) = (clean(across), clean(down));
    let heading = |down: &str| format!("{down} \\ {across}");
    let value = |cell: &CellAnalysis| mean(&cell.values).map_or_else(none, significant);
    let trials = analysis.cells.iter().map(|cell| cell.n).max()?;
    Some(Table::new(
        format!(
            "{} by {down} and {across}: means of the {trials} measured rounds",
            named(analysis)
        ),
        [],
        pivot::columns(analysis, 0, heading, value),
    ))
}
