//! Cells that were measured and that a figure does not show, with the reason of each.

use iolab_analysis::analysis::{CellAnalysis, Response};
use iolab_record::ShownLatency;
use iolab_workload::escape_control::escape_control;

use super::super::FigureRun;
use super::super::data::{Values, measured};
use super::super::kind::FigureKind;
use super::super::labels;
use super::super::options::Options;
use super::{course, latency};

/// Most cells that are named for a reason.
const NAMED_MAX: usize = 4;

/// The cells that were measured and have no value of what a figure of this kind shows, by name and with the reason; `None` where all
/// have one, and of kinds that show no cells.
pub(in super::super) fn left_out(
    kind: FigureKind,
    runs: &[FigureRun<'_>],
    options: &Options,
) -> Option<String> {
    let quantity = match kind {
        FigureKind::Response => super::quantity(runs, options),
        FigureKind::Load => options.y.unwrap_or(Response::Latency),
        FigureKind::Percentiles => Response::Latency,
        FigureKind::Ratio
        | FigureKind::PValues
        | FigureKind::Order
        | FigureKind::Rounds
        | FigureKind::Course
        | FigureKind::Stages
        | FigureKind::Why => return None,
    };
    let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
    let shown = runs.iter().enumerate();
    for (place, run) in shown.filter(|(_, run)| run.level.is_none()) {
        let values = Values::of(run, quantity);
        let is_drawn = |cell: &CellAnalysis| match kind.needs_latencies() {
            true => latency::together(runs, place, cell.cell.id).is_some(),
            false => !values.of_cell(cell.cell.id).is_empty(),
        };
        let cells = run.analysis().cells.iter().filter(|cell| cell.n > 0);
        for cell in cells.filter(|cell| !is_drawn(cell)) {
            let why = reason(runs, run, cell, quantity);
            let name = name(run, cell);
            match by_reason.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(name),
                None => by_reason.push((why, vec![name])),
            }
        }
    }
    let sentences = by_reason.into_iter().map(|(why, mut names)| {
        let more = match names.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        names.truncate(NAMED_MAX);
        format!("Not drawn, {why}: {}{more}", names.join("; "))
    });
    let text = sentences.collect::<Vec<String>>().join(". ");
    (!text.is_empty()).then_some(text)
}

/// The levels of a cell.
fn name(run: &FigureRun<'_>, cell: &CellAnalysis) -> String {
    let levels = run.analysis().factors.iter().zip(&cell.cell.levels);
    let levels = levels.map(|(factor, level)| labels::level(factor, level));
    let name = levels.collect::<Vec<String>>().join(", ");
    escape_control(&name).into_owned()
}

/// Reason why a cell has no value of a quantity.
fn reason(
    runs: &[FigureRun<'_>],
    run: &FigureRun<'_>,
    cell: &CellAnalysis,
    quantity: Response,
) -> String {
    let timed = course::timed(runs);
    let mut trials = measured(run).filter(|sample| sample.cell == cell.cell.id);
    let has_none = |sample| timed.requests(sample).requests == 0;
    match trials.next() {
        // A group that is idle in this cell.
        None => return "no requests".to_owned(),
        Some(first) if quantity.is_latency() && has_none(first) && trials.all(has_none) => {
            return format!("no {}s", timed.operation(first));
        }
        Some(_) => {}
    }
    match quantity.requests_min() {
        0 | 1 => format!("no value of the {}", labels::of_response(quantity)),
        least => {
            let requests = match timed {
                ShownLatency::Own => "requests".to_owned(),
                ShownLatency::Of(operation) => format!("{operation}s"),
            };
            format!("fewer than {least} {requests} per trial")
        }
    }
}
