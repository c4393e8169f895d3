//! A comparison in many settings as a table.

use crate::findings::across::{Across, Setting, Shown};
use iolab_workload::quantity::significant;

use crate::layout::{self, Column, wrapped};

/// The table for a terminal of `width` columns, with its caption.
pub fn text(across: &Across, width: u16) -> String {
    wrapped(&caption(across), width) + &layout::text(columns(across), width)
}

/// Explains the table.
pub(crate) fn caption(across: &Across) -> String {
    let unit = match across.response.is_time() {
        true => String::new(),
        false => format!(" ({})", across.response.unit()),
    };
    format!(
        "{}{unit} by {} in {} settings: medians of both sides, and ratio of medians, new over base, with its 95 % interval",
        across.response,
        across.factor,
        across.rows.len()
    )
}

/// The columns, with one row per setting.
pub(crate) fn columns(across: &Across) -> Vec<Column> {
    let column = |heading: &str, dispensable, value: &dyn Fn(&Setting) -> String| {
        Column::new(heading, dispensable, across.rows.iter().map(value))
    };
    let value = |median: f64| match across.response.is_time() {
        true => across.response.format(median),
        false => significant(median),
    };
    let mut columns: Vec<Column> = across
        .others
        .iter()
        .enumerate()
        .map(|(i, name)| column(name, 0, &|row| row.held.get(i).cloned().unwrap_or_default()))
        .collect();
    columns.extend([
        column(across.factor, 0, &|row| {
            format!("{} over {}", row.levels.1, row.levels.0)
        }),
        column("new", 1, &|row| value(row.medians.1)),
        column("base", 1, &|row| value(row.medians.0)),
        column("ratio", 0, &|row| significant(row.ratio.ratio)),
        column("95 % interval", 0, &|row| {
            row.ratio.interval.map_or_else(
                || "-".to_owned(),
                |i| format!("{} to {}", significant(i.low), significant(i.high)),
            )
        }),
        column("shown", 2, &|row| {
            if row.ratio.interval.is_none() {
                return "too few trials".to_owned();
            }
            match (row.shown(across.response), across.response.is_time()) {
                (Shown::Nothing, _) => "no difference",
                (Shown::Better, false) => "higher",
                (Shown::Worse, false) => "lower",
                (Shown::Better, true) => "shorter",
                (Shown::Worse, true) => "longer",
            }
            .to_owned()
        })
        .left(),
    ]);
    columns
}
