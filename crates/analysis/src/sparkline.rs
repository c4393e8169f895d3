//! A run as a small curve: its response along its longest factor, as plain data. Curves of several targets can
//! share axes.

use std::collections::HashMap;

use crate::analysis::{Analysis, CellAnalysis, Response};
use crate::curve::{held_levels, level_value};

/// Curves of one run along one factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparkline {
    /// The factor along the curves.
    pub factor: String,
    /// Levels of the axis: numbers ascend, names keep the order of the definition.
    pub levels: Vec<String>,
    /// Whether the levels are names, without values between them.
    pub is_names: bool,
    /// The measured quantity.
    pub response: Response,
    /// Curves, one for each target and combination of the other factors.
    pub curves: Vec<SparklineCurve>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct SparklineCurve {
    /// Name of the target, as reports show it.
    pub target: String,
    /// The other factors but the target, with their levels: `bs=128KiB`; empty for none.
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

/// The axis of a grid of workloads: the factor of concurrency; `None` without factor `workload`.
pub fn axis_of_workloads<T: AsRef<str>>(factors: &[T]) -> Option<usize> {
    let place = |name: &str| factors.iter().position(|factor| factor.as_ref() == name);
    place("workload")?;
    place("threads").or(place("depth"))
}

/// The factor along which a run is drawn: the concurrency in a grid of workloads, otherwise the factor with the
/// most levels, the last of several.
pub fn axis(analysis: &Analysis) -> Option<usize> {
    longest_axis(analysis, |_| true)
}

/// The factor along which a run is drawn, chosen among some factors.
fn longest_axis(analysis: &Analysis, is_one: impl Fn(&str) -> bool) -> Option<usize> {
    if let Some(at_once) = axis_of_workloads(&analysis.factors) {
        return Some(at_once);
    }
    let all = analysis.factors.iter().enumerate();
    let some = all.filter(|(_, factor)| is_one(factor));
    some.map(|(i, _)| i)
        .max_by_key(|i| analysis.levels(*i).len())
}

impl Sparkline {
    /// The sparkline of a run; `None` where nothing but the target varies, or nothing was measured.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let is_target = |factor: &str| factor == "target";
        let along = longest_axis(analysis, |factor| !is_target(factor))?;
        let levels = analysis.levels(along).into_iter();
        let mut levels: Vec<String> = levels.map(str::to_owned).collect();
        // Numbers ascend, whatever the order in which the definition names them.
        let factor = analysis.factors.get(along)?;
        let is_number = |level: &String| level_value(factor, level).is_some();
        let is_names = !levels.iter().all(is_number);
        if !is_names {
            let value = |level: &String| level_value(factor, level).unwrap_or_default();
            levels.sort_by(|a, b| value(a).total_cmp(&value(b)));
        }
        let places: HashMap<&String, usize> = levels.iter().zip(0..).collect();
        let mut curves: Vec<SparklineCurve> = Vec::new();
        let mut named: HashMap<(String, String), usize> = HashMap::new();
        for cell in &analysis.cells {
            let (Some(point), Some(level)) = (point(cell), cell.cell.levels.get(along)) else {
                continue;
            };
            let Some(place) = places.get(level).copied() else {
                continue;
            };
            let held = held_levels(analysis, cell, |i, factor| i == along || is_target(factor));
            let target = analysis.target_of(cell.cell.spec.target.as_ref());
            let (target, name) = (target.to_owned(), held.join(" "));
            let known = named.entry((target.clone(), name.clone()));
            let curve = *known.or_insert(curves.len());
            if curve == curves.len() {
                curves.push(SparklineCurve {
                    target,
                    name,
                    points: Vec::new(),
                });
            }
            curves[curve].points.push((place, point));
        }
        (!curves.is_empty()).then_some(Self {
            factor: factor.clone(),
            levels,
            is_names,
            response: analysis.response,
            curves,
        })
    }

    /// The curves of runs of one experiment on common axes, with all levels of any run. `None` without a run, or
    /// if they lie along different factors.
    pub fn overlaid(runs: Vec<Self>) -> Option<Self> {
        let mut runs = runs.into_iter();
        let mut all = runs.next()?;
        for run in runs {
            if (&run.factor, run.response) != (&all.factor, all.response) {
                return None;
            }
            // A new level follows the one before it.
            let mut next = 0;
            for level in &run.levels {
                match all.levels.iter().position(|known| known == level) {
                    Some(known) => next = known + 1,
                    None => {
                        all.insert_level(next, level);
                        next += 1;
                    }
                }
            }
            let place = |level: &usize| {
                let level = run.levels.get(*level);
                all.levels.iter().position(|known| Some(known) == level)
            };
            let moved = run.curves.iter().map(|curve| SparklineCurve {
                target: curve.target.clone(),
                name: curve.name.clone(),
                points: curve
                    .points
                    .iter()
                    .filter_map(|(level, point)| Some((place(level)?, *point)))
                    .collect(),
            });
            let moved: Vec<SparklineCurve> = moved.collect();
            all.curves.extend(moved);
        }
        Some(all)
    }

    fn insert_level(&mut self, at: usize, level: &str) {
        self.levels.insert(at, level.to_owned());
        let points = self.curves.iter_mut().flat_map(|curve| &mut curve.points);
        for (place, _) in points {
            *place += usize::from(*place >= at);
        }
    }

    /// Names of the targets, in the order of the curves.
    pub fn targets(&self) -> Vec<&str> {
        let mut targets: Vec<&str> = Vec::new();
        for curve in &self.curves {
            if !targets.contains(&curve.target.as_str()) {
                targets.push(&curve.target);
            }
        }
        targets
    }

    /// The curve with the best value; the first of several.
    pub fn best(&self) -> Option<&SparklineCurve> {
        self.best_of(|_| true)
    }

    /// The best curve of one target.
    pub fn best_of_target(&self, target: &str) -> Option<&SparklineCurve> {
        self.best_of(|curve| curve.target == target)
    }

    fn best_of(&self, is_one: impl Fn(&SparklineCurve) -> bool) -> Option<&SparklineCurve> {
        let worth = |curve: &SparklineCurve| {
            let values = curve
                .points
                .iter()
                .map(|(_, p)| self.response.worth(p.value));
            values.fold(f64::NEG_INFINITY, f64::max)
        };
        let best = |a: &&SparklineCurve, b: &&SparklineCurve| worth(a).total_cmp(&worth(b));
        let some = self.curves.iter().rev().filter(|curve| is_one(curve));
        some.max_by(best)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run(target: &str, levels: &[&str]) -> Sparkline {
        let point = |level: &str| SparklinePoint {
            value: level.len() as f64,
            interval: None,
            device: true,
        };
        Sparkline {
            factor: "bs".to_owned(),
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
            is_names: false,
            response: Response::Throughput,
            curves: vec![SparklineCurve {
                target: target.to_owned(),
                name: String::new(),
                points: levels
                    .iter()
                    .map(|level| point(level))
                    .enumerate()
                    .collect(),
            }],
        }
    }

    #[test]
    fn runs_with_different_levels_share_one_axis() {
        let runs = vec![
            run("a", &["4KiB", "1MiB", "64MiB"]),
            run("b", &["1MiB", "16MiB", "64MiB", "256MiB"]),
            run("c", &["1KiB", "4KiB"]),
        ];
        let all = Sparkline::overlaid(runs.clone()).expect("one axis");
        let order = ["1KiB", "4KiB", "1MiB", "16MiB", "64MiB", "256MiB"];
        assert_eq!(all.levels, order);
        assert_eq!(all.targets(), ["a", "b", "c"]);
        for (curve, run) in all.curves.iter().zip(&runs) {
            let named = |of: &Sparkline, curve: &SparklineCurve| -> Vec<String> {
                let points = curve.points.iter();
                points.map(|(place, _)| of.levels[*place].clone()).collect()
            };
            assert_eq!(named(&all, curve), run.levels, "{}", curve.target);
        }
        let best = all.best_of_target("a").expect("measured");
        assert_eq!((best.target.as_str(), best.points.len()), ("a", 3));
    }

    #[test]
    fn runs_along_other_factors_share_no_axis() {
        let other = Sparkline {
            factor: "depth".to_owned(),
            ..run("b", &["1", "2"])
        };
        assert_eq!(Sparkline::overlaid(vec![run("a", &["4KiB"]), other]), None);
        assert_eq!(Sparkline::overlaid(Vec::new()), None);
    }
}
