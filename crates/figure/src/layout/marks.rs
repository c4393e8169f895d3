//! The data of a panel: bands, lines, points with intervals, bars, and reference lines.

use super::super::model::{Look, Mark, Series, Ticks};
use super::super::scene::{self, Anchor, Frame, Item, Paint, Shape, Text, polygon};
use super::super::text;
use super::{Canvas, Places};

/// Width of the lines of series, points.
const LINE_WIDTH: f64 = 1.1;
/// Radius of the markers, points.
pub(super) const RADIUS: f64 = 1.9;
/// Smallest radius, where there are many points.
const RADIUS_MIN: f64 = 0.8;
/// Width of the lines of intervals.
const INTERVAL_WIDTH: f64 = 0.8;
/// Number of marks above which their origins are omitted.
const MARKS_MAX: usize = 600;
/// Widest bar, points.
const BAR_WIDTH_MAX: f64 = 34.0;
/// Lines of a panel are shifted by this much, so that their intervals are distinguishable, points.
const ASIDE: f64 = 1.4;
/// Most shifted lines, and smallest distance of their points.
const ASIDE_LINES_MAX: usize = 5;
const ASIDE_SPACE_MIN: f64 = 12.0;
/// Distance of the lines that hatch bars, along an edge, and their width, points.
const HATCH_APART: f64 = 4.5;
const HATCH_WIDTH: f64 = 0.6;
/// Share of a step between two names that bars fill.
const BARS_SHARE: f64 = 0.76;
/// Length of an arrow, and of its head in each direction, points.
const ARROW: f64 = 8.0;
const HEAD: f64 = 1.8;
/// Width over which single trials are spread around their point, points.
const TRIALS_WIDTH: f64 = 4.0;

impl Places<'_> {
    /// The position of a value of a series, shifted where marks would overlap.
    fn of(&self, series: &Series, x: f64, y: f64) -> Option<(f64, f64)> {
        let aside = match self.panel.look {
            Look::Bars(of) | Look::Dots(of) => {
                let aside = (series.place % of) as f64 - (of as f64 - 1.0) / 2.0;
                aside * bar_width(self, of)
            }
            Look::Line => self.aside(series) * ASIDE,
            Look::Curve => 0.0,
        };
        Some((self.x(x)? + aside, self.y(y)?))
    }

    /// Number of steps by which a line is shifted from the middle.
    fn aside(&self, series: &Series) -> f64 {
        let all = &self.panel.series;
        let most = all.iter().map(|s| s.points.len()).max().unwrap_or(1);
        let tight = self.frame.width() / most as f64 <= ASIDE_SPACE_MIN;
        let mut points = all.iter().flat_map(|s| &s.points);
        let bare = points.all(|p| p.interval.is_none());
        // Places that were measured, and not levels that all lines share.
        let is_measured = self.panel.x.ticks == Ticks::Number;
        if tight || bare || all.len() > ASIDE_LINES_MAX || is_measured {
            return 0.0;
        }
        let mut places = all.iter().map(|own| own.place);
        let place = places.position(|own| own == series.place).unwrap_or(0);
        place as f64 - (all.len() as f64 - 1.0) / 2.0
    }
}

/// Draws the marks of all series.
pub(super) fn draw(canvas: &mut Canvas, places: &Places<'_>) {
    let Places { frame, panel, .. } = places;
    let edges = |(low, high)| Some((places.y(high)?, places.y(low)?));
    if let Some((top, bottom)) = panel.band.and_then(edges) {
        let shaded = Frame::new((frame.left, top), (frame.right, bottom));
        canvas.shape(Shape {
            opacity: 0.14,
            ..Shape::filled("shade", shaded.outline(), Paint::Muted)
        });
    }
    lines(canvas, places);
    let crowded = panel.series.iter().map(|s| s.points.len()).sum::<usize>() > MARKS_MAX;
    for series in &panel.series {
        draw_series(canvas, places, series, crowded);
    }
}

/// Possible positions of a label along a horizontal line: its ends first, then from right to left.
fn along(frame: Frame) -> Vec<(f64, Anchor)> {
    const BETWEEN: u32 = 8;
    let ends = [
        (frame.right - 1.0, Anchor::End),
        (frame.left + 1.0, Anchor::Start),
    ];
    let step = frame.width() / f64::from(BETWEEN);
    let between = (1..BETWEEN).map(|i| (frame.right - f64::from(i) * step, Anchor::Middle));
    ends.into_iter().chain(between).collect()
}

