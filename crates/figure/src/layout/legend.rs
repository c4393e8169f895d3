//! Names at lines: of series, and of the vertical lines through a panel.

use std::collections::BTreeMap;

use super::super::model::{FigureModel, Look, Panel, ReferenceLine, Series};
use super::super::scene::{Frame, Paint, Shape, Text};
use super::super::text;
use super::{Canvas, MARGIN, Places, Sizes, marks};

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

/// Height of a line of the legend, points per point of text.
const LEGEND_LINE: f64 = 1.35;

/// Most lines of a single name.
const LINES_MAX: usize = 4;

/// The only panel, if the names of its series stand at the ends of its lines; `None` where a legend is better.
pub(super) fn with_direct_names<'a>(model: &'a FigureModel, canvas: &Canvas) -> Option<&'a Panel> {
    let [panel] = model.panels.as_slice() else {
        return None;
    };
    let mut series = panel.series.iter();
    // All lines end near the right edge.
    let ends_right = |series: &Series| {
        let end = series.points.last();
        let share = end.and_then(|point| panel.x.scale.share(point.x));
        share.is_some_and(|share| share > 0.9)
    };
    let suits = series.all(|own| !own.name.is_empty() && ends_right(own))
        && matches!(panel.look, Look::Line | Look::Curve)
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
pub(super) fn draw_direct(canvas: &mut Canvas, places: &Places<'_>) {
    let (size, frame) = (canvas.sizes.tick, places.frame);
    let half = size * text::CAP_HEIGHT / 2.0;
    let ends = places.panel.series.iter().map(|series| {
        let end = series.points.last().and_then(|point| places.y(point.y));
        end.unwrap_or(frame.bottom)
    });
    let heights = spread(
        &ends.collect::<Vec<f64>>(),
        size * text::LINE_HEIGHT,
        frame.top + half,
        frame.bottom - half,
    );
    let left = frame.right + DIRECT_GAP;
    for (series, height) in places.panel.series.iter().zip(heights) {
        let sample = Some((places.panel.look, Some(series.place)));
        let entry = (series.name.clone(), sample);
        let text = (left + sample_width(size), Paint::Series);
        draw_entry(canvas, &entry, (left, height + half), &[&series.name], text);
    }
}

/// An entry of the legend: its text, and look and series of the sample before it. The sample of a hollow mark has no series, and a
/// heading has no sample.
type Entry = (String, Option<(Look, Option<usize>)>);

/// Draws the legend from `top` on; returns its end. Omits names that are at the lines.
pub(super) fn draw(model: &FigureModel, direct: bool, canvas: &mut Canvas, top: f64) -> f64 {
    let mut entries: Vec<Entry> = Vec::new();
    let look = model.panels.first().map_or(Look::Line, |panel| panel.look);
    let mut series: BTreeMap<usize, &str> = BTreeMap::new();
    for one in model.panels.iter().flat_map(|panel| &panel.series) {
        series.entry(one.place).or_insert(&one.name);
    }
    series.retain(|_, name| !name.is_empty());
    if !direct && !series.is_empty() {
        if !model.legend.is_empty() {
            entries.push((format!("{}:", model.legend), None));
        }
        let named = series.into_iter();
        entries.extend(named.map(|(place, name)| (name.to_owned(), Some((look, Some(place))))));
    }
    if !model.hollow.is_empty() {
        let look = match look {
            Look::Bars(_) => look,
            _ => Look::Dots(1),
        };
        entries.push((model.hollow.clone(), Some((look, None))));
    }
    if entries.is_empty() {
        return top;
    }
    let size = canvas.sizes.tick;
    let line = size * LEGEND_LINE;
    let room = canvas.width - 2.0 * MARGIN;
    let (mut x, mut y) = (MARGIN, top + line);
    for entry in &entries {
        let (name, sample) = entry;
        let (sample, paint) = match sample {
            Some(_) => (size * (SAMPLE + 0.5), Paint::Ink),
            None => (0.0, Paint::Muted),
        };
        let room = room - sample;
        let mut lines = text::wrapped(name, size, room);
        if lines.len() > LINES_MAX {
            // Such as a path.
            lines = vec![text::fitted_name(name, size, room)];
        }
        let widths = lines.iter().map(|line| text::width(line, size));
        let width = sample + widths.fold(0.0, f64::max);
        if x > MARGIN && x + width > canvas.width - MARGIN {
            (x, y) = (MARGIN, y + line);
        }
        let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
        draw_entry(canvas, entry, (x, y), &texts, (x + sample, paint));
        x += width + size * ENTRY_GAP;
        y += line * lines.len().saturating_sub(1) as f64;
    }
    y + size * 0.6
}

