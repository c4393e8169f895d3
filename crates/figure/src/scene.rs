//! A figure as positioned items with their colours, dashes, hatching and markers, made by layout and drawn by the
//! writers.

use super::text;

/// A colour role.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Paint {
    /// Text, axes.
    Ink,
    /// Secondary items.
    Muted,
    /// The grid.
    Grid,
    /// The paper.
    Paper,
    /// The colour of the series around it.
    Series,
}

impl Paint {
    /// The colour, written `#rrggbb`, within a series of this colour.
    pub(super) fn colour(self, series: &str) -> &str {
        match self {
            Self::Ink => INK[0],
            Self::Muted => MUTED[0],
            Self::Grid => GRID[0],
            Self::Paper => PAPER[0],
            Self::Series => series,
        }
    }
}

/// Horizontal alignment of a text relative to its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text. The position is on its baseline.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    /// Rotated to read upwards.
    pub(super) upwards: bool,
    pub(super) paint: Paint,
    pub(super) text: String,
}

impl Text {
    /// A text in ink that starts at a position.
    pub(super) fn at((x, y): (f64, f64), size: f64, text: impl Into<String>) -> Self {
        Self {
            x,
            y,
            size,
            anchor: Anchor::Start,
            upwards: false,
            paint: Paint::Ink,
            text: text.into(),
        }
    }

    /// The text in another colour.
    pub(super) fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    /// Length of the text in points, by the metrics of the font.
    pub(super) fn length(&self) -> f64 {
        text::width(&self.text, self.size)
    }

    /// Start of its baseline.
    pub(super) fn start(&self) -> (f64, f64) {
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => self.length() / 2.0,
            Anchor::End => self.length(),
        };
        match self.upwards {
            true => (self.x, self.y + before),
            false => (self.x - before, self.y),
        }
    }

    /// The rectangle that it occupies, by the metrics of the font.
    pub(super) fn frame(&self) -> Frame {
        let ((x, y), length) = (self.start(), self.length());
        let (up, down) = (self.size * text::CAP_HEIGHT, self.size * text::DESCENT);
        match self.upwards {
            true => Frame::new((x - up, y - length), (x + down, y)),
            false => Frame::new((x, y - up), (x + length, y + down)),
        }
    }
}

/// Part of an outline; points are from the upper left corner.
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
    pub(super) paint: Paint,
    pub(super) width: f64,
    /// Lengths of dashes and gaps alternately, points; empty for a solid line.
    pub(super) dash: &'static str,
    /// Whether lines end in half a circle, so that a line without length is a dot.
    pub(super) is_round: bool,
}

/// An outline, filled, drawn, or both.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) class: &'static str,
    pub(super) outline: Vec<Segment>,
    pub(super) fill: Option<Paint>,
    pub(super) stroke: Option<Stroke>,
    /// 0 to 1.
    pub(super) opacity: f64,
}

impl Shape {
    /// A filled area.
    pub(super) fn filled(class: &'static str, outline: Vec<Segment>, paint: Paint) -> Self {
        Self {
            class,
            outline,
            fill: Some(paint),
            stroke: None,
            opacity: 1.0,
        }
    }

    /// A solid line along an outline.
    pub(super) fn drawn(
        class: &'static str,
        outline: Vec<Segment>,
        width: f64,
        paint: Paint,
    ) -> Self {
        Self {
            fill: None,
            ..Self::filled(class, outline, paint).outlined(width, paint)
        }
    }

    /// The shape with a solid line along its outline.
    pub(super) fn outlined(self, width: f64, paint: Paint) -> Self {
        let stroke = Stroke {
            paint,
            width,
            dash: "",
            is_round: false,
        };
        Self {
            stroke: Some(stroke),
            ..self
        }
    }

    /// Small equal dots in the colour of the series.
    pub(super) fn dots(points: &[(f64, f64)], diameter: f64) -> Self {
        let dots = points
            .iter()
            .flat_map(|at| [Segment::Move(*at), Segment::Line(*at)]);
        let mut shape = Self::drawn("trials", dots.collect(), diameter, Paint::Series);
        shape.stroke = shape.stroke.map(|stroke| Stroke {
            is_round: true,
            ..stroke
        });
        shape.opacity = DOTS_OPACITY;
        shape
    }

