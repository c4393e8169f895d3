//! A figure as plain data: panels, axes, series of points, reference lines. It knows values, not places.

use std::collections::BTreeMap;

use iolab_analysis::analysis::Response;

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
    /// Number of the cell in its run file.
    pub cell: Option<i64>,
    /// Measured trials.
    pub n: Option<usize>,
    /// Origin of the bytes, or verdict of a comparison.
    pub verdict: String,
    /// Value on the x axis in words.
    pub written_x: String,
    /// The whole mark in words, shown when a pointer is over it.
    pub text: String,
}

impl Mark {
    /// Values that are drawn for the mark: its own, the ends of its interval, its quartiles and its trials.
    pub fn reach(&self) -> impl Iterator<Item = f64> {
        let ends = self.interval.into_iter().chain(self.quartiles);
        let ends = ends.flat_map(<[f64; 2]>::from).chain([self.y]);
        ends.chain(self.trials.iter().copied())
    }
}

/// Look of the points of all series of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A line with a marker at each point.
    Line,
    /// A line through many points, of which those that say something of themselves have a marker.
    Curve,
    /// Markers alone, with this number of series side by side.
    Dots(usize),
    /// Bars from zero, with this number of series side by side.
    Bars(usize),
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the series in a legend.
    pub name: String,
    /// Place in the order of all series of the figure: decides colour, dash and marker.
    pub place: usize,
    /// Marks in the order of x.
    pub points: Vec<Mark>,
}

/// A line that data is held against, or at which a curve bends.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReferenceLine {
    /// Position of the line on the axis that it crosses.
    pub at: f64,
    /// Text of the line; empty for none.
    pub label: String,
    /// Place of the series that bends there, and its value at the bend.
    pub bend: Option<(usize, f64)>,
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
    /// Look of all points.
    pub look: Look,
    /// Series of the panel.
    pub series: Vec<Series>,
    /// Lines across the panel at values of y.
    pub lines: Vec<ReferenceLine>,
    /// Lines up the panel at values of x.
    pub uprights: Vec<ReferenceLine>,
    /// Lower and upper edge of a band that data is held against: a margin.
    pub band: Option<(f64, f64)>,
    /// Height in proportion to the other rows.
    pub weight: f64,
}

impl Panel {
    /// A panel with nothing in it yet.
    pub fn new(x: Axis, y: Axis, look: Look) -> Self {
        Self {
            title: String::new(),
            x,
            y,
            look,
            series: Vec::new(),
            lines: Vec::new(),
            uprights: Vec::new(),
            band: None,
            weight: 1.0,
        }
    }
}

/// Marks with the panel and the series that they belong to, each with its place and its name.
#[derive(Debug, Default)]
pub struct Row {
    /// Place and title of the panel.
    pub panel: (usize, String),
    /// Place and name of the series.
    pub series: (usize, String),
    /// The marks in the order of x; none for a panel that has to be there without them.
    pub marks: Vec<Mark>,
}

impl Row {
    /// Marks of a series of a panel.
    pub fn new(panel: (usize, String), series: (usize, String), marks: Vec<Mark>) -> Self {
        Self {
            panel,
            series,
            marks,
        }
    }
}

/// The panels of these rows in the order of their places, each as `like` is but for its title and its series.
pub fn panels(rows: impl IntoIterator<Item = Row>, like: &Panel) -> Vec<Panel> {
    let mut panels: BTreeMap<usize, Panel> = BTreeMap::new();
    for row in rows {
        let (title, (place, name)) = (row.panel.1, row.series);
        let panel = panels.entry(row.panel.0).or_insert_with(|| Panel {
            title,
            ..like.clone()
        });
        let mut series = panel.series.iter_mut();
        // A further curve of a series, such as another trial, begins anew.
        match series.find(|own| own.place == place && like.look != Look::Curve) {
            Some(series) => series.points.extend(row.marks),
            None if row.marks.is_empty() => {}
            None => panel.series.push(Series {
                name,
                place,
                points: row.marks,
            }),
        }
    }
    let mut panels: Vec<Panel> = panels.into_values().collect();
    for panel in &mut panels {
        panel.series.sort_by_key(|series| series.place);
    }
    panels
}

/// The marks of all rows.
pub fn marks_of(rows: &[Row]) -> impl Iterator<Item = &Mark> + Clone {
    rows.iter().flat_map(|row| &row.marks)
}

/// The values that marks reach.
pub fn reach(rows: &[Row]) -> Vec<f64> {
    marks_of(rows).flat_map(Mark::reach).collect()
}

/// The marks of all panels.
pub fn all_marks(panels: &[Panel]) -> impl Iterator<Item = &Mark> {
    let series = panels.iter().flat_map(|panel| &panel.series);
    series.flat_map(|series| &series.points)
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
    /// Panels in the order of reading: side by side if all have the same axes, else one above the other.
    pub panels: Vec<Panel>,
    /// Meaning of a hollow mark; empty if there is none.
    pub hollow: String,
    /// Written below all, small: what marks and intervals are.
    pub note: String,
}

