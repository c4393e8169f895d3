//! One row per cell, as text that fits a terminal or as Markdown.

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ContentArrangement, Table};

use iolab_lab::analysis::{Analysis, CellAnalysis, Response};
use iolab_lab::quantity::{format_ns, format_percent, significant};
use iolab_lab::record::RunStatus;
use iolab_stats::Interval;

use crate::plain::plain;

/// Least width in columns that a text table is made for.
pub const WIDTH_MIN: u16 = 40;

/// A column of the table: its heading, its text per cell, and how dear it is.
struct Column {
    heading: String,
    values: Vec<String>,
    /// Columns with the greatest number are left out first; 0 always stays.
    dispensable: u8,
    right: bool,
}

impl Column {
    fn new(
        analysis: &Analysis,
        heading: impl Into<String>,
        dispensable: u8,
        value: impl Fn(&CellAnalysis) -> String,
    ) -> Self {
        Self {
            heading: heading.into(),
            values: analysis.cells.iter().map(value).collect(),
            dispensable,
            right: true,
        }
    }

    fn left(mut self) -> Self {
        self.right = false;
        self
    }

    fn width(&self) -> usize {
        let longest = self.values.iter().map(|v| v.chars().count()).max();
        longest.unwrap_or(0).max(self.heading.chars().count())
    }
}

/// The table for a terminal of `width` columns. Columns that do not fit are left out, least
/// important first, and named in a line below.
pub fn text(analysis: &Analysis, width: u16) -> String {
    const GAP: usize = 2;
    let width = width.max(WIDTH_MIN);
    let mut columns = columns(analysis);
    let mut left_out: Vec<String> = Vec::new();
    while columns.iter().map(|c| c.width() + GAP).sum::<usize>() > usize::from(width) + GAP {
        let dearest = columns
            .iter()
            .enumerate()
            .filter(|(_, c)| c.dispensable > 0)
            .max_by_key(|(_, c)| c.dispensable);
        let Some((index, _)) = dearest else { break };
        left_out.push(columns.remove(index).heading);
    }
    let mut table = filled(&columns);
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP as u16));
    }
    let mut text = caption(analysis);
    text.push_str(&table.trim_fmt());
    text.push('\n');
    if !left_out.is_empty() {
        text.push_str(&format!("(no room for: {})\n", left_out.join(", ")));
    }
    text
}

/// The table in Markdown, with every column.
pub fn markdown(analysis: &Analysis) -> String {
    let mut columns = columns(analysis);
    for value in columns.iter_mut().flat_map(|c| &mut c.values) {
        *value = value.replace('|', "\\|");
    }
    let mut table = filled(&columns);
    table.load_style(ASCII_MARKDOWN);
    format!("{}\n{table}\n", caption(analysis))
}

fn caption(analysis: &Analysis) -> String {
    let unfinished = match analysis.status {
        RunStatus::Done => "",
        RunStatus::Running => "; unfinished",
        RunStatus::Interrupted => "; interrupted",
        RunStatus::Failed => "; ended by a failure",
    };
    format!(
        "{}: {}, median of n trials with its 95 % interval{unfinished}\n",
        plain(&analysis.experiment),
        analysis.response,
    )
}

fn filled(columns: &[Column]) -> Table {
    let mut table = Table::new();
    table.set_header(columns.iter().map(|c| c.heading.as_str()));
    let rows = columns.first().map_or(0, |c| c.values.len());
    for row in 0..rows {
        table.add_row(columns.iter().map(|c| c.values[row].as_str()));
    }
    for (column, shown) in columns.iter().zip(table.column_iter_mut()) {
        if column.right {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// All columns in their order. The column of flags is there only when a flag is raised.
fn columns(analysis: &Analysis) -> Vec<Column> {
    let response = analysis.response;
    let mut columns: Vec<Column> = analysis
        .factors
        .iter()
        .enumerate()
        .map(|(i, factor)| {
            let level = |c: &CellAnalysis| {
                let level = c.cell.levels.get(i).map_or("", String::as_str);
                plain(level).into_owned()
            };
            Column::new(analysis, plain(factor), 0, level)
        })
        .collect();
    let latency = |of: fn(&iolab_lab::analysis::Latency) -> f64| {
        move |c: &CellAnalysis| c.latency.map_or_else(none, |l| format_ns(of(&l)))
    };
    columns.extend([
        Column::new(analysis, "n", 2, |c| c.n.to_string()),
        Column::new(analysis, heading(response), 0, |c| {
            c.response.map_or_else(none, |r| bare(response, r.median))
        }),
        Column::new(analysis, "95 % interval", 1, |c| {
            let interval = c.response.and_then(|r| r.median_interval);
            interval.map_or_else(none, |i| range(response, &i))
        }),
        Column::new(analysis, "+/-", 5, |c| {
            c.precision.map_or_else(none, format_percent)
        }),
        Column::new(analysis, "IQR", 6, |c| {
            c.response
                .map_or_else(none, |r| bare(response, r.q3 - r.q1))
        }),
        Column::new(analysis, "p50", 4, latency(|l| l.p50_ns)),
        Column::new(analysis, "p99", 4, latency(|l| l.p99_ns)),
        Column::new(analysis, "served by", 0, |c| {
            c.served.as_ref().map_or_else(none, ToString::to_string)
        })
        .left(),
        Column::new(analysis, "ended by", 7, |c| {
            let ended = c.cell.ended_by.as_deref().unwrap_or("open");
            plain(ended).into_owned()
        })
        .left(),
    ]);
    if analysis.cells.iter().any(|c| !c.flags.is_empty()) {
        let flags = |c: &CellAnalysis| {
            let names: Vec<String> = c.flags.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        columns.push(Column::new(analysis, "flags", 3, flags).left());
    }
    columns
}

fn none() -> String {
    "-".to_owned()
}

fn heading(response: Response) -> &'static str {
    match response {
        Response::Latency => "latency",
        Response::Elapsed => "time",
        other => other.unit(),
    }
}

fn bare(response: Response, value: f64) -> String {
    match response {
        Response::Latency | Response::Elapsed => format_ns(value),
        _ => significant(value),
    }
}

pub(crate) fn range(response: Response, interval: &Interval) -> String {
    format!(
        "{} to {}",
        bare(response, interval.low),
        bare(response, interval.high)
    )
}