    /// Lines within a rectangle, `apart` points from each other along its edges.
    pub(super) fn hatch(frame: Frame, hatch: Hatch, apart: f64, width: f64, paint: Paint) -> Self {
        let lines = lines(frame, hatch, apart).into_iter();
        let outline = lines.flat_map(|line| polyline(&line)).collect();
        Self::drawn("hatch", outline, width, paint)
    }

    /// The marker of a point of a series.
    pub(super) fn marker((x, y): (f64, f64), radius: f64, series: usize, hollow: bool) -> Self {
        let place = |(dx, dy): &(f64, f64)| (x + dx * radius, y + dy * radius);
        let outline = match marker(series) {
            CIRCLE => circle((x, y), radius),
            corners => polygon(&corners.iter().map(place).collect::<Vec<_>>()),
        };
        match hollow {
            true => {
                Self::filled("point hollow", outline, Paint::Paper).outlined(OUTLINE, Paint::Series)
            }
            false => Self::filled("point", outline, Paint::Series),
        }
    }
}

/// An item to draw.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// Begins a group: its class, the index of the series whose colour it has, attributes, and the description of a mark.
    Open {
        class: &'static str,
        series: Option<usize>,
        data: Vec<(&'static str, String)>,
        words: String,
    },
    /// Ends the group.
    Close,
    Shape(Shape),
    Text(Text),
}

/// All items of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scene {
    /// Width of the figure, points.
    pub(super) width: f64,
    /// Height of the figure, points.
    pub(super) height: f64,
    /// In drawing order, the paper first.
    pub(super) items: Vec<Item>,
}

impl Scene {
    /// A scene of items on paper.
    pub(super) fn new((width, height): (f64, f64), mut items: Vec<Item>) -> Self {
        let paper = Frame::new((0.0, 0.0), (width, height));
        items.insert(
            0,
            Item::Shape(Shape::filled("", paper.outline(), Paint::Paper)),
        );
        Self {
            width,
            height,
            items,
        }
    }

    /// Its shapes and texts, each with the colour of the series around it, or of ink.
    pub(super) fn drawn(&self) -> impl Iterator<Item = (&Item, &'static str)> {
        let mut series: Vec<Option<usize>> = Vec::new();
        self.items.iter().filter_map(move |item| {
            match item {
                Item::Open { series: own, .. } => series.push(*own),
                Item::Close => _ = series.pop(),
                Item::Shape(_) | Item::Text(_) => {
                    let around = series.iter().rev().find_map(|series| *series);
                    return Some((item, around.map_or(INK[0], |place| SERIES[colour(place)])));
                }
            }
            None
        })
    }
}

/// A rectangle: left, top, right, bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    /// A rectangle from its upper left to its lower right corner.
    pub(crate) fn new((left, top): (f64, f64), (right, bottom): (f64, f64)) -> Self {
        Self {
            left,
            top,
            right,
            bottom,
        }
    }

    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Its edges.
    pub(super) fn outline(&self) -> Vec<Segment> {
        polygon(&[
            (self.left, self.top),
            (self.right, self.top),
            (self.right, self.bottom),
            (self.left, self.bottom),
        ])
    }

    /// Whether a point is within it.
    pub(crate) fn holds(&self, (x, y): (f64, f64)) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    /// Whether two frames overlap by more than their edges.
    pub(crate) fn overlaps(&self, other: &Frame) -> bool {
        const TOUCH: f64 = 0.01;
        self.left < other.right - TOUCH
            && other.left < self.right - TOUCH
            && self.top < other.bottom - TOUCH
            && other.top < self.bottom - TOUCH
    }
}

/// Width of the outline of a marker, points.
pub(crate) const OUTLINE: f64 = 0.8;
/// Opacity of a dot, 0 to 1.
const DOTS_OPACITY: f64 = 0.45;

/// Lines from each point to the next.
pub(super) fn polyline(points: &[(f64, f64)]) -> Vec<Segment> {
    let mut outline: Vec<Segment> = points.iter().copied().map(Segment::Line).collect();
    if let Some(first) = outline.first_mut() {
        *first = Segment::Move(points[0]);
    }
    outline
}

/// A closed outline with these corners.
pub(super) fn polygon(corners: &[(f64, f64)]) -> Vec<Segment> {
    let mut outline = polyline(corners);
    outline.push(Segment::Close);
    outline
}