/// Draws an entry from the baseline of its first line on, the lines of its text from `left` on.
fn draw_entry(
    canvas: &mut Canvas,
    (name, of): &Entry,
    (x, baseline): (f64, f64),
    lines: &[&str],
    (left, paint): (f64, Paint),
) {
    let size = canvas.sizes.tick;
    if let Some((look, series)) = of {
        let data = series.map(|_| ("series", name.clone()));
        canvas.group("legend", *series, data.into_iter().collect(), "");
        let middle = baseline - size * text::CAP_HEIGHT / 2.0;
        sample(canvas, *look, *series, (x, x + size * SAMPLE), middle);
    }
    for (number, text) in lines.iter().enumerate() {
        let at = (left, baseline + size * LEGEND_LINE * number as f64);
        canvas.write(Text::at(at, size, *text).painted(paint));
    }
    if of.is_some() {
        canvas.close();
    }
}

/// A mark as the series has it; a hollow one for none.
fn sample(canvas: &mut Canvas, look: Look, series: Option<usize>, (from, to): (f64, f64), y: f64) {
    let (centre, place) = (f64::midpoint(from, to), series.unwrap_or(0));
    if let Look::Bars(_) = look {
        let size = canvas.sizes.tick;
        let (width, height) = (size * 0.6, size * 0.4);
        let frame = Frame::new((centre - width, y - height), (centre + width, y + height));
        marks::filled(canvas, frame, place, series.is_none());
        return;
    }
    if matches!(look, Look::Line | Look::Curve) {
        marks::line(canvas, "", &[(from, y), (to, y)], place);
    }
    if look != Look::Curve {
        let at = (centre, y);
        canvas.shape(Shape::marker(at, marks::RADIUS, place, series.is_none()));
    }
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

/// The lines up a panel within its axis, in ascending x.
fn uprights(panel: &Panel) -> Vec<&ReferenceLine> {
    let all = panel.uprights.iter();
    let mut all: Vec<&ReferenceLine> = all.filter(|own| panel.x.scale.holds(own.at)).collect();
    all.sort_by(|a, b| a.at.total_cmp(&b.at));
    all
}

fn is_named(size: f64, uprights: &[&ReferenceLine], width: f64) -> bool {
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
    let names = uprights.iter().map(|own| text::width(&own.label, size));
    names.fold(0.0, f64::max).min(size * NAME_MAX) + LEADER + 2.0
}

/// Draws the lines up a panel, and their names where the panel has room above.
pub(super) fn draw_uprights(canvas: &mut Canvas, places: &Places<'_>, named: bool) {
    let uprights = uprights(places.panel);
    let (size, frame) = (canvas.sizes.small, places.frame);
    let named = named && is_named(size, &uprights, frame.width());
    let across = uprights.iter().filter_map(|own| places.x(own.at));
    let across: Vec<f64> = across.collect();
    let half = size * text::LINE_HEIGHT / 2.0;
    let names = spread(&across, 2.0 * half, frame.left + half, frame.right - half);
    for ((upright, x), name) in uprights.iter().zip(&across).zip(names) {
        let (class, series, paint, end) = match upright.bend {
            Some((series, y)) => ("bend", Some(series), Paint::Series, places.y(y)),
            None => ("threshold", None, Paint::Muted, None),
        };
        let end = end.unwrap_or(frame.bottom);
        canvas.group(class, series, Vec::new(), &upright.label);
        canvas.line("", &[(*x, frame.top), (*x, end)], (0.5, "1.5 1.5"), paint);
        if named {
            let top = frame.top - LEADER;
            canvas.line("", &[(*x, frame.top), (name, top)], (0.5, ""), paint);
            let at = (name + size * text::CAP_HEIGHT / 2.0, top - 1.0);
            let label = text::fitted(&upright.label, size, size * NAME_MAX);
            canvas.write(Text {
                upwards: true,
                ..Text::at(at, size, label).painted(paint)
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
