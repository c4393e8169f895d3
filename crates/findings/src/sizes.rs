//! The best sizes of curves, and the sizes that are as good.

use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::bends;
use iolab_analysis::curve::{Curve, Point, by_size};
use iolab_analysis::optimum::optimum;
use iolab_workload::units::format_size;

use super::rule::MEDIANS;
use super::shape::label;
use super::{Finding, Rule, Says, at, origin};

pub(crate) const BEST_SIZE: Rule = Rule::result("best-size", MEDIANS);
pub(crate) const BEST_SIZES: Rule = Rule::result(
    "best-sizes",
    "1000 resamples of the trials of each size; the best size of each",
);
pub(crate) const PLATEAU: Rule = Rule::result("plateau", MEDIANS);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[
    Says::OfCells(best_size),
    Says::OfCells(best_sizes),
    Says::OfCells(plateau),
];

/// How much of the best a size must reach to lie on the plateau.
const NEAR: f64 = 0.95;

/// The best size of the best curve, and the sizes whose intervals overlap its interval.
pub fn best_size(analysis: &Analysis) -> Vec<Finding> {
    let sentence = |curve: Curve| {
        let response = analysis.response;
        let best = curve.best(response)?;
        let interval = best.summary.median_interval;
        let undecided: Vec<String> = curve
            .points
            .iter()
            .filter(|p| p.size != best.size)
            .filter(|p| overlap(p, best))
            .map(|p| format_size(p.size))
            .collect();
        let word = if response.more_is_better() {
            "Highest"
        } else {
            "Lowest"
        };
        let tail = if interval.is_none() {
            " Too few trials to say which sizes differ from it.".to_owned()
        } else if undecided.is_empty() {
            " No other size's interval overlaps it.".to_owned()
        } else {
            format!(
                " Not distinguishable from it (overlapping median intervals): {}.",
                undecided.join(", ")
            )
        };
        let text = format!(
            "{word} {response}{}: {} at {}={}{}.{tail}",
            curve.place(),
            best.with_interval(response),
            curve.factor,
            format_size(best.size),
            origin(best.cell),
        );
        Some(Finding {
            rule: BEST_SIZE,
            text,
        })
    };
    best_curve(analysis)
        .and_then(sentence)
        .into_iter()
        .collect()
}

/// The best size of every curve, with its interval.
pub fn best_sizes(analysis: &Analysis) -> Vec<Finding> {
    let best = |curve: &Curve<'_>| {
        let optimum = optimum(curve, analysis.response, analysis.seed)?;
        let (low, high) = optimum.interval?;
        let range = if low == high {
            "no other in 95 % of the resamples".to_owned()
        } else {
            format!("{} to {}", format_size(low), format_size(high))
        };
        Some(format!(
            "{}{} ({range})",
            label(curve),
            format_size(optimum.size)
        ))
    };
    let parts: Vec<String> = bends::bendable(analysis).iter().filter_map(best).collect();
    if parts.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        rule: BEST_SIZES,
        text: format!(
            "Best bs for {}, with the 95 % interval of its place (resampled trials): {}.",
            analysis.response,
            parts.join("; ")
        ),
    }]
}

/// Where the curve bends: the sizes around the best that stay within 5 % of it or whose intervals overlap its
/// interval, and the fall below them.
pub fn plateau(analysis: &Analysis) -> Vec<Finding> {
    if analysis.response != Response::Throughput {
        return Vec::new();
    }
    best_curve(analysis)
        .filter(|curve| curve.factor == "bs" && curve.points.len() >= 3)
        .and_then(|curve| bend(&curve))
        .map_or_else(Vec::new, |text| PLATEAU.one(text))
}

fn bend(curve: &Curve<'_>) -> Option<String> {
    let response = Response::Throughput;
    let best = curve.best(response)?;
    let floor = NEAR * best.summary.median;
    let near = |p: &Point<'_>| p.summary.median >= floor;
    let (first, last) = curve.run_around(best.size, |p| near(p) || overlap(p, best))?;
    let (start, end) = (curve.points.get(first)?, curve.points.get(last)?);
    let (start, end) = (format_size(start.size), format_size(end.size));
    let reaches_end = last + 1 == curve.points.len();
    let range = match (first, reaches_end) {
        (0, true) => format!("At all sizes, {start} to {end}, throughput is"),
        _ if first == last => format!("Only at {start} throughput is"),
        (_, true) => format!("From {start} up, throughput is"),
        (_, false) => format!("From {start} to {end}, throughput is"),
    };
    let undecided = if curve.points[first..=last].iter().all(near) {
        ""
    } else {
        " or indistinguishable from it"
    };
    let mut text = format!(
        "{range} within 5 % of the best{} ({}{}){undecided}.",
        curve.place(),
        response.format(best.summary.median),
        origin(best.cell),
    );
    if let Some(below) = first.checked_sub(1).and_then(|i| curve.points.get(i)) {
        text.push_str(&format!(" Below, it falls: {}", at(below, response)));
        if let Some(least) = curve.points.first().filter(|_| first > 1) {
            text.push_str(&format!(", {}", at(least, response)));
        }
        text.push('.');
    }
    if let Some(above) = curve.points.get(last + 1) {
        text.push_str(&format!(" Above, it falls again: {}.", at(above, response)));
    }
    Some(text)
}

/// Whether the 95 % intervals of two medians have a value in common.
fn overlap(a: &Point<'_>, b: &Point<'_>) -> bool {
    let intervals = a.summary.median_interval.zip(b.summary.median_interval);
    intervals.is_some_and(|(a, b)| a.overlaps(&b))
}

/// The curve over I/O sizes (over skips, when no I/O size varies) that holds the best value. Many
/// curves of one run would make as many sentences; the table has them all.
fn best_curve(analysis: &Analysis) -> Option<Curve<'_>> {
    let mut curves = by_size(analysis, "bs");
    if curves.is_empty() {
        curves = by_size(analysis, "skip");
    }
    let response = analysis.response;
    let worth = |curve: &Curve<'_>| {
        let best = curve.best(response);
        best.map_or(f64::NEG_INFINITY, |p| response.worth(p.summary.median))
    };
    // Of equals the first.
    curves
        .into_iter()
        .rev()
        .max_by(|a, b| worth(a).total_cmp(&worth(b)))
}
