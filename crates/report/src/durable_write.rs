//! The answer to "how long does a durable write take", on one screen also for the grid of a built-in experiment.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::doubt::{Direction, Doubts};
use iolab_workload::escape_control::escape_control;

use crate::block::{Block, Item, Look, Table, first_screen};
use crate::chart::Style;
use crate::doubt::words;
use crate::input::Input;
use crate::layout::{self, SCREEN_LINES, none};
use crate::overview::Overview;
use crate::{pivot, table};

/// Lines that the command writes after the answer: an empty one, and the run file.
const LINES_BELOW: usize = 2;
/// Most cells with a row each; more cells are shown as a grid.
const ROWS_MAX: usize = 6;

/// Whether a run measures only the latency of durable writes.
pub fn asks(input: &Input) -> bool {
    let analysis = input.run.analysis();
    let is_durable = |cell: &CellAnalysis| {
        let only = cell.cell.spec.only_trial();
        only.is_some_and(|one| !one.reads() && one.writes() && one.sync.is_per_write())
    };
    analysis.response == Response::Latency
        && !analysis.cells.is_empty()
        && analysis.cells.iter().all(is_durable)
        && !analysis.spans_ranks()
        && input.interpretation.peers.is_empty()
}

/// The answer.
pub fn text(input: &Input, style: &Style) -> String {
    let analysis = input.run.analysis();
    let overview = Overview::new([input]);
    let useless = overview.verdict_on_useless();
    let lines = useless.map_or_else(|| overview.lines(), |verdict| vec![verdict]);
    let lines = lines.into_iter().chain(doubt(input));
    let mut all: Vec<Block> = lines
        .map(|line| Block::Paragraph(Look::Result, line))
        .collect();
    match grid(analysis, style) {
        Some(grid) => all.push(Block::Table(grid)),
        None => {
            all.push(Block::text(analysis.question.as_str()));
            all.push(Block::Table(table::brief(analysis)));
        }
    }
    let found = overview.digest.headlines.iter();
    let found = found.map(|headline| Item::of(headline.text.as_str()));
    all.push(Block::list(found.collect()));
    first_screen(&all, SCREEN_LINES - LINES_BELOW, "--full", style.width)
}

/// Reasons why the times may not be the storage's; `None` without doubts.
fn doubt(input: &Input) -> Option<String> {
    let all = Doubts::of_run(input.run.record(), |_| true);
    let doubts = all.against(Direction::AtLeast).into_iter();
    let doubts: Vec<String> = doubts.map(|doubt| words(doubt, &all)).collect();
    let text = || {
        format!(
            "Not shown to be times of the storage: {}.",
            doubts.join("; ")
        )
    };
    (!doubts.is_empty()).then(text)
}

/// The cells as a grid with one factor across; `None` for few cells, and where none fits.
fn grid(analysis: &Analysis, style: &Style) -> Option<Table> {
    if analysis.cells.len() <= ROWS_MAX {
        return None;
    }
    let columns = |across: usize| {
        let value = |cell: &CellAnalysis| median(analysis, cell, style);
        pivot::columns(analysis, across, str::to_owned, value)
    };
    let grids = (0..analysis.factors.len()).map(|across| (across, columns(across)));
    let (across, columns) = grids
        .filter(|(_, columns)| layout::fits(columns, style.width))
        .min_by_key(|(_, columns)| columns[0].rows())?;
    let precision = match style.ascii {
        true => "()",
        false => "±",
    };
    let note = format!(
        "columns: {}; {precision}: half of the 95 % interval; hidden: p99, sync p50 (--full)",
        escape_control(&analysis.factors[across]),
    );
    Some(Table::new(table::title(analysis), [note], columns))
}

/// The median of a cell with half the width of its interval: `236 us ±9 %`.
fn median(analysis: &Analysis, cell: &CellAnalysis, style: &Style) -> String {
    let Some(summary) = cell.response else {
        return none();
    };
    let median = analysis.response.format(summary.median);
    let percent = |share: f64| (share * 100.0).ceil();
    match (cell.precision, style.ascii) {
        (Some(share), false) => format!("{median} ±{:.0} %", percent(share)),
        (Some(share), true) => format!("{median} ({:.0} %)", percent(share)),
        (None, _) => median,
    }
}
