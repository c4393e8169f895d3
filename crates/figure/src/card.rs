//! The glance as a picture to post: 1200 by 630 pixels, the size that previews of links have.

use std::fmt::Write as _;

use iolab_analysis::glance::{Operation, Order, Row};
use iolab_spec::Result;
use iolab_spec::quantity::{format_ns, format_percent, significant};
use iolab_spec::units::format_size;

use super::palette::{GRID, INK, MUTED, PAPER, SERIES};
use super::svg::escaped;
use super::text::{FAMILIES, fitted};

/// Width and height, pixels.
const SIZE: (f64, f64) = (1200.0, 630.0);
/// Pixels per inch that make a pixel of the SVG one of the picture.
const DPI: f64 = 96.0;
/// Distance of everything from the edges, pixels.
const MARGIN: f64 = 48.0;
/// Where the rows begin and end, pixels from the top.
const ROWS: (f64, f64) = (168.0, 548.0);
/// Width of the names of the rows, pixels.
const NAMES: f64 = 216.0;
/// Most rows that can be read.
const ROWS_MAX: usize = 4;

/// What stands above and below the numbers.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    /// The largest words: what was measured.
    pub title: &'a str,
    /// Where, below the title.
    pub subject: &'a str,
    /// How far to trust the numbers, below them.
    pub trust: &'a str,
    /// What made the picture, and when.
    pub source: &'a str,
}

/// The picture as PNG.
///
/// # Errors
/// Of kind failed when it cannot be drawn.
pub fn png(rows: &[Row<'_>], words: &Words<'_>) -> Result<Vec<u8>> {
    super::png::png(&svg(rows, words), DPI)
}

/// The picture as SVG.
pub fn svg(rows: &[Row<'_>], words: &Words<'_>) -> String {
    let (width, height) = SIZE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"{FAMILIES}\"><rect width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n"
    );
    let room = width - 2.0 * MARGIN;
    for (text, y, size, fill) in [
        (words.title, 72.0, 36.0, INK),
        (words.subject, 108.0, 19.0, MUTED),
        (words.trust, 584.0, 18.0, INK),
        (words.source, 610.0, 16.0, MUTED),
    ] {
        svg.push_str(&text_at(MARGIN, y, size, fill, &fitted(text, size, room)));
    }
    let groups = groups(rows);
    let operations: Vec<Operation> = Operation::ALL
        .into_iter()
        .filter(|operation| rows.iter().any(|row| row.operation == *operation))
        .collect();
    let column = (room - NAMES) / operations.len().max(1) as f64;
    for (i, operation) in operations.iter().enumerate() {
        let x = MARGIN + NAMES + column * i as f64;
        svg.push_str(&text_at(x, ROWS.0 - 14.0, 19.0, MUTED, operation.name()));
    }
    let line = (ROWS.1 - ROWS.0) / groups.len().max(1) as f64;
    for (place, group) in groups.iter().enumerate() {
        let top = ROWS.0 + line * place as f64;
        let _ = writeln!(
            svg,
            "<path d=\"M{MARGIN} {top}h{room}\" stroke=\"{GRID}\" stroke-width=\"2\"/>"
        );
        let middle = top + line / 2.0;
        if let Some(row) = group.first() {
            svg.push_str(&text_at(MARGIN, middle - 2.0, 28.0, INK, &name(row)));
            svg.push_str(&text_at(
                MARGIN,
                middle + 24.0,
                18.0,
                MUTED,
                &concurrency(row),
            ));
        }
        for row in group {
            let at = operations.iter().position(|o| *o == row.operation);
            let x = MARGIN + NAMES + column * at.unwrap_or(0) as f64;
            let share = share(row, &groups);
            svg.push_str(&number(
                row,
                x,
                middle,
                column - 36.0,
                share,
                at.unwrap_or(0),
            ));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The value with its unit, its interval and p99, and a bar of its share.
fn number(row: &Row<'_>, x: f64, middle: f64, room: f64, share: f64, colour: usize) -> String {
    let Some(rate) = row.rate() else {
        return String::new();
    };
    let precision = rate.precision.map_or_else(
        || "no interval".to_owned(),
        |precision| format!("±{}", format_percent(precision)),
    );
    let p99 = row.cell.latency.filter(|_| row.has_tail());
    let p99 = p99.map_or_else(String::new, |l| format!("   p99 {}", format_ns(l.p99_ns)));
    let served = match row.cell.is_device() {
        true => String::new(),
        false => row
            .cell
            .served
            .as_ref()
            .map_or_else(String::new, |s| format!("   {s}")),
    };
    let below = fitted(&format!("{precision}{p99}{served}"), 17.0, room);
    let value = significant(rate.value);
    let unit_x = x + super::text::width(&value, 38.0) + 8.0;
    [
        text_at(x, middle, 38.0, INK, &value),
        text_at(unit_x, middle, 19.0, MUTED, rate.unit),
        text_at(x, middle + 24.0, 17.0, MUTED, &below),
        format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"6\" fill=\"{}\"/>\n",
            middle + 34.0,
            (room * share).max(2.0),
            SERIES[colour % SERIES.len()]
        ),
    ]
    .concat()
}

/// A value over the greatest of the same unit.
fn share(row: &Row<'_>, groups: &[Vec<&Row<'_>>]) -> f64 {
    let Some(rate) = row.rate() else { return 0.0 };
    let rates = groups.iter().flatten().filter_map(|row| row.rate());
    let same = rates.filter(|other| other.unit == rate.unit);
    rate.value / same.map(|other| other.value).fold(rate.value, f64::max)
}

/// Rows of the same access, which differ in what they do.
fn groups<'r, 'a>(rows: &'r [Row<'a>]) -> Vec<Vec<&'r Row<'a>>> {
    let key = |row: &Row<'_>| (row.order, row.cell.cell.trial().bs, row.in_flight());
    let mut groups: Vec<Vec<&Row<'a>>> = Vec::new();
    for row in rows {
        match groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| key(first) == key(row)))
        {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.truncate(ROWS_MAX);
    groups
}

fn name(row: &Row<'_>) -> String {
    let order = match row.order {
        Order::Sequential => "SEQ",
        Order::Random => "RND",
    };
    let size = format_size(row.cell.cell.trial().bs);
    format!("{order} {size}")
}

fn concurrency(row: &Row<'_>) -> String {
    let trial = row.cell.cell.trial();
    format!("Q{} T{}", trial.depth, trial.threads)
}

fn text_at(x: f64, y: f64, size: f64, fill: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{fill}\">{}</text>\n",
        escaped(text)
    )
}
