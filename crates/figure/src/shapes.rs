//! A scene as coloured outlines and lines of text, for the writers of PNG and PDF.

use super::scene;
use super::scene::corners;
use super::scene::{Frame, Item, Paint, Scene, Text};
use super::svg::{DOTS_OPACITY, OUTLINE, painted};

/// Distance of the control points of a quarter of a circle from its ends, in radii: the curve is within 0.03 % of the
/// circle.
const QUARTER: f64 = 0.552_284_75;

/// A colour with its opacity, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Colour {
    pub(super) rgb: [u8; 3],
    pub(super) opacity: f64,
}

/// Part of an outline; coordinates are in points from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Segment {
    Move((f64, f64)),
    Line((f64, f64)),
    Curve([(f64, f64); 3]),
    Close,
}

/// A line along an outline, with round joins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stroke {
    pub(super) width: f64,
    /// Lengths of dashes and gaps alternately, points; empty for a solid line.
    pub(super) dashes: Vec<f64>,
    pub(super) colour: Colour,
}

/// Something in its colours.
#[derive(Debug)]
pub(super) enum Drawn<'a> {
    Shape {
        outline: Vec<Segment>,
        fill: Option<Colour>,
        stroke: Option<Stroke>,
    },
    Text(&'a Text, Colour),
}

/// All shapes of a scene in drawing order, beginning with the paper.
pub(super) fn drawn(scene: &Scene) -> Vec<Drawn<'_>> {
    let paper = Frame {
        left: 0.0,
        top: 0.0,
        right: scene.width,
        bottom: scene.height,
    };
    let mut all = vec![Drawn::Shape {
        outline: rectangle(paper),
        fill: Some(solid(scene::PAPER)),
        stroke: None,
    }];
    let mut series: Vec<Option<usize>> = Vec::new();
    for item in &scene.items {
        // Items outside of series are drawn in ink.
        let around = series.iter().rev().find_map(|series| *series);
        let current = around.map_or(scene::INK, |place| scene::SERIES[scene::colour(place)]);
        match item {
            Item::Open { series: own, .. } => series.push(*own),
            Item::Close => _ = series.pop(),
            other => all.push(one(other, current)),
        }
    }
    all
}

/// An item that is drawn, within a series of this colour.
fn one<'a>(item: &'a Item, current: &str) -> Drawn<'a> {
    let colour = |paint: &Paint| match *paint {
        Paint::Series => solid(current),
        other => solid(painted(other).1),
    };
    let line = |width: f64, colour: Colour| Stroke {
        width,
        dashes: Vec::new(),
        colour,
    };
    let (outline, fill, stroke) = match item {
        Item::Text(text) => return Drawn::Text(text, colour(&text.paint)),
        Item::Path {
            points,
            width,
            dash,
            paint,
            ..
        } => {
            let dashes = dash.split_whitespace().filter_map(|n| n.parse().ok());
            let stroke = Stroke {
                dashes: dashes.collect(),
                ..line(*width, colour(paint))
            };
            (polyline(points), None, Some(stroke))
        }
        Item::Area {
            points,
            opacity,
            paint,
            ..
        } => {
            let fill = Colour {
                opacity: *opacity,
                ..colour(paint)
            };
            (polygon(points), Some(fill), None)
        }
        Item::Rectangle {
            frame,
            fill,
            outlined,
            ..
        } => {
            let stroke = outlined.then(|| line(OUTLINE, solid(current)));
            (rectangle(*frame), Some(colour(fill)), stroke)
        }
        Item::Hatch {
            frame,
            hatch,
            apart,
            width,
            paint,
        } => {
            let lines = scene::lines(*frame, *hatch, *apart);
            let outline = lines.iter().flat_map(|line| polyline(line));
            let stroke = line(*width, colour(paint));
            (outline.collect(), None, Some(stroke))
        }
        Item::Dots { points, diameter } => {
            let fill = Colour {
                opacity: DOTS_OPACITY,
                ..solid(current)
            };
            let dots = points.iter().flat_map(|at| circle(*at, diameter / 2.0));
            (dots.collect(), Some(fill), None)
        }
        Item::Mark {
            x,
            y,
            radius,
            marker,
            hollow,
        } => {
            let outline = match corners(*marker) {
                None => circle((*x, *y), *radius),
                Some(corners) => {
                    let place = |(dx, dy): &(f64, f64)| (x + dx * radius, y + dy * radius);
                    polygon(&corners.iter().map(place).collect::<Vec<_>>())
                }
            };
            match hollow {
                true => {
                    let stroke = line(OUTLINE, solid(current));
                    (outline, Some(solid(scene::PAPER)), Some(stroke))
                }
                false => (outline, Some(solid(current)), None),
            }
        }
        Item::Open { .. } | Item::Close => (Vec::new(), None, None),
    };
    Drawn::Shape {
        outline,
        fill,
        stroke,
    }
}

/// A colour written `#rrggbb`.
fn solid(colour: &str) -> Colour {
    Colour {
        rgb: scene::channels(colour),
        opacity: 1.0,
    }
}

fn polyline(points: &[(f64, f64)]) -> Vec<Segment> {
    let mut outline: Vec<Segment> = points.iter().copied().map(Segment::Line).collect();
    if let Some(first) = outline.first_mut() {
        *first = Segment::Move(points[0]);
    }
    outline
}

fn polygon(points: &[(f64, f64)]) -> Vec<Segment> {
    let mut outline = polyline(points);
    outline.push(Segment::Close);
    outline
}

fn rectangle(frame: Frame) -> Vec<Segment> {
    polygon(&[
        (frame.left, frame.top),
        (frame.right, frame.top),
        (frame.right, frame.bottom),
        (frame.left, frame.bottom),
    ])
}

fn circle((x, y): (f64, f64), radius: f64) -> Vec<Segment> {
    let at = |dx: f64, dy: f64| (x + dx * radius, y + dy * radius);
    let mut outline = vec![Segment::Move(at(1.0, 0.0))];
    let (mut dx, mut dy) = (1.0, 0.0);
    for _ in 0..4 {
        // A quarter further: (1, 0) becomes (0, 1).
        let (nx, ny) = (-dy, dx);
        outline.push(Segment::Curve([
            at(dx + QUARTER * nx, dy + QUARTER * ny),
            at(nx + QUARTER * dx, ny + QUARTER * dy),
            at(nx, ny),
        ]));
        (dx, dy) = (nx, ny);
    }
    outline.push(Segment::Close);
    outline
}