/// Distance of the control points of a quarter of a circle from its ends, in radii: the curve is within 0.03 % of the
/// circle.
const QUARTER: f64 = 0.552_284_75;

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

/// Lines in a filled rectangle: whether there are some upwards, and some downwards, to the right.
pub(crate) type Hatch = [bool; 2];

/// The ends of the lines within a rectangle, `apart` points from each other along its edges.
fn lines(frame: Frame, [rising, falling]: Hatch, apart: f64) -> Vec<[(f64, f64); 2]> {
    // Lines along which the sum of both coordinates, or their difference, is constant.
    let mut lines = Vec::new();
    if rising {
        let sums = multiples(frame.left + frame.top, frame.right + frame.bottom, apart);
        lines.extend(sums.map(|sum| {
            let left = frame.left.max(sum - frame.bottom);
            let right = frame.right.min(sum - frame.top);
            [(left, sum - left), (right, sum - right)]
        }));
    }
    if falling {
        let differences = multiples(frame.left - frame.bottom, frame.right - frame.top, apart);
        lines.extend(differences.map(|difference| {
            let left = frame.left.max(difference + frame.top);
            let right = frame.right.min(difference + frame.bottom);
            [(left, left - difference), (right, right - difference)]
        }));
    }
    lines
}

/// The multiples of a step strictly between two values.
fn multiples(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let first = (low / step).floor() + 1.0;
    let count = ((high / step).ceil() - first).max(0.0) as usize;
    (0..count).map(move |number| (first + number as f64) * step)
}

/// Colours of the series in order; they repeat with other dashes.
pub(crate) const SERIES: [&str; 7] = [
    "#0072b2", "#ba5100", "#007a5e", "#a8508b", "#936500", "#2f74a3", "#4d4d4d",
];

/// The colours for dark paper.
pub(crate) const SERIES_DARK: [&str; 7] = [
    "#56b4e9", "#f0803c", "#2fbf96", "#d88fbf", "#e6b03c", "#8cc8ee", "#b8b8b8",
];

/// Text and axes, on light and on dark paper.
pub(crate) const INK: [&str; 2] = ["#222222", "#e6e6e6"];

/// Secondary text and marks, on light and on dark paper.
pub(crate) const MUTED: [&str; 2] = ["#5f5f5f", "#a8a8a8"];

/// Lines of the grid, on light and on dark paper.
pub(crate) const GRID: [&str; 2] = ["#e4e4e4", "#34373c"];

/// Light and dark paper.
pub(crate) const PAPER: [&str; 2] = ["#ffffff", "#15171a"];

/// Dashes of the lines, in points. Together with the markers they distinguish the first twelve series even in grey.
const DASHES: [&str; 4] = ["", "4 1.6", "1.2 1.6", "6 1.6 1.2 1.6"];

/// Shape of a point: its corners around its centre, in units of its radius. Each encloses an area, so that it can be hollow. The
/// areas are about equal, so that no series looks more important than another.
type Marker = &'static [(f64, f64)];

/// The shape without corners.
const CIRCLE: Marker = &[];

const MARKERS: [Marker; 7] = {
    const SQUARE: [(f64, f64); 4] = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)];
    const TRIANGLE: [(f64, f64); 3] = [(0.0, -1.25), (1.15, 0.8), (-1.15, 0.8)];
    const TRIANGLE_DOWN: [(f64, f64); 3] = [(0.0, 1.25), (1.15, -0.8), (-1.15, -0.8)];
    const DIAMOND: [(f64, f64); 4] = [(0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)];
    const PLUS: [(f64, f64); 12] = [
        (-0.4, -1.2),
        (0.4, -1.2),
        (0.4, -0.4),
        (1.2, -0.4),
        (1.2, 0.4),
        (0.4, 0.4),
        (0.4, 1.2),
        (-0.4, 1.2),
        (-0.4, 0.4),
        (-1.2, 0.4),
        (-1.2, -0.4),
        (-0.4, -0.4),
    ];
    // The plus, turned by 45 degrees.
    const CROSS: [(f64, f64); 12] = [
        (0.57, -1.13),
        (1.13, -0.57),
        (0.57, 0.0),
        (1.13, 0.57),
        (0.57, 1.13),
        (0.0, 0.57),
        (-0.57, 1.13),
        (-1.13, 0.57),
        (-0.57, 0.0),
        (-1.13, -0.57),
        (-0.57, -1.13),
        (0.0, -0.57),
    ];
    [
        CIRCLE, &SQUARE, &TRIANGLE, &DIAMOND, &TRIANGLE_DOWN, &CROSS, &PLUS,
    ]
};

