//! A table of a report in LaTeX that fits the page: if it is too wide it loses columns, if it is too high it is
//! split.

use std::ops::Range;

use super::Table;
use crate::latex::sentence;
use crate::layout::{Column, dearest, tabular, wrap};

/// Longest text of a column that is not broken into lines, characters.
const UNBROKEN_MAX: usize = 24;
/// Width of a column with broken lines, points: 0.15 of the text.
const BROKEN: f64 = 74.0;
/// Characters of a line in a column with broken lines.
const BROKEN_LINE: usize = 18;
/// Space next to a column, points.
const GAP: f64 = 5.0;
/// Width of a digit in the script size, points; the mean width of a letter is at most that.
const DIGIT: f64 = 4.0;
/// Width of a column of the page, points.
const NARROW: f64 = 238.0;
/// Width of the page, points.
const WIDE: f64 = 494.0;
/// Lines of a table that fit on a page, with a caption.
const LINES_MAX: usize = 60;

/// Floating tables: over one column if they are narrow, otherwise over both; long ones in several parts, of which the first
/// has the label.
pub(super) fn table(table: &Table, label: &str) -> String {
    let mut columns = table.columns.clone();
    let mut caption = table.caption_in_one_line();
    let left_out = take_dear(&mut columns);
    if !left_out.is_empty() {
        caption.push_str(&format!("; not shown: {}", left_out.join(", ")));
    }
    let float = match across(&columns) > NARROW {
        true => "table*",
        false => "table",
    };
    let size = match across(&columns) > WIDE {
        true => "tiny",
        false => "scriptsize",
    };
    let sides = columns
        .iter()
        .map(|column| match (is_broken(column), column.right) {
            (true, _) => r">{\raggedright\arraybackslash}p{0.15\textwidth}",
            (false, true) => "r",
            (false, false) => "l",
        });
    let sides: String = sides.collect();
    let mut text = String::new();
    for (part, rows) in parts(&columns).into_iter().enumerate() {
        let caption = match part {
            0 => format!("{{{}}}{label}", sentence(&caption)),
            _ => "{Continued.}".to_owned(),
        };
        text.push_str(&format!(
            "\\begin{{{float}}}[tbp]\\centering\\{size}\n{}\\caption{caption}\n\\end{{{float}}}\n\n",
            tabular(&columns, &sides, rows)
        ));
    }
    text
}

/// Removes the most dispensable columns until the rest fits on the page; returns their headings.
fn take_dear(columns: &mut Vec<Column>) -> Vec<String> {
    let mut taken = Vec::new();
    while across(columns) > WIDE {
        let Some(column) = dearest(columns) else {
            break;
        };
        taken.push(columns.remove(column).heading);
    }
    taken
}

/// Characters of the longest value of a column.
fn longest(column: &Column) -> usize {
    let values = column.values.iter();
    values.map(|value| value.chars().count()).max().unwrap_or(0)
}

fn is_broken(column: &Column) -> bool {
    longest(column) > UNBROKEN_MAX
}

/// Width of all columns in the script size, points.
fn across(columns: &[Column]) -> f64 {
    let width = |column: &Column| match is_broken(column) {
        true => BROKEN,
        false => longest(column).max(column.heading.chars().count()) as f64 * DIGIT,
    };
    columns.iter().map(|column| width(column) + GAP).sum()
}

/// The rows in parts that fit on a page each.
fn parts(columns: &[Column]) -> Vec<Range<usize>> {
    let lines = |row: usize| {
        let broken = columns.iter().filter(|column| is_broken(column));
        let lines = broken.map(|column| wrap(&column.values[row], BROKEN_LINE).len());
        lines.max().unwrap_or(1)
    };
    let rows = columns.first().map_or(0, Column::rows);
    let (mut parts, mut start, mut used) = (Vec::new(), 0, 0);
    for row in 0..rows {
        let own = lines(row);
        if used + own > LINES_MAX && row > start {
            parts.push(start..row);
            (start, used) = (row, 0);
        }
        used += own;
    }
    if start < rows {
        parts.push(start..rows);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Column;

    fn of(columns: Vec<Column>) -> String {
        table(&Table::new("Speeds", [], columns), "")
    }

    fn column(heading: &str, dispensable: u8, rows: usize, value: &str) -> Column {
        Column::new(
            heading,
            dispensable,
            (0..rows).map(|row| format!("{value} {row}")),
        )
    }

    #[test]
    fn long_table_is_split_by_lines_of_rows() {
        let short = || column("size", 0, 70, "4KiB");
        let flags = "other traffic, cpu contended, few trials, far from the goal";
        assert_eq!(of(vec![short()]).matches("begin{tabular}").count(), 2);
        let text = of(vec![short(), column("flags", 0, 70, flags)]);
        assert!(text.matches("begin{tabular}").count() >= 5, "{text}");
        assert_eq!(text.matches("4KiB 69").count(), 1);
    }

    #[test]
    fn wide_table_states_the_columns_it_drops() {
        let columns = (0..12).map(|i| column(&format!("c{i}"), i, 3, "123456789 MB/s"));
        let text = of(columns.collect());
        insta::assert_snapshot!(text, @r"
        \begin{table*}[tbp]\centering\scriptsize
        \begin{tabular}{rrrrrrr}
        \hline
        c0 & c1 & c2 & c3 & c4 & c5 & c6 \\
        \hline
        123456789 MB/s 0 & 123456789 MB/s 0 & 123456789 MB/s 0 & 123456789 MB/s 0 & 123456789 MB/s 0 & 123456789 MB/s 0 & 123456789 MB/s 0 \\
        123456789 MB/s 1 & 123456789 MB/s 1 & 123456789 MB/s 1 & 123456789 MB/s 1 & 123456789 MB/s 1 & 123456789 MB/s 1 & 123456789 MB/s 1 \\
        123456789 MB/s 2 & 123456789 MB/s 2 & 123456789 MB/s 2 & 123456789 MB/s 2 & 123456789 MB/s 2 & 123456789 MB/s 2 & 123456789 MB/s 2 \\
        \hline
        \end{tabular}
        \caption{Speeds; not shown: c11, c10, c9, c8, c7}
        \end{table*}
        ");
    }
}
