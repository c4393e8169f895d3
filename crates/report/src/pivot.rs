//! Cells as a grid, with the levels of one factor across.

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_workload::escape_control::escape_control;

use crate::layout::{Column, none};

/// The columns of a grid: first the levels of each other factor, under the name that `heading` gives it, then
/// one column for each level of the factor `across`, an index in [`Analysis::factors`]. Rows and columns are in
/// the order of the cells.
pub(crate) fn columns<'a>(
    analysis: &'a Analysis,
    across: usize,
    heading: impl Fn(&str) -> String,
    value: impl Fn(&CellAnalysis) -> String,
) -> Vec<Column> {
    let down: Vec<usize> = (0..analysis.factors.len())
        .filter(|factor| *factor != across)
        .collect();
    let place = |cell: &'a CellAnalysis| -> Vec<&'a str> {
        down.iter().map(|factor| level(cell, *factor)).collect()
    };
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for cell in &analysis.cells {
        let place = place(cell);
        if !rows.contains(&place) {
            rows.push(place);
        }
    }
    let heads = down.iter().enumerate().map(|(at, factor)| {
        let heading = heading(&clean(&analysis.factors[*factor]));
        Column::new(heading, 0, rows.iter().map(|row| clean(row[at])))
    });
    let values = analysis.levels(across).into_iter().map(|wanted| {
        let of_row = |row: &Vec<&str>| {
            let mut cells = analysis.cells.iter();
            let cell = cells.find(|cell| level(cell, across) == wanted && place(cell) == *row);
            cell.map_or_else(none, &value)
        };
        Column::new(clean(wanted), 0, rows.iter().map(of_row))
    });
    heads.chain(values).collect()
}

fn level(cell: &CellAnalysis, factor: usize) -> &str {
    cell.cell.levels.get(factor).map_or("", String::as_str)
}

fn clean(text: &str) -> String {
    escape_control(text).into_owned()
}