/// Index of the colour of a series.
pub(crate) fn colour(place: usize) -> usize {
    place % SERIES.len()
}

/// Dash of the line of a series; empty for a solid one. Consecutive series differ, so that their lines are distinguishable
/// without colour.
pub(crate) fn dash(place: usize) -> &'static str {
    DASHES[place % DASHES.len()]
}

/// Hatching of the bars of a series. Consecutive series differ, and so do series of the same or of a similar
/// colour.
pub(crate) fn hatch(place: usize) -> Hatch {
    [place & 1 != 0, place & 2 != 0]
}

/// Marker of a series: shifted by one in each round through the colours, so that points without a line differ.
fn marker(place: usize) -> Marker {
    MARKERS[(place + place / SERIES.len()) % MARKERS.len()]
}

/// Red, green and blue of a colour written `#rrggbb`.
pub(crate) fn channels(colour: &str) -> [u8; 3] {
    [1, 3, 5].map(|at| {
        let hex = colour.get(at..at + 2);
        hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of a colour written `#rrggbb`, 0 to 1 (WCAG 2.2, "relative luminance").
    fn luminance(colour: &str) -> f64 {
        let [red, green, blue] = channels(colour).map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Contrast of two luminances, 1 to 21 (WCAG 2.2, "contrast ratio").
    fn contrast(a: f64, b: f64) -> f64 {
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn lines_begin_and_end_at_the_edges() {
        let frame = Frame::new((10.0, 3.0), (31.0, 60.0));
        let on_edge = |(x, y): (f64, f64)| {
            let within = (10.0..=31.0).contains(&x) && (3.0..=60.0).contains(&y);
            let edge = [x - 10.0, x - 31.0, y - 3.0, y - 60.0];
            within && edge.iter().any(|distance| distance.abs() < 1e-9)
        };
        for (hatch, slopes, count) in [
            ([false, false], &[][..], 0),
            ([true, false], &[-1.0], 19),
            ([false, true], &[1.0], 19),
            ([true, true], &[-1.0, 1.0], 38),
        ] {
            let lines = lines(frame, hatch, 4.0);
            assert_eq!(lines.len(), count, "{hatch:?}");
            for [from, to] in lines {
                assert!(on_edge(from) && on_edge(to), "{from:?} to {to:?}");
                let slope = (to.1 - from.1) / (to.0 - from.0);
                assert!(slopes.contains(&slope.round()), "{hatch:?}: {slope}");
            }
        }
    }

    #[test]
    fn every_colour_stands_out_from_its_paper() {
        for (theme, series) in [SERIES, SERIES_DARK].into_iter().enumerate() {
            for colour in series.into_iter().chain([INK[theme], MUTED[theme]]) {
                let paper = PAPER[theme];
                let contrast = contrast(luminance(colour), luminance(paper));
                assert!(contrast >= 4.5, "{colour} on {paper}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn twelve_series_differ_without_colour() {
        let mut looks: Vec<(&str, Marker)> = (0..12).map(|i| (dash(i), marker(i))).collect();
        looks.dedup();
        assert_eq!(looks.len(), 12);
        for i in 0..12 {
            assert!(!looks[..i].contains(&looks[i]), "{i}");
            assert!(
                i == 0 || dash(i) != dash(i - 1),
                "lines {i} and the one before"
            );
        }
    }

    #[test]
    fn the_bars_of_twenty_eight_series_differ() {
        let looks: Vec<(usize, Hatch)> = (0..28).map(|i| (colour(i), hatch(i))).collect();
        for i in 1..28 {
            assert!(!looks[..i].contains(&looks[i]), "{i}");
            assert!(hatch(i) != hatch(i - 1), "bars {i} and the one before");
        }
        // The two blues.
        assert_ne!(hatch(0), hatch(5));
    }
}
