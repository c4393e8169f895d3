//! A figure as plain data: panels, axes, series of points, reference lines. It knows values, not places.

use super::scale::Scale;

/// Labels of the ticks of an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Ticks {
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
    /// Quantiles, the axis being 1 / (1 - p): 50, 90, 99, 99.9.
    Quantile,
    /// Names at given places.
    Named(Vec<(f64, String)>),
    /// Levels of a factor if they fit, otherwise round values.
    Levels(Vec<f64>),
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Quantity with its unit.
    pub label: String,
    /// Mapping of values to positions.
    pub scale: Scale,
    /// Labels of the ticks.
    pub ticks: Ticks,
}

impl Axis {
    /// An axis with its label.
    pub fn new(label: impl Into<String>, scale: Scale, ticks: Ticks) -> Self {
        Self {
            label: label.into(),
            scale,
            ticks,
        }
    }
}

/// Origin of a mark, shown when a pointer is over it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Origin {
    /// Number of the cell in its run file.
    pub cell: Option<i64>,
    /// Measured trials.
    pub n: Option<usize>,
    /// Origin of the bytes, or verdict of a comparison.
    pub verdict: String,
    /// Value on the x axis in words.
    pub x: String,
    /// The whole mark in words.
    pub text: String,
}

/// One mark of a series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mark {
    /// Place along x.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it is drawn hollow, as the model's `hollow` explains.
    pub hollow: bool,
    /// Quartiles; if all marks of a line have them, they are drawn as a band around it.
    pub quartiles: Option<(f64, f64)>,
    /// Single trials, drawn under it.
    pub trials: Vec<f64>,
    /// Whether it is a lower bound.
    pub is_bound: bool,
    /// Run and cell that it comes from.
    pub origin: Origin,
}

impl Mark {
    /// Values that are drawn for the mark: its own, the ends of its interval, its quartiles and its trials.
    pub fn reach(&self) -> impl Iterator<Item = f64> {
        let ends = self.interval.into_iter().chain(self.quartiles);
        let ends = ends.flat_map(<[f64; 2]>::from).chain([self.y]);
        ends.chain(self.trials.iter().copied())
    }
}

/// Look of the points of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variant says what its two numbers are")]
pub enum Look {
    /// A line with a marker at each point.
    Line,
    /// A line through many points, of which those that say something of themselves have a marker.
    Curve,
    /// Markers alone.
    Dots,
    /// Markers alone, number `place` of the `of` side by side.
    Beside { place: usize, of: usize },
    /// Bars from zero, number `place` of the `of` side by side.
    Bars { place: usize, of: usize },
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the series in a legend.
    pub name: String,
    /// Place in the order of all series of the figure: decides colour, dash and marker.
    pub place: usize,
    /// Look of the points.
    pub look: Look,
    /// Marks in the order of x.
    pub points: Vec<Mark>,
    /// Places at which the curve bends.
    pub bends: Vec<Bend>,
}

impl Series {
    /// A series without bends.
    pub fn of_points(name: String, place: usize, look: Look, points: Vec<Mark>) -> Self {
        Self {
            name,
            place,
            look,
            points,
            bends: Vec::new(),
        }
    }
}

/// A bend of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Bend {
    /// Place along x.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Label of the mark: `bend at 34.2 KiB`.
    pub name: String,
}

/// Direction of a reference line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// Across the panel at a value of y.
    X,
    /// Up the panel at a value of x.
    Y,
}

/// A line that data is held against.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceLine {
    /// Direction of the line.
    pub along: Along,
    /// Position of the line on the other axis.
    pub at: f64,
    /// Text of the line; empty for none.
    pub label: String,
}

/// A frame with its axes and what is drawn in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Written above it.
    pub title: String,
    /// Horizontal axis, at the bottom.
    pub x: Axis,
    /// Vertical axis, at the side.
    pub y: Axis,
    /// Series of the panel.
    pub series: Vec<Series>,
    /// Reference lines for the data.
    pub lines: Vec<ReferenceLine>,
    /// Lower and upper edge of a band that data is held against: a margin.
    pub band: Option<(f64, f64)>,
    /// Whether the points of its lines stand at values of x that were measured, and not at levels that they share.
    pub free_x: bool,
    /// Height in proportion to the other rows.
    pub weight: f64,
}

impl Panel {
    /// A panel with nothing in it yet.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self {
            title: String::new(),
            x,
            y,
            series: Vec::new(),
            lines: Vec::new(),
            band: None,
            free_x: false,
            weight: 1.0,
        }
    }
}

/// The marks of all series.
pub fn marks<'a>(series: impl IntoIterator<Item = &'a Series>) -> impl Iterator<Item = &'a Mark> {
    series.into_iter().flat_map(|series| &series.points)
}

/// The marks of all panels.
pub fn all_marks(panels: &[Panel]) -> impl Iterator<Item = &Mark> {
    marks(panels.iter().flat_map(|panel| &panel.series))
}

/// Arrangement of several panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrangement {
    /// Facets of one thing: the same axes, written at the edges only.
    #[default]
    Facets,
    /// Panels one above the other, sharing the x axis.
    Stack,
}

/// A whole figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FigureModel {
    /// Written above all; may be empty.
    pub title: String,
    /// Description for readers who cannot see the figure.
    pub description: String,
    /// Heading of the legend, the factor of the series; may be empty.
    pub legend: String,
    /// Unit of the values, for whoever hovers over a mark.
    pub unit: String,
    /// Panels in the order of reading.
    pub panels: Vec<Panel>,
    /// Arrangement of the panels.
    pub arrangement: Arrangement,
    /// Meaning of a hollow mark; empty if there is none.
    pub hollow: String,
    /// Written below all, small: what marks and intervals are.
    pub note: String,
}

impl FigureModel {
    /// Facets without words.
    pub fn of(panels: Vec<Panel>) -> Self {
        Self {
            panels,
            ..Self::default()
        }
    }
}
