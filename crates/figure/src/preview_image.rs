//! The overview as a picture of 1200 by 630 pixels, the size of link previews.

use iolab_analysis::headline_numbers::{AccessOperation, AccessOrder, HeadlineCell};
use iolab_workload::Result;
use iolab_workload::quantity::{format_ns, format_percent, significant};
use iolab_workload::units::format_size;

use super::palette::{SERIES, colour};
use super::scene::{Anchor, Frame, Item, Paint, Scene, Text};
use super::text::{fitted, width};

/// Width and height, pixels.
const SIZE: (f64, f64) = (1200.0, 630.0);
/// Resolution at which a point of the scene is a pixel.
const DPI: f64 = 72.0;
/// Margin at all edges, pixels.
const MARGIN: f64 = 48.0;
/// Start and end of the rows, pixels from the top.
const ROWS: (f64, f64) = (168.0, 548.0);
/// Width of the names of the rows, pixels.
const NAMES: f64 = 216.0;
/// Most readable rows.
const ROWS_MAX: usize = 4;

/// The texts above and below the numbers.
#[derive(Debug, Clone, Copy)]
pub struct PreviewText<'a> {
    /// What was measured; the largest text.
    pub title: &'a str,
    /// The target, below the title.
    pub subject: &'a str,
    /// How reliable the numbers are, below them.
    pub trust: &'a str,
    /// The program that made the picture, and when.
    pub source: &'a str,
}

/// The picture as PNG.
///
/// # Errors
/// Of kind [`Failed`](iolab_workload::Kind::Failed) when it cannot be drawn.
pub fn png(rows: &[HeadlineCell<'_>], words: &PreviewText<'_>) -> Result<Vec<u8>> {
    super::png::png(&scene(rows, words), DPI)
}

fn scene(rows: &[HeadlineCell<'_>], words: &PreviewText<'_>) -> Scene {
    let mut items = Vec::new();
    let room = SIZE.0 - 2.0 * MARGIN;
    for (text, y, size, paint) in [
        (words.title, 72.0, 36.0, Paint::Ink),
        (words.subject, 108.0, 19.0, Paint::Muted),
        (words.trust, 584.0, 18.0, Paint::Ink),
        (words.source, 610.0, 16.0, Paint::Muted),
    ] {
        items.push(text_at(MARGIN, y, size, paint, fitted(text, size, room)));
    }
    let groups = groups(rows);
    let operations: Vec<AccessOperation> = AccessOperation::ALL
        .into_iter()
        .filter(|operation| rows.iter().any(|row| row.operation == *operation))
        .collect();
    let column = (room - NAMES) / operations.len().max(1) as f64;
    for (i, operation) in operations.iter().enumerate() {
        let x = MARGIN + NAMES + column * i as f64;
        let name = operation.name().to_owned();
        items.push(text_at(x, ROWS.0 - 14.0, 19.0, Paint::Muted, name));
    }
    let line = (ROWS.1 - ROWS.0) / groups.len().max(1) as f64;
    for (place, group) in groups.iter().enumerate() {
        let top = ROWS.0 + line * place as f64;
        items.push(Item::Path {
            class: "",
            points: vec![(MARGIN, top), (MARGIN + room, top)],
            width: 2.0,
            dash: "",
            paint: Paint::Grid,
        });
        let middle = top + line / 2.0;
        if let Some(row) = group.first() {
            items.push(text_at(MARGIN, middle - 2.0, 28.0, Paint::Ink, name(row)));
            let concurrency = concurrency(row);
            items.push(text_at(
                MARGIN,
                middle + 24.0,
                18.0,
                Paint::Muted,
                concurrency,
            ));
        }
        for row in group {
            let at = operations.iter().position(|o| *o == row.operation);
            let at = at.unwrap_or(0);
            let x = MARGIN + NAMES + column * at as f64;
            let share = share(row, &groups);
            items.extend(number(row, (x, middle), column - 36.0, share, at));
        }
    }
    Scene {
        width: SIZE.0,
        height: SIZE.1,
        items,
    }
}

/// The value with its unit, its interval and p99, and a bar of its share.
fn number(
    row: &HeadlineCell<'_>,
    (x, middle): (f64, f64),
    room: f64,
    share: f64,
    place: usize,
) -> Vec<Item> {
    let Some(rate) = row.rate() else {
        return Vec::new();
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
    let unit_x = x + width(&value, 38.0) + 8.0;
    let bar = Frame {
        left: x,
        top: middle + 34.0,
        right: x + (room * share).max(2.0),
        bottom: middle + 40.0,
    };
    vec![
        text_at(x, middle, 38.0, Paint::Ink, value),
        text_at(unit_x, middle, 19.0, Paint::Muted, rate.unit.to_owned()),
        text_at(x, middle + 24.0, 17.0, Paint::Muted, below),
        Item::Rectangle {
            class: "",
            frame: bar,
            fill: Paint::Fixed(SERIES[colour(place)].to_owned()),
            outlined: false,
        },
    ]
}

/// A value over the greatest of the same unit.
fn share(row: &HeadlineCell<'_>, groups: &[Vec<&HeadlineCell<'_>>]) -> f64 {
    let Some(rate) = row.rate() else { return 0.0 };
    let rates = groups.iter().flatten().filter_map(|row| row.rate());
    let same = rates.filter(|other| other.unit == rate.unit);
    rate.value / same.map(|other| other.value).fold(rate.value, f64::max)
}

/// Rows of the same access, which differ in what they do.
fn groups<'r, 'a>(rows: &'r [HeadlineCell<'a>]) -> Vec<Vec<&'r HeadlineCell<'a>>> {
    let key = |row: &HeadlineCell<'_>| (row.order, row.cell.cell.trial().bs, row.in_flight());
    let mut groups: Vec<Vec<&HeadlineCell<'a>>> = Vec::new();
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

fn name(row: &HeadlineCell<'_>) -> String {
    let order = match row.order {
        AccessOrder::Sequential => "SEQ",
        AccessOrder::Random => "RND",
    };
    let size = format_size(row.cell.cell.trial().bs);
    format!("{order} {size}")
}

fn concurrency(row: &HeadlineCell<'_>) -> String {
    let trial = row.cell.cell.trial();
    format!("Q{} T{}", trial.depth, trial.threads)
}

fn text_at(x: f64, y: f64, size: f64, paint: Paint, text: String) -> Item {
    Item::Text(Text {
        x,
        y,
        size,
        anchor: Anchor::Start,
        upwards: false,
        paint,
        text,
    })
}
