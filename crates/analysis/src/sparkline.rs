//! A run as a small picture: its response along its longest factor, as plain data.

use std::collections::{HashMap, HashSet};

use crate::analysis::{Analysis, CellAnalysis, Response};

/// Curves of one run along one factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparkline {
    /// The factor along the curves.
    pub factor: String,
    /// Its levels in order.
    pub levels: Vec<String>,
    /// The measured quantity.
    pub response: Response,
    /// One curve for each combination of the other factors.
    pub curves: Vec<SparklineCurve>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct SparklineCurve {
    /// The other factors with their levels: `bs=128KiB`; empty for none.
    pub name: String,
    /// Index in [`Sparkline::levels`], with the result.
    pub points: Vec<(usize, SparklinePoint)>,
}

/// A measured level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparklinePoint {
    /// Median, in the unit of the response.
    pub value: f64,
    /// The ends of its 95 % interval; `None` with fewer than 6 trials.
    pub interval: Option<(f64, f64)>,
    /// Whether the device served all of it.
    pub device: bool,
}

/// In a grid of workloads, the factor of concurrency, along which the workloads are drawn.
pub fn axis_of_workloads<T: AsRef<str>>(factors: &[T]) -> Option<usize> {
    let place = |name: &str| factors.iter().position(|factor| factor.as_ref() == name);
    place("workload")?;
    place("threads").or(place("depth"))
}

/// The factor along which a run is drawn: in a grid of workloads that of concurrency, otherwise the one with the most levels, the
/// last of several.
pub fn axis(analysis: &Analysis) -> Option<usize> {
    if let Some(at_once) = axis_of_workloads(&analysis.factors) {
        return Some(at_once);
    }
    (0..analysis.factors.len()).max_by_key(|i| levels(analysis, *i).len())
}

/// The levels of a factor in the order of the cells.
fn levels(analysis: &Analysis, factor: usize) -> Vec<&String> {
    let mut seen = HashSet::new();
    let levels = analysis.cells.iter();
    let levels = levels.filter_map(|c| c.cell.levels.get(factor));
    levels.filter(|level| seen.insert(*level)).collect()
}

impl Sparkline {
    /// The sparkline of a run; `None` where nothing varies or nothing was measured.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let along = axis(analysis)?;
        let levels: Vec<String> = levels(analysis, along).into_iter().cloned().collect();
        let places: HashMap<&String, usize> = levels.iter().zip(0..).collect();
        let mut curves: Vec<SparklineCurve> = Vec::new();
        let mut named: HashMap<String, usize> = HashMap::new();
        for cell in &analysis.cells {
            let (Some(point), Some(level)) = (point(cell), cell.cell.levels.get(along)) else {
                continue;
            };
            let Some(place) = places.get(level).copied() else {
                continue;
            };
            let name = crate::curve::held_levels(analysis, cell, along).join(" ");
            let curve = *named.entry(name.clone()).or_insert(curves.len());
            if curve == curves.len() {
                curves.push(SparklineCurve {
                    name,
                    points: Vec::new(),
                });
            }
            curves[curve].points.push((place, point));
        }
        (!curves.is_empty()).then_some(Self {
            factor: analysis.factors.get(along)?.clone(),
            levels,
            response: analysis.response,
            curves,
        })
    }

    /// The curve with the best value; the first of several.
    pub fn best(&self) -> Option<&SparklineCurve> {
        let worth = |curve: &SparklineCurve| {
            let values = curve
                .points
                .iter()
                .map(|(_, p)| self.response.worth(p.value));
            values.fold(f64::NEG_INFINITY, f64::max)
        };
        let best = |a: &&SparklineCurve, b: &&SparklineCurve| worth(a).total_cmp(&worth(b));
        self.curves.iter().rev().max_by(best)
    }
}

fn point(cell: &CellAnalysis) -> Option<SparklinePoint> {
    let summary = cell.response?;
    Some(SparklinePoint {
        value: summary.median,
        interval: summary.median_interval.map(|i| (i.low, i.high)),
        device: cell.is_device(),
    })
}
