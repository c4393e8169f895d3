//! A document in LaTeX, for pdflatex with its usual packages, with tables that fit the page.

use std::ops::Range;

use super::{Block, Lines, List, Look, Picture, Table};
use crate::latex::{block, escaped, sentence};
use crate::layout::{Column, leave_out, tabular, wrap};
use iolab_workload::Result;

const PREAMBLE: &str = r"\pdfminorversion=7
\documentclass[a4paper,10pt,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\input{glyphtounicode}\pdfgentounicode=1
\usepackage[margin=18mm]{geometry}
\usepackage{graphicx}
\usepackage{array}
\setlength{\columnsep}{6mm}
\setlength{\tabcolsep}{2.5pt}
\emergencystretch=3em
\sloppy
";

/// Figures with their file names.
type Figures = Vec<(String, Vec<u8>)>;

/// The document, with its figures as PDF whose names begin with `prefix`. What precedes the first part is its
/// abstract.
///
/// # Errors
/// When a figure cannot be written.
pub(crate) fn article(blocks: &[Block], prefix: &str) -> Result<(String, Figures)> {
    let is_part = |block: &Block| matches!(block, Block::Heading(heading) if heading.level > 1);
    let (head, parts) = blocks.split_at(blocks.iter().position(is_part).unwrap_or(blocks.len()));
    let mut text = PREAMBLE.to_owned();
    let mut figures = Vec::new();
    if let Some((Block::Heading(title), about)) = head.split_first() {
        text += &format!(
            "\\title{{{}}}\n\\author{{}}\n\\date{{}}\n\\begin{{document}}\n\\maketitle\n",
            escaped(&title.text)
        );
        if !about.is_empty() {
            let about = parts_in_latex(about);
            text += &format!("\\begin{{abstract}}\n{about}\\end{{abstract}}\n\n");
        }
    }
    let mut tables = 0;
    let floats = |part: &Block| matches!(part, Block::Figure(_) | Block::Table(_));
    for parts in parts.chunk_by(|a, b| floats(a) == floats(b)) {
        let mut named = Vec::new();
        let mut body = String::new();
        for part in parts {
            match part {
                Block::Figure(Picture { name, figure, .. }) => {
                    let file = format!("{prefix}-{name}.pdf");
                    figures.push((file.clone(), figure.pdf()?));
                    let label = format!("fig:{}", figures.len());
                    named.push(format!("Figure~\\ref{{{label}}}"));
                    body += &format!(
                        "\\begin{{figure}}[tbp]\\centering\n\\includegraphics[width=\\columnwidth,height=0.4\\textheight,keepaspectratio]{{{file}}}\n\\caption{{{}}}\\label{{{label}}}\n\\end{{figure}}\n\n",
                        sentence(figure.description())
                    );
                }
                Block::Table(one) => {
                    tables += 1;
                    let label = format!("tab:{tables}");
                    named.push(format!("Table~\\ref{{{label}}}"));
                    body += &table(one, &format!("\\label{{{label}}}"));
                }
                other => body += &written(other),
            }
        }
        // Floats drift away from the text that they belong to.
        if !named.is_empty() {
            text += &format!("See {}.\n\n", named.join(", "));
        }
        text += &body;
    }
    Ok((text + "\\end{document}\n", figures))
}

/// The parts without their figures.
pub(crate) fn parts_in_latex(blocks: &[Block]) -> String {
    blocks.iter().map(written).collect()
}

fn written(part: &Block) -> String {
    match part {
        Block::Heading(heading) => {
            let command = match heading.level {
                0..=2 => "section",
                3 => "subsection",
                4 => "subsubsection",
                _ => "paragraph",
            };
            format!("\\{command}{{{}}}\n", escaped(&heading.text))
        }
        Block::Paragraph(Look::Result, words) => format!("\\textbf{{{}}}\n\n", sentence(words)),
        Block::Paragraph(_, words) => format!("{}\n\n", sentence(words)),
        Block::List(list) => items(list),
        Block::Facts(facts) => {
            let fact = |(name, value): &(String, String)| {
                format!("{}: {}\\par\n", escaped(name), escaped(value))
            };
            let facts: String = facts.iter().map(fact).collect();
            format!("{{\\footnotesize\\raggedright\n{facts}}}\n\n")
        }
        Block::Table(one) => table(one, ""),
        Block::Lines(Lines { text, .. }) => block(text),
        Block::Figure(_) => String::new(),
    }
}

/// A list; empty text for no items.
fn items(list: &List) -> String {
    let name = if list.is_ordered {
        "enumerate"
    } else {
        "itemize"
    };
    let items = list.items.iter();
    let items = items.map(|item| format!("\\item {}\n", sentence(&item.in_full())));
    match items.collect::<String>() {
        none if none.is_empty() => none,
        items => format!("\\begin{{{name}}}\n{items}\\end{{{name}}}\n\n"),
    }
}

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
    let left_out = leave_out(&mut columns, |columns| across(columns) <= WIDE);
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
