//! Vertical lines through a panel, named above it: thresholds of the machine, bends of curves.

use super::super::model::{Along, Panel};
use super::super::scene::{Anchor, Frame, Item, Paint, Text};
use super::super::text;
use super::Canvas;
use super::label_spacing::spread;

/// Longest name, points per point of text.
const NAME_MAX: f64 = 11.0;
/// Height over which a line finds its name, points.
const LEADER: f64 = 5.0;
/// Most names: more would stand closer than a line of text on the narrowest panel.
const NAMES_MAX: usize = 16;

/// A line with its name.
struct Upright<'a> {
    x: f64,
    name: &'a str,
    /// Series that it belongs to, and where its curve bends.
    bend: Option<(usize, f64)>,
}

fn uprights(panel: &Panel) -> Vec<Upright<'_>> {
    let lines = panel.lines.iter().filter(|line| line.along == Along::Y);
    let lines = lines.map(|line| Upright {
        x: line.at,
        name: &line.label,
        bend: None,
    });
    let bends = panel.series.iter().flat_map(|series| {
        series.bends.iter().map(|bend| Upright {
            x: bend.x,
            name: &bend.name,
            bend: Some((series.place, bend.y)),
        })
    });
    let mut all: Vec<Upright<'_>> = lines
        .chain(bends)
        .filter(|u| panel.x.scale.holds(u.x))
        .collect();
    all.sort_by(|a, b| a.x.total_cmp(&b.x));
    all
}

fn is_named(canvas: &Canvas, uprights: &[Upright<'_>], width: f64) -> bool {
    let size = canvas.sizes.small;
    let room = width >= uprights.len() as f64 * size * text::LINE_HEIGHT;
    room && uprights.len() <= NAMES_MAX
}

/// Height that the names of a panel take above it.
pub(super) fn height(canvas: &Canvas, panel: &Panel, width: f64) -> f64 {
    let size = canvas.sizes.small;
    let uprights = uprights(panel);
    if uprights.is_empty() || !is_named(canvas, &uprights, width) {
        return 0.0;
    }
    let name = |u: &Upright<'_>| text::width(u.name, size).min(size * NAME_MAX);
    uprights.iter().map(name).fold(0.0, f64::max) + LEADER + 2.0
}

/// Draws the lines, and their names where the panel has room above.
pub(super) fn draw(canvas: &mut Canvas, frame: Frame, panel: &Panel, named: bool) {
    let uprights = uprights(panel);
    if uprights.is_empty() {
        return;
    }
    let size = canvas.sizes.small;
    let across = |x: f64| frame.left + panel.x.scale.share(x).unwrap_or(0.0) * frame.width();
    let up = |y: f64| frame.bottom - panel.y.scale.share(y).unwrap_or(0.0) * frame.height();
    let named = named && is_named(canvas, &uprights, frame.width());
    let wanted: Vec<f64> = uprights.iter().map(|u| across(u.x)).collect();
    let half = size * text::LINE_HEIGHT / 2.0;
    let places = spread(&wanted, 2.0 * half, frame.left + half, frame.right - half);
    for ((upright, x), place) in uprights.iter().zip(&wanted).zip(places) {
        let (class, series) = match upright.bend {
            Some((series, _)) => ("bend", Some(series)),
            None => ("threshold", None),
        };
        canvas.group(class, series, Vec::new(), upright.name);
        let (paint, end) = match upright.bend {
            Some((_, y)) => (Paint::Series, up(y)),
            None => (Paint::Muted, frame.bottom),
        };
        canvas.dashed(
            "",
            &[(*x, frame.top), (*x, end)],
            0.5,
            "1.5 1.5",
            paint.clone(),
        );
        if named {
            canvas.line(
                "",
                &[(*x, frame.top), (place, frame.top - LEADER)],
                0.5,
                paint.clone(),
            );
            canvas.items.push(Item::Text(Text {
                x: place + size * text::CAP_HEIGHT / 2.0,
                y: frame.top - LEADER - 1.0,
                size,
                anchor: Anchor::Start,
                upwards: true,
                paint,
                text: text::fitted(upright.name, size, size * NAME_MAX),
            }));
        }
        canvas.close();
    }
}
