//! A figure as plain data: panels, axes, series of points, reference lines. It knows values, not places.

use super::scale::Scale;

/// What ticks of an axis say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ticks {
    /// Numbers.
    Number,
    /// Binary sizes: 4K, 64K, 1M.
    Size,
    /// Times given in ns, each with its unit.
    Time,
    /// Times given in ns, in the unit of the axis label: `factor` ns.
    TimeIn {
        /// ns per unit.
        factor: f64,
    },
    /// Shares as percentages above or below 1: 0.95, 1, 1.05.
    Ratio,
    /// Quantiles, the axis being 1 / (1 - p): 50, 90, 99, 99.9.
    Quantile,
    /// Names at given places.
    Named(Vec<(f64, String)>),
    /// Levels of a factor if they fit, otherwise round values.
    Levels(Vec<f64>),
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// What it shows, with its unit.
    pub(super) label: String,
    pub(super) scale: Scale,
    pub(super) ticks: Ticks,
}

/// Where a mark comes from, for whoever hovers over it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Origin {
    /// Number of the cell in its run file.
    pub(super) cell: Option<i64>,
    /// Measured trials.
    pub(super) n: Option<usize>,
    /// Where the bytes came from, or what a comparison says.
    pub(super) verdict: String,
    /// Value on the x axis in words.
    pub(super) x: String,
    /// The whole mark in words.
    pub(super) text: String,
}

/// One mark of a series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Ends of its interval.
    pub(super) interval: Option<(f64, f64)>,
    /// Whether it is drawn hollow, as the model's `hollow` explains.
    pub(super) hollow: bool,
    pub(super) origin: Origin,
}

/// How the points of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// A line with a marker at each point.
    Line,
    /// A line through many points, of which those that say something of themselves have a marker.
    Curve,
    /// Markers alone.
    Dots,
    /// Markers alone, this number of this many side by side.
    Beside { place: usize, of: usize },
    /// Bars from zero, this number of this many side by side.
    Bars { place: usize, of: usize },
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    /// Its name in a legend.
    pub(super) name: String,
    /// Place in the order of all series of the figure: decides colour, dash and marker.
    pub(super) place: usize,
    pub(super) look: Look,
    pub(super) points: Vec<Mark>,
    /// Lower and upper edge of a band around the line: x, low, high.
    pub(super) band: Vec<(f64, f64, f64)>,
    /// Single trials behind the points: x, y.
    pub(super) trials: Vec<(f64, f64)>,
    /// Places at which the curve bends.
    pub(super) bends: Vec<Bend>,
    /// Points that are lower bounds: x, y.
    pub(super) bounds: Vec<(f64, f64)>,
}

impl Series {
    /// One of points alone: without band, single trials, bends and bounds.
    pub(super) fn of_points(name: String, place: usize, look: Look, points: Vec<Mark>) -> Self {
        Self {
            name,
            place,
            look,
            points,
            band: Vec::new(),
            trials: Vec::new(),
            bends: Vec::new(),
            bounds: Vec::new(),
        }
    }
}

/// A bend of a curve.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bend {
    pub(super) x: f64,
    pub(super) y: f64,
    /// What is said of it: `bend at 34.2 KiB`.
    pub(super) name: String,
}

/// Which way a reference line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// Across the panel at a value of y.
    X,
    /// Up the panel at a value of x.
    Y,
}

/// A line that data is held against.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReferenceLine {
    pub(super) along: Along,
    pub(super) at: f64,
    /// What it is; nothing is written where it is empty.
    pub(super) label: String,
}

/// A horizontal band that data is held against: a margin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Band {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// One coloured field of a heat map.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// Its ends on the two axes.
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    pub(super) value: f64,
    /// The value as it is written into the field.
    pub(super) label: String,
    pub(super) hollow: bool,
    pub(super) origin: Origin,
}

/// The ends of a step of an axis of names.
pub(super) fn step(number: usize) -> (f64, f64) {
    (number as f64 - 0.5, number as f64 + 0.5)
}

/// A frame with its axes and what is drawn in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Panel {
    /// Written above it.
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    pub(super) lines: Vec<ReferenceLine>,
    pub(super) bands: Vec<Band>,
    /// Fields of a heat map, with the scale of their colours.
    pub(super) heat: Option<(Vec<Field>, Scale)>,
    /// Whether the points of its lines stand at values of x that were measured, and not at levels that they share.
    pub(super) free_x: bool,
    /// Height in proportion to the other rows.
    pub(super) weight: f64,
}

impl Panel {
    /// A panel with nothing in it yet.
    pub(super) fn new(x: Axis, y: Axis) -> Self {
        Self {
            title: String::new(),
            x,
            y,
            series: Vec::new(),
            lines: Vec::new(),
            bands: Vec::new(),
            heat: None,
            free_x: false,
            weight: 1.0,
        }
    }
}

/// How panels stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// Facets of one thing: the same axes, written at the edges only.
    Facets,
    /// One above the other, sharing the x axis.
    Stack,
}

/// A whole figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FigureModel {
    /// Written above all; may be empty.
    pub(super) title: String,
    /// What it shows, for those who cannot see it.
    pub(super) description: String,
    /// What the series are levels of: heads the legend; may be empty.
    pub(super) legend: String,
    /// Unit of the values, for whoever hovers over a mark.
    pub(super) unit: String,
    pub(super) panels: Vec<Panel>,
    pub(super) arrangement: Arrangement,
    /// What the colours of a heat map stand for, with the unit; empty in other figures.
    pub(super) heat_label: String,
    /// What a hollow mark means; empty where there is none.
    pub(super) hollow: String,
    /// Written below all, small: what marks and intervals are.
    pub(super) note: String,
}

impl FigureModel {
    /// Facets without words.
    pub(super) fn of(panels: Vec<Panel>) -> Self {
        Self {
            title: String::new(),
            description: String::new(),
            legend: String::new(),
            unit: String::new(),
            panels,
            arrangement: Arrangement::Facets,
            heat_label: String::new(),
            hollow: String::new(),
            note: String::new(),
        }
    }
}
