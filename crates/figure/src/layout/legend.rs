//! Names at lines: of series, and of the vertical lines through a panel.

use std::collections::BTreeMap;

use super::super::model::{Arrangement, FigureModel, Look, Panel, Series};
use super::super::scene::{Frame, Paint, Shape, Text};
use super::super::text;
use super::{Canvas, MARGIN, Sizes, marks};
use crate::model::Along;
use crate::scene;

/// Most lines labelled at their ends.
const DIRECT_MAX: usize = 4;

/// Largest share of the width for labels at the ends of lines.
const DIRECT_SHARE: f64 = 0.3;

/// Space between a line's end and its label, points.
const DIRECT_GAP: f64 = 5.0;

/// Width of the sample of a line, points per point of text.
const SAMPLE: f64 = 2.2;

/// Space between two entries, points per point of text.
const ENTRY_GAP: f64 = 1.3;

/// Most lines of a single name.
const LINES_MAX: usize = 4;

/// The only panel, if the names of its series stand at the ends of its lines; `None` where a legend is better.
pub(super) fn with_direct_names<'a>(model: &'a FigureModel, canvas: &Canvas) -> Option<&'a Panel> {
    let [panel] = model.panels.as_slice() else {
        return None;
    };
    let is_line = |series: &Series| matches!(series.look, Look::Line | Look::Curve);
    let mut series = panel.series.iter();
    // All lines end near the right edge.
    let ends_right = |series: &Series| {
        let end = series.points.last();
        let share = end.and_then(|point| panel.x.scale.share(point.x));
        share.is_some_and(|share| share > 0.9)
    };
    let suits = series.all(|own| !own.name.is_empty() && is_line(own) && ends_right(own))
        && (2..=DIRECT_MAX).contains(&panel.series.len())
        && direct_width(panel, canvas.sizes) <= canvas.width * DIRECT_SHARE;
    suits.then_some(panel)
}

/// Width that the names take right of the panel.
pub(super) fn direct_width(panel: &Panel, sizes: Sizes) -> f64 {
    let names = panel.series.iter().map(|series| &series.name);
    let widths = names.map(|name| text::width(name, sizes.tick));
    widths.fold(0.0, f64::max) + DIRECT_GAP + sample_width(sizes.tick) + 1.0
}

/// Width of the sample of a line with the space after it, points.
fn sample_width(size: f64) -> f64 {
    size * (SAMPLE + 0.4)
}

/// Writes the names at the ends of the lines, each with dash and marker, since colours cannot be distinguished
/// in grey.
pub(super) fn draw_direct(canvas: &mut Canvas, frame: Frame, panel: &Panel) {
    let size = canvas.sizes.tick;
    let half = size * text::CAP_HEIGHT / 2.0;
    let wanted: Vec<f64> = panel
        .series
        .iter()
        .map(|series| {
            let end = series.points.last().and_then(|p| panel.y.scale.share(p.y));
            frame.bottom - end.unwrap_or(0.0) * frame.height()
        })
        .collect();
    let places = spread(
        &wanted,
        size * text::LINE_HEIGHT,
        frame.top + half,
        frame.bottom - half,
    );
    for (series, place) in panel.series.iter().zip(places) {
        let left = frame.right + DIRECT_GAP;
        entry(canvas, &series.name, series.place);
        sample(canvas, series, (left, left + size * SAMPLE), place);
        let at = (left + sample_width(size), place + half);
        canvas.write(Text {
            paint: Paint::Series,
            ..Text::at(at, size, &*series.name)
        });
        canvas.close();
    }
}

fn entry(canvas: &mut Canvas, name: &str, series: usize) {
    canvas.group(
        "legend",
        Some(series),
        vec![("series", name.to_owned())],
        "",
    );
}

