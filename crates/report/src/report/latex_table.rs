//! A table of a report in LaTeX that fits the page: if it is too wide it loses columns, if it is too high it is
//! split.

use super::captioned::Captioned;
use crate::latex::{escaped, sentence};
use crate::layout::{Grid, wrap};

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

/// Floating tables: over one column if they are narrow, otherwise over both; long ones in several parts.
pub(super) fn table(table: &Captioned) -> String {
    let mut grid = table.grid.clone();
    let mut caption = table.caption.clone();
    let mut add = |text: String| {
        caption.push_str(if caption.ends_with('.') { " " } else { "; " });
        caption.push_str(&text);
    };
    // A value that all rows share is moved to the caption.
    let alike: Vec<String> = take_alike(&mut grid);
    if !alike.is_empty() {
        add(format!("in all rows: {}", alike.join(", ")));
    }
    let left_out = take_dear(&mut grid);
    if !left_out.is_empty() {
        add(format!("not shown: {}", left_out.join(", ")));
    }
    let float = match across(&grid) > NARROW {
        true => "table*",
        false => "table",
    };
    let size = match across(&grid) > WIDE {
        true => "tiny",
        false => "scriptsize",
    };
    let columns: String = (0..grid.headings.len())
        .map(
            |column| match (is_broken(&grid, column), grid.headings[column].1) {
                (true, _) => r">{\raggedright\arraybackslash}p{0.15\textwidth}",
                (false, true) => "r",
                (false, false) => "l",
            },
        )
        .collect();
    let line = |values: Vec<String>| format!("{} \\\\\n", values.join(" & "));
    let heading = line(grid.headings.iter().map(|(h, _)| escaped(h)).collect());
    let mut text = String::new();
    for (part, rows) in parts(&grid).into_iter().enumerate() {
        let rows: String = rows
            .iter()
            .map(|row| line(row.iter().map(|v| escaped(v)).collect()))
            .collect();
        let caption = match part {
            0 => sentence(&caption),
            _ => "Continued.".to_owned(),
        };
        text.push_str(&format!(
            "\\begin{{{float}}}[tbp]\\centering\\{size}\n\\begin{{tabular}}{{{columns}}}\n\\hline\n{heading}\\hline\n{rows}\\hline\n\\end{{tabular}}\n\\caption{{{caption}}}\n\\end{{{float}}}\n\n"
        ));
    }
    text
}

/// Removes dispensable columns with the same value in all of several rows; returns them as `HEADING VALUE`.
fn take_alike(grid: &mut Grid) -> Vec<String> {
    let mut taken = Vec::new();
    for column in (0..grid.headings.len()).rev() {
        let mut values = grid.rows.iter().map(|row| &row[column]);
        let Some(first) = values.next().filter(|_| grid.rows.len() > 1) else {
            continue;
        };
        if grid.dispensable[column] > 0 && values.all(|value| value == first) {
            let text = match first.as_str() {
                "" | "-" => None,
                value => Some(format!("{} {value}", grid.headings[column].0)),
            };
            taken.extend(text);
            grid.remove(column);
        }
    }
    taken.reverse();
    taken
}

/// Removes the most dispensable columns until the rest fits on the page; returns their headings.
fn take_dear(grid: &mut Grid) -> Vec<String> {
    let mut taken = Vec::new();
    while across(grid) > WIDE {
        let columns = grid.dispensable.iter().enumerate();
        let dearest = columns
            .filter(|(_, dear)| **dear > 0)
            .max_by_key(|(_, dear)| **dear);
        let Some((column, _)) = dearest else { break };
        taken.push(grid.headings[column].0.clone());
        grid.remove(column);
    }
    taken
}

/// Characters of the longest value of a column.
fn longest(grid: &Grid, column: usize) -> usize {
    let values = grid.rows.iter().filter_map(|row| row.get(column));
    values.map(|value| value.chars().count()).max().unwrap_or(0)
}

fn is_broken(grid: &Grid, column: usize) -> bool {
    longest(grid, column) > UNBROKEN_MAX
}

/// Width of all columns in the script size, points.
fn across(grid: &Grid) -> f64 {
    let width = |column: usize| match is_broken(grid, column) {
        true => BROKEN,
        false => {
            let heading = grid.headings[column].0.chars().count();
            longest(grid, column).max(heading) as f64 * DIGIT
        }
    };
    (0..grid.headings.len())
        .map(|column| width(column) + GAP)
        .sum()
}

/// The rows in parts that fit on a page each.
fn parts(grid: &Grid) -> Vec<&[Vec<String>]> {
    let broken: Vec<bool> = (0..grid.headings.len())
        .map(|column| is_broken(grid, column))
        .collect();
    let lines = |row: &Vec<String>| {
        let values = row.iter().zip(&broken).filter(|(_, broken)| **broken);
        let lines = values.map(|(value, _)| wrap(value, BROKEN_LINE).len());
        lines.max().unwrap_or(1)
    };
    let (mut parts, mut start, mut used) = (Vec::new(), 0, 0);
    for (place, row) in grid.rows.iter().enumerate() {
        let own = lines(row);
        if used + own > LINES_MAX && place > start {
            parts.push(&grid.rows[start..place]);
            (start, used) = (place, 0);
        }
        used += own;
    }
    if start < grid.rows.len() {
        parts.push(&grid.rows[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Column;

    fn of(columns: Vec<Column>) -> String {
        table(&Captioned {
            caption: "Speeds".to_owned(),
            grid: Grid::of(columns),
        })
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

    #[test]
    fn values_equal_in_all_rows_are_in_caption() {
        let alike = Column::new("ended by", 1, ["budget", "budget"].map(str::to_owned));
        let text = of(vec![column("size", 0, 2, "4KiB"), alike]);
        insta::assert_snapshot!(text, @r"
        \begin{table}[tbp]\centering\scriptsize
        \begin{tabular}{r}
        \hline
        size \\
        \hline
        4KiB 0 \\
        4KiB 1 \\
        \hline
        \end{tabular}
        \caption{Speeds; in all rows: ended by budget}
        \end{table}
        ");
    }
}