/// Reference lines with labels above or below, where they overlap the curves least. A line that has others close
/// on both sides is named next to the nearest label.
fn lines(canvas: &mut Canvas, places: &Places<'_>) {
    let (size, frame) = (canvas.sizes.small, places.frame);
    let room = frame.width() * 0.8;
    let drawn = traced(places);
    let lines = places.panel.lines.iter();
    let lines = lines.filter_map(|line| Some((places.y(line.at)?, &line.label)));
    let lines: Vec<(f64, &String)> = lines.collect();
    let mut named: Vec<(f64, Text)> = Vec::new();
    for (y, label) in &lines {
        let ends = [(frame.left, *y), (frame.right, *y)];
        canvas.line("reference", &ends, (0.7, "4 2"), Paint::Muted);
        if label.is_empty() {
            continue;
        }
        let words = text::fitted(label, size, room);
        let texts = along(frame).into_iter().flat_map(|(x, anchor)| {
            [y - size * 0.3, y + size * 0.95].map(|y| Text {
                anchor,
                ..Text::at((x, y), size, &*words).painted(Paint::Muted)
            })
        });
        let inside = Frame {
            top: frame.top - size * 0.4,
            ..frame
        };
        let free = |text: &Text| {
            let own = text.frame();
            inside.holds((own.left, own.top))
                && inside.holds((own.right, own.bottom))
                && !named.iter().any(|(_, other)| other.frame().overlaps(&own))
                && !lines.iter().any(|(y, _)| own.top < *y && *y < own.bottom)
        };
        // Takes the position with the least overlap; the first of equals.
        let covered = |text: &Text| {
            let own = text.frame();
            drawn.iter().filter(|at| own.holds(**at)).count()
        };
        if let Some(text) = texts.filter(free).min_by_key(covered) {
            named.push((*y, text));
            continue;
        }
        let distance = |other: &(f64, Text)| (other.0 - y).abs();
        let nearest = named
            .iter_mut()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some((_, beside)) = nearest {
            beside.text = text::fitted(&format!("{}, {label}", beside.text), size, room);
        }
    }
    let texts = named.into_iter().map(|(_, text)| Item::Text(text));
    canvas.items.extend(texts);
}

/// Points along everything drawn, closer together than the width of a letter.
fn traced(places: &Places<'_>) -> Vec<(f64, f64)> {
    const STEPS: u32 = 24;
    let mut all = Vec::new();
    for series in &places.panel.series {
        let points = series.points.iter().filter_map(|p| places.at(p.x, p.y));
        let points: Vec<(f64, f64)> = points.collect();
        all.extend(points.iter().copied());
        let pairs = points.windows(2).map(|pair| (pair[0], pair[1]));
        let intervals = series.points.iter().filter_map(|p| {
            let (low, high) = p.interval?;
            Some((places.at(p.x, low)?, places.at(p.x, high)?))
        });
        for (from, to) in pairs.chain(intervals) {
            all.extend((0..=STEPS).map(|step| {
                let part = f64::from(step) / f64::from(STEPS);
                let between = |from: f64, to: f64| from + (to - from) * part;
                (between(from.0, to.0), between(from.1, to.1))
            }));
        }
    }
    all
}

fn draw_series(canvas: &mut Canvas, places: &Places<'_>, series: &Series, crowded: bool) {
    let name = vec![("series", series.name.clone())];
    canvas.group("series", Some(series.place), name, "");
    let points = series.points.iter();
    let band = points.clone().filter_map(|p| Some((p.x, p.quartiles?)));
    let upper = band.clone().filter_map(|(x, (_, high))| places.at(x, high));
    let lower = band.rev().filter_map(|(x, (low, _))| places.at(x, low));
    let edge: Vec<(f64, f64)> = upper.chain(lower).collect();
    if edge.len() > 2 {
        canvas.shape(Shape {
            opacity: 0.16,
            ..Shape::filled("band", polygon(&edge), Paint::Series)
        });
    }
    // In the order of time, spread around the position of their cell.
    let mut trials = Vec::new();
    for point in points.clone() {
        let step = TRIALS_WIDTH / point.trials.len() as f64;
        for (i, y) in point.trials.iter().enumerate() {
            if let Some((x, y)) = places.of(series, point.x, *y) {
                trials.push((x + (i as f64 + 0.5) * step - TRIALS_WIDTH / 2.0, y));
            }
        }
    }
    if !trials.is_empty() {
        canvas.shape(Shape::dots(&trials, 1.2));
    }
    let place = |point: &Mark| places.of(series, point.x, point.y);
    let centres: Vec<(f64, f64)> = points.clone().filter_map(place).collect();
    let look = places.panel.look;
    if matches!(look, Look::Line | Look::Curve) {
        line(canvas, "line", &centres, series.place);
    }
    if crowded && matches!(look, Look::Line | Look::Dots(_)) {
        canvas.shape(Shape::dots(&centres, RADIUS_MIN * 2.0));
    } else {
        for point in points.clone().filter(|point| !point.text.is_empty()) {
            draw_mark(canvas, places, series, point);
        }
    }
    for (x, y) in points.filter(|point| point.is_bound).filter_map(place) {
        let top = y - ARROW;
        let head = [(x - HEAD, top + HEAD), (x, top), (x + HEAD, top + HEAD)];
        for points in [&[(x, y), (x, top)][..], &head] {
            canvas.line("interval", points, (INTERVAL_WIDTH, ""), Paint::Series);
        }
    }
    canvas.close();
}