/// One entry of the legend.
enum LegendEntry<'a> {
    Heading(&'a str),
    Series(&'a Series),
    /// The meaning of a hollow mark, and whether the marks are bars.
    Hollow(&'a str, bool),
}

impl LegendEntry<'_> {
    fn text(&self) -> String {
        match self {
            LegendEntry::Heading(text) => format!("{text}:"),
            LegendEntry::Series(series) => series.name.clone(),
            LegendEntry::Hollow(text, _) => (*text).to_owned(),
        }
    }
}

/// Draws the legend from `top` on; returns its end. Omits names that are at the lines.
pub(super) fn draw(model: &FigureModel, direct: bool, canvas: &mut Canvas, top: f64) -> f64 {
    let mut entries: Vec<LegendEntry<'_>> = Vec::new();
    let all = || model.panels.iter().flat_map(|panel| &panel.series);
    let mut series: BTreeMap<usize, &Series> = BTreeMap::new();
    for one in all() {
        series.entry(one.place).or_insert(one);
    }
    let needed = series.len() > 1 || model.arrangement == Arrangement::Stack;
    if !direct && needed && series.values().any(|series| !series.name.is_empty()) {
        if !model.legend.is_empty() {
            entries.push(LegendEntry::Heading(&model.legend));
        }
        let named = series
            .into_values()
            .filter(|series| !series.name.is_empty());
        entries.extend(named.map(LegendEntry::Series));
    }
    if !model.hollow.is_empty() {
        let bars = all().any(|series| matches!(series.look, Look::Bars { .. }));
        entries.push(LegendEntry::Hollow(&model.hollow, bars));
    }
    if entries.is_empty() {
        return top;
    }
    let size = canvas.sizes.tick;
    let line = size * 1.35;
    let room = canvas.width - 2.0 * MARGIN;
    let (mut x, mut y) = (MARGIN, top + line);
    for entry in &entries {
        let sample = match entry {
            LegendEntry::Heading(_) => 0.0,
            _ => size * (SAMPLE + 0.5),
        };
        let (name, room) = (entry.text(), room - sample);
        let mut lines = text::wrapped(&name, size, room);
        if lines.len() > LINES_MAX {
            // Such as a path.
            lines = vec![text::fitted_name(&name, size, room)];
        }
        let widths = lines.iter().map(|line| text::width(line, size));
        let width = sample + widths.fold(0.0, f64::max);
        if x > MARGIN && x + width > canvas.width - MARGIN {
            (x, y) = (MARGIN, y + line);
        }
        draw_entry(canvas, entry, &lines, (x, y), line);
        x += width + size * ENTRY_GAP;
        y += line * lines.len().saturating_sub(1) as f64;
    }
    y + size * 0.6
}

/// Draws an entry from the baseline of its first line on.
fn draw_entry(
    canvas: &mut Canvas,
    of: &LegendEntry<'_>,
    lines: &[String],
    (x, baseline): (f64, f64),
    line: f64,
) {
    let size = canvas.sizes.tick;
    let middle = baseline - size * text::CAP_HEIGHT / 2.0;
    let end = x + size * SAMPLE;
    let write = |canvas: &mut Canvas, left: f64, paint: Paint| {
        for (number, text) in lines.iter().enumerate() {
            let at = (left, baseline + line * number as f64);
            canvas.write(Text {
                paint,
                ..Text::at(at, size, text.as_str())
            });
        }
    };
    match of {
        LegendEntry::Heading(_) => {
            write(canvas, x, Paint::Muted);
            return;
        }
        LegendEntry::Hollow(_, bars) => {
            canvas.open("legend");
            let centre = f64::midpoint(x, end);
            if *bars {
                box_sample(canvas, centre, middle, None);
            } else {
                let at = (centre, middle);
                canvas.shape(Shape::marker(at, marks::RADIUS, scene::CIRCLE, true));
            }
        }
        LegendEntry::Series(series) => {
            entry(canvas, &series.name, series.place);
            sample(canvas, series, (x, end), middle);
        }
    }
    write(canvas, end + size * 0.5, Paint::Ink);
    canvas.close();
}

fn sample(canvas: &mut Canvas, series: &Series, (from, to): (f64, f64), y: f64) {
    let centre = f64::midpoint(from, to);
    if let Look::Bars { .. } = series.look {
        box_sample(canvas, centre, y, Some(series.place));
        return;
    }
    if matches!(series.look, Look::Line | Look::Curve) {
        let dash = scene::dash(series.place);
        canvas.dashed(
            "",
            &[(from, y), (to, y)],
            marks::LINE_WIDTH,
            dash,
            Paint::Series,
        );
    }
    if series.look != Look::Curve {
        let marker = scene::marker(series.place);
        canvas.shape(Shape::marker((centre, y), marks::RADIUS, marker, false));
    }
}

/// A small bar of a series; a hollow one for none.
fn box_sample(canvas: &mut Canvas, x: f64, y: f64, series: Option<usize>) {
    let size = canvas.sizes.tick;
    let frame = Frame {
        left: x - size * 0.6,
        top: y - size * 0.4,
        right: x + size * 0.6,
        bottom: y + size * 0.4,
    };
    marks::filled(canvas, frame, series.unwrap_or(0), series.is_none());
}

/// The positions of labels wanted at `wanted`, at least `gap` apart and within `low` to `high`, moved as little as possible; in
/// the order of `wanted`. Where they do not all fit, the gaps are equal and smaller.
pub(super) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let gaps = wanted.len().saturating_sub(1).max(1) as f64;
    let gap = gap.min((high - low).max(0.0) / gaps);
    // Groups of adjacent labels: first label, number of labels, position of the first.
    let mut groups: Vec<(usize, usize, f64)> = Vec::new();
    for (i, label) in order.iter().enumerate() {
        groups.push((i, 1, wanted[*label].clamp(low, high)));
        // Merges the last group with the one before while they touch.
        while let [.., (first, count, place), (_, more, next)] = groups.as_slice() {
            if place + *count as f64 * gap <= *next + 1e-9 {
                break;
            }
            let (first, count) = (*first, count + more);
            // The mean of the group positions that the single labels want.
            let begins = (0..count).map(|i| wanted[order[first + i]] - i as f64 * gap);
            let place = begins.sum::<f64>() / count as f64;
            let length = (count - 1) as f64 * gap;
            groups.truncate(groups.len() - 2);
            groups.push((first, count, place.min(high - length).max(low)));
        }
    }
    let mut places = vec![0.0; wanted.len()];
    for (first, count, place) in groups {
        for i in 0..count {
            places[order[first + i]] = place + i as f64 * gap;
        }
    }
    places
}

