//! The answer to "how long does a durable write take", in at most 20 lines, also for the grid of a built-in experiment.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::doubt::{Direction, Doubts};
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::counted;

use crate::chart::Style;
use crate::doubt::words;
use crate::input::Input;
use crate::layout::{self, DOUBT_LINES_MAX, LINES_MAX, none, paragraph, wrapped};
use crate::overview::Overview;
use crate::{pivot, table};

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
    let (analysis, width) = (input.run.analysis(), style.width);
    let overview = Overview::new([input]);
    let lines = overview.lines().into_iter();
    let mut text: String = lines.map(|line| paragraph(&line, "", width)).collect();
    text += &doubt(input, width);
    text += &match grid(analysis, style) {
        Some(grid) => grid,
        None => {
            let question = wrapped(&escape_control(&analysis.question), width);
            format!("\n{question}{}", table::brief(analysis, width))
        }
    };
    // Leaves an empty line before the findings, and one for the number of omitted ones.
    let taken = text.lines().count() + 2;
    let mut room = LINES_MAX.saturating_sub(taken);
    let (mut findings, mut hidden) = (String::new(), 0_usize);
    for headline in &overview.digest.headlines {
        let block = paragraph(&escape_control(&headline.text), "- ", width);
        let lines = block.lines().count();
        if lines <= room {
            room -= lines;
            findings += &block;
        } else {
            hidden += 1;
        }
    }
    let mut end = findings;
    if hidden > 0 {
        end += &format!(
            "(hidden: {}, shown by --full)\n",
            counted(hidden, "finding")
        );
    }
    let has_room = text.lines().count() + end.lines().count() < LINES_MAX;
    let gap = if has_room && !end.is_empty() {
        "\n"
    } else {
        ""
    };
    text + gap + &end
}

/// Reasons why the times may not be the storage's; empty without doubts.
fn doubt(input: &Input, width: u16) -> String {
    let all = Doubts::of_run(input.run.record(), |_| true);
    let doubts = all.against(Direction::AtLeast).into_iter();
    let doubts: Vec<String> = doubts.map(|doubt| words(doubt, &all)).collect();
    if doubts.is_empty() {
        return String::new();
    }
    let text = format!(
        "Not shown to be times of the storage: {}.",
        escape_control(&doubts.join("; "))
    );
    layout::cut(&paragraph(&text, "", width), DOUBT_LINES_MAX, width)
}

/// The cells as a grid with one factor across; `None` for few cells, and where none fits.
fn grid(analysis: &Analysis, style: &Style) -> Option<String> {
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
    let caption = format!(
        "{}Columns: {}. {precision}: half of the 95 % interval. Hidden: p99, sync p50 (--full).",
        table::heading(analysis),
        escape_control(&analysis.factors[across]),
    );
    Some(wrapped(&caption, style.width) + &layout::text(columns, style.width))
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