/// A marker or a bar, with its interval and its description.
fn draw_mark(canvas: &mut Canvas, places: &Places<'_>, series: &Series, point: &Mark) {
    let Some((x, y)) = places.of(series, point.x, point.y) else {
        return;
    };
    let (low, high) = point.interval.unzip();
    let verdict = Some(point.verdict.clone()).filter(|verdict| !verdict.is_empty());
    let data = [
        ("cell", point.cell.map(|cell| cell.to_string())),
        ("x", Some(point.written_x.clone())),
        ("value", Some(point.y.to_string())),
        ("lo", low.map(|v| v.to_string())),
        ("hi", high.map(|v| v.to_string())),
        ("n", point.n.map(|n| n.to_string())),
        ("verdict", verdict),
    ];
    let known = data
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    canvas.group("mark", None, known.collect(), &point.text);
    let bottom = places.frame.bottom;
    let draw_interval = |canvas: &mut Canvas, paint: Paint| {
        let ends = point.interval.and_then(|(low, high)| {
            // Clip to the axis an end without a place, such as zero on a log axis.
            Some([(x, places.y(low).unwrap_or(bottom)), (x, places.y(high)?)])
        });
        if let Some(ends) = ends {
            canvas.line("interval", &ends, (INTERVAL_WIDTH, ""), paint);
        }
    };
    if let Look::Bars(of) = places.panel.look {
        let half = bar_width(places, of) * 0.46;
        let zero = places.y(0.0).unwrap_or(bottom);
        let bar = Frame::new((x - half, y.min(zero)), (x + half, y.max(zero)));
        filled(canvas, bar, series.place, point.hollow);
        draw_interval(canvas, Paint::Ink);
    } else {
        let radius = match places.panel.look {
            Look::Curve => RADIUS,
            // Smaller where points are closer than two of them.
            _ => {
                let apart = places.frame.width() / series.points.len() as f64;
                (apart * 0.32).clamp(RADIUS_MIN, RADIUS)
            }
        };
        draw_interval(canvas, Paint::Series);
        canvas.shape(Shape::marker((x, y), radius, series.place, point.hollow));
    }
    canvas.close();
}

fn bar_width(places: &Places<'_>, of: usize) -> f64 {
    let (low, high) = places.panel.x.scale.ends();
    let step = places.frame.width() / (high - low);
    (step * BARS_SHARE / of as f64).min(BAR_WIDTH_MAX)
}

/// A line of a series, in its colour and with its dashes.
pub(super) fn line(canvas: &mut Canvas, class: &'static str, points: &[(f64, f64)], series: usize) {
    let dash = scene::dash(series);
    canvas.line(class, points, (LINE_WIDTH, dash), Paint::Series);
}

/// A bar of a series, of its colour and with its hatching; hollow where the device did not serve it.
pub(super) fn filled(canvas: &mut Canvas, frame: Frame, series: usize, hollow: bool) {
    let (fill, paint) = match hollow {
        true => (Paint::Paper, Paint::Series),
        false => (Paint::Series, Paint::Paper),
    };
    let bar = Shape::filled("point bar", frame.outline(), fill);
    canvas.shape(bar.outlined(scene::OUTLINE, Paint::Series));
    let lines = Shape::hatch(frame, scene::hatch(series), HATCH_APART, HATCH_WIDTH, paint);
    if !lines.outline.is_empty() {
        canvas.shape(lines);
    }
}