/// Longest name, points per point of text.
const NAME_MAX: f64 = 13.0;

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

fn is_named(size: f64, uprights: &[Upright<'_>], width: f64) -> bool {
    let room = width >= uprights.len() as f64 * size * text::LINE_HEIGHT;
    room && uprights.len() <= NAMES_MAX
}

/// Height that the names of a panel take above it.
pub(super) fn height(sizes: Sizes, panel: &Panel, width: f64) -> f64 {
    let size = sizes.small;
    let uprights = uprights(panel);
    if uprights.is_empty() || !is_named(size, &uprights, width) {
        return 0.0;
    }
    let name = |u: &Upright<'_>| text::width(u.name, size).min(size * NAME_MAX);
    uprights.iter().map(name).fold(0.0, f64::max) + LEADER + 2.0
}

/// Draws the lines, and their names where the panel has room above.
pub(super) fn draw_reference_lines(canvas: &mut Canvas, frame: Frame, panel: &Panel, named: bool) {
    let uprights = uprights(panel);
    if uprights.is_empty() {
        return;
    }
    let size = canvas.sizes.small;
    let across = |x: f64| frame.left + panel.x.scale.share(x).unwrap_or(0.0) * frame.width();
    let up = |y: f64| frame.bottom - panel.y.scale.share(y).unwrap_or(0.0) * frame.height();
    let named = named && is_named(size, &uprights, frame.width());
    let wanted: Vec<f64> = uprights.iter().map(|u| across(u.x)).collect();
    let half = size * text::LINE_HEIGHT / 2.0;
    let places = spread(&wanted, 2.0 * half, frame.left + half, frame.right - half);
    for ((upright, x), place) in uprights.iter().zip(&wanted).zip(places) {
        let (class, series, paint, end) = match upright.bend {
            Some((series, y)) => ("bend", Some(series), Paint::Series, up(y)),
            None => ("threshold", None, Paint::Muted, frame.bottom),
        };
        canvas.group(class, series, Vec::new(), upright.name);
        canvas.dashed("", &[(*x, frame.top), (*x, end)], 0.5, "1.5 1.5", paint);
        if named {
            canvas.line(
                "",
                &[(*x, frame.top), (place, frame.top - LEADER)],
                0.5,
                paint,
            );
            let at = (
                place + size * text::CAP_HEIGHT / 2.0,
                frame.top - LEADER - 1.0,
            );
            canvas.write(Text {
                upwards: true,
                paint,
                ..Text::at(at, size, text::fitted(upright.name, size, size * NAME_MAX))
            });
        }
        canvas.close();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_overlapping_labels_move() {
        assert_eq!(spread(&[30.0, 10.0], 8.0, 0.0, 100.0), [30.0, 10.0]);
        assert_eq!(spread(&[50.0, 50.0], 8.0, 0.0, 100.0), [46.0, 54.0]);
        assert_eq!(spread(&[0.0, 0.0], 8.0, 0.0, 100.0), [0.0, 8.0]);
        assert!(spread(&[], 8.0, 0.0, 100.0).is_empty());
    }

    proptest! {
        #[test]
        fn labels_stand_apart_and_within(wanted in prop::collection::vec(-50.0f64..250.0, 1..20)) {
            let places = spread(&wanted, 10.0, 0.0, 200.0);
            let mut sorted = places.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-6));
            prop_assert!(sorted.iter().all(|place| (-1e-6..=200.0 + 1e-6).contains(place)));
        }
    }
}