impl FigureModel {
    /// Whether the panels share the x axis alone, and stand one above the other.
    pub(super) fn is_stack(&self) -> bool {
        let mut pairs = self.panels.windows(2);
        pairs.any(|pair| pair[0].y.label != pair[1].y.label)
    }

    /// Facets without words.
    pub fn of(panels: Vec<Panel>) -> Self {
        Self {
            panels,
            ..Self::default()
        }
    }
}

/// Values with a higher ratio of their extremes are drawn on a log scale.
const LINEAR_MAX_RATIO: f64 = 100.0;
/// Largest ratio on a linear scale for times of whole trials, most of which are small if sizes double.
const LINEAR_MAX_RATIO_ELAPSED: f64 = 10.0;

/// Whether values are drawn on a log scale because of their range.
pub fn spans_decades(values: &[f64], response: Response) -> bool {
    let limit = match response {
        Response::Elapsed => LINEAR_MAX_RATIO_ELAPSED,
        _ => LINEAR_MAX_RATIO,
    };
    let (least, most) = least_and_most(values);
    most > limit * least
}

/// The lowest positive value, and the highest.
pub fn least_and_most(values: &[f64]) -> (f64, f64) {
    let positive = values.iter().copied().filter(|v| *v > 0.0);
    let most = values.iter().copied().fold(0.0, f64::max);
    (positive.fold(f64::INFINITY, f64::min), most)
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Linear.
    Linear {
        /// Low end.
        low: f64,
        /// High end.
        high: f64,
    },
    /// Logarithmic.
    Log {
        /// Low end, above 0.
        low: f64,
        /// High end.
        high: f64,
    },
}

impl Scale {
    /// Position of a value: 0 at the low end, 1 at the high end; `None` where it has none (zero on a log axis).
    pub fn share(self, value: f64) -> Option<f64> {
        let share = match self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => (value / low).ln() / (high / low).ln(),
        };
        share.is_finite().then_some(share)
    }

    /// Ends of the scale.
    pub(super) fn ends(self) -> (f64, f64) {
        match self {
            Scale::Linear { low, high } | Scale::Log { low, high } => (low, high),
        }
    }

    /// Whether it is logarithmic.
    pub(super) fn is_log(self) -> bool {
        matches!(self, Scale::Log { .. })
    }

    /// Whether a value is within its range.
    pub(super) fn holds(self, value: f64) -> bool {
        self.share(value)
            .is_some_and(|share| (-1e-9..=1.0 + 1e-9).contains(&share))
    }

    /// A linear scale for values, with some space above, from zero unless requested otherwise.
    pub fn linear(values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let (mut low, mut high) = ends(values, |v| v.is_finite()).unwrap_or((0.0, 1.0));
        if from_zero {
            low = low.min(0.0);
            high = high.max(0.0);
        }
        if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (if from_zero { low } else { low - room }, high + room);
        }
        let room = (high - low) * 0.05;
        let below = if from_zero && low == 0.0 { 0.0 } else { room };
        Scale::Linear {
            low: low - below,
            high: high + room,
        }
    }

    /// A log scale, or a linear one that need not begin at zero.
    pub(super) fn either(is_log: bool, values: &[f64]) -> Self {
        match is_log {
            true => Self::log(values.iter().copied()),
            false => Self::linear(values.iter().copied(), false),
        }
    }

    /// A log scale for the positive values, with some space on both sides.
    pub(super) fn log(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values, |v| v.is_finite() && *v > 0.0).unwrap_or((1.0, 10.0));
        let room = (high / low).powf(0.05).max(1.15);
        Scale::Log {
            low: low / room,
            high: high * room,
        }
    }
}

fn ends(values: impl Iterator<Item = f64>, fits: impl Fn(&f64) -> bool) -> Option<(f64, f64)> {
    let fitting: Vec<f64> = values.filter(fits).collect();
    let all = || fitting.iter().copied();
    all().reduce(f64::min).zip(all().reduce(f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_has_no_place_on_a_log_axis() {
        let log = Scale::log([1.0, 100.0].into_iter());
        assert_eq!(log.share(0.0), None);
        assert_eq!(log.share(-1.0), None);
        assert!(log.holds(10.0) && !log.holds(1e4));
    }

    proptest! {
        #[test]
        fn every_value_lies_on_its_axis(values in prop::collection::vec(-1e12f64..1e12, 0..20), zero: bool) {
            let scale = Scale::linear(values.iter().copied(), zero);
            let (low, high) = scale.ends();
            prop_assert!(low < high);
            for value in values {
                prop_assert!(scale.holds(value));
            }
        }
    }
}
