//! The response as a function of one size or count, with every other factor fixed, and its best size; the factor along which
//! a run is drawn.

use std::collections::HashMap;

use crate::analysis::{Analysis, CellAnalysis, Response};
use iolab_stats::Summary;
use iolab_workload::group::split_group;
use iolab_workload::settings::{Setting, ValueKind};
use iolab_workload::trial::Rate;
use iolab_workload::units::{parse_duration, parse_size};

/// One measured size or count.
#[derive(Debug, Clone, Copy)]
pub struct Point<'a> {
    /// The size in bytes, or the count.
    pub size: u64,
    /// The response at it.
    pub summary: Summary,
    /// Cell of the point.
    pub cell: &'a CellAnalysis,
}

/// The points of one curve in ascending order of size; without cells that have no trials.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// The swept factor: `bs`, `skip`, `threads`, `depth`, `ranks` or `hosts`.
    pub factor: &'static str,
    /// The fixed factors with their levels; empty where nothing else varies.
    pub held: Vec<(String, String)>,
    /// Points of the curve, by ascending size.
    pub points: Vec<Point<'a>>,
}

/// The curves over `factor` (`bs`, `skip`, `threads`, `depth`, `ranks` or `hosts`), in the order of the definition. Empty unless
/// the experiment sweeps it; a curve has at least two points.
pub fn by_size<'a>(analysis: &'a Analysis, factor: &'static str) -> Vec<Curve<'a>> {
    if !analysis.factors.iter().any(|name| name == factor) {
        return Vec::new();
    }
    let mut curves: Vec<Curve<'a>> = Vec::new();
    let mut places: HashMap<Vec<(String, String)>, usize> = HashMap::new();
    for cell in &analysis.cells {
        let spec = &cell.cell.spec;
        let is_known = spec.is_comparable(spec) && !spec.unknown.contains(factor);
        let Some(summary) = cell.response.filter(|_| is_known) else {
            continue;
        };
        let held = held(analysis, cell, |name| name == factor);
        let point = Point {
            size: size(cell, factor),
            summary,
            cell,
        };
        let curve = *places.entry(held.clone()).or_insert(curves.len());
        if curve == curves.len() {
            curves.push(Curve {
                factor,
                held,
                points: Vec::new(),
            });
        }
        curves[curve].points.push(point);
    }
    for curve in &mut curves {
        curve.points.sort_by_key(|p| p.size);
    }
    curves.retain(|c| c.points.len() > 1);
    curves
}

/// The size or count of a cell that a factor sets; 0 for other factors.
pub(crate) fn size(cell: &CellAnalysis, factor: &str) -> u64 {
    let trial = cell.cell.trial();
    match factor {
        "bs" => trial.bs,
        "skip" => trial.skip,
        "threads" => trial.threads.into(),
        "depth" => trial.depth.into(),
        "ranks" => cell.ranks.as_ref().map_or(1, |ranks| ranks.ranks as u64),
        "hosts" => cell.ranks.as_ref().map_or(1, |ranks| ranks.hosts as u64),
        _ => 0,
    }
}

/// Factors and levels of a cell, but for those that vary.
pub(crate) fn held(
    analysis: &Analysis,
    cell: &CellAnalysis,
    varies: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let levels = analysis.factors.iter().zip(&cell.cell.levels);
    let held = levels.filter(|(factor, _)| !varies(factor));
    held.map(|(factor, level)| (factor.clone(), level.clone()))
        .collect()
}

impl<'a> Curve<'a> {
    /// The point with the best median.
    pub fn best(&self, response: Response) -> Option<&Point<'a>> {
        let worth = |p: &Point<'_>| response.worth(p.summary.median);
        // Of equal values, prefers the smaller size, which needs less memory.
        let points = self.points.iter().rev();
        points.max_by(|a, b| worth(a).total_cmp(&worth(b)))
    }
}

/// The kind of a factor's values, where they are numbers.
pub fn number_kind(factor: &str) -> Option<ValueKind> {
    let kind = Setting::find(split_group(factor).1)?.kind;
    (kind.is_number() && kind != ValueKind::Flag).then_some(kind)
}

/// The number that a level of a factor stands for, in bytes, ns, per second, or as it is; `None` for names.
pub fn level_value(factor: &str, level: &str) -> Option<f64> {
    match number_kind(factor)? {
        ValueKind::Size => parse_size(level).ok().map(|bytes| bytes as f64),
        ValueKind::Count => level.parse().ok().filter(|value: &f64| value.is_finite()),
        ValueKind::Time => Some(parse_duration(level).ok()?.as_nanos() as f64),
        ValueKind::Rate => level.parse::<Rate>().ok().map(|rate| rate.per_second(1.0)),
        ValueKind::Flag | ValueKind::Word | ValueKind::Path | ValueKind::List => None,
    }
}

/// The axis of a grid of workloads: the factor of concurrency; `None` without factor `workload`.
pub fn axis_of_workloads<T: AsRef<str>>(factors: &[T]) -> Option<usize> {
    let place = |name: &str| factors.iter().position(|factor| factor.as_ref() == name);
    place("workload")?;
    place("threads").or(place("depth"))
}

/// The factor along which a run is drawn, other than the target: the concurrency in a grid of workloads, otherwise
/// the factor with the most levels, the last of several.
pub fn axis_but_target(analysis: &Analysis) -> Option<usize> {
    if let Some(at_once) = axis_of_workloads(&analysis.factors) {
        return Some(at_once);
    }
    let all = analysis.factors.iter().enumerate();
    let some = all.filter(|(_, factor)| *factor != "target");
    some.map(|(i, _)| i)
        .max_by_key(|i| analysis.levels(*i).len())
}
