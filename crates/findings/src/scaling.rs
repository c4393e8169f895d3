//! How throughput and IOPS grow with threads and depth, and where that ends.

use super::format_ratio;
use super::rule::RATIOS;
use super::{Finding, Rule, Says, capitalised, origin};
use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::curve::{Curve, Point, by_size};
use iolab_spec::quantity::{format_percent, significant};

pub(crate) const SCALING: Rule = Rule::result("scaling", RATIOS);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(scaling)];

/// For each curve over threads and over depth: what the growth from the least count is, and the count from which no
/// larger one is shown to be faster.
pub fn scaling(analysis: &Analysis) -> Vec<Finding> {
    if analysis.response.is_time() {
        return Vec::new();
    }
    ["threads", "depth"]
        .into_iter()
        .flat_map(|factor| of_factor(analysis, factor))
        .map(|text| Finding {
            rule: SCALING,
            text,
        })
        .collect()
}

/// What each curve over a factor tells. Curves without any interval tell nothing, and share one sentence.
fn of_factor(analysis: &Analysis, factor: &'static str) -> Vec<String> {
    let response = analysis.response;
    let curves = by_size(analysis, factor);
    let (told, untold): (Vec<&Curve<'_>>, Vec<&Curve<'_>>) =
        curves.iter().partition(|curve| has_interval(curve));
    let mut texts: Vec<String> = told.iter().filter_map(|c| growth(response, c)).collect();
    texts.extend(match untold.as_slice() {
        [only] => growth(response, only),
        many => unknown(response, many),
    });
    texts
}

/// Whether any count can be held against the least one.
fn has_interval(curve: &Curve<'_>) -> bool {
    let Some((first, rest)) = curve.points.split_first() else {
        return false;
    };
    let interval = |p: &Point<'_>| first.ratio_of(p)?.interval;
    rest.iter().any(|p| interval(p).is_some())
}

/// The least and the greatest ratio of the largest count over the least one, for curves that have no intervals.
fn unknown(response: Response, curves: &[&Curve<'_>]) -> Option<String> {
    let ratio = |curve: &&Curve<'_>| {
        let (first, last) = (curve.points.first()?, curve.points.last()?);
        let ratio = first.ratio_of(last)?.ratio;
        let text = format!(
            "{}{} ({} over {})",
            significant(ratio),
            curve.place(),
            last.size,
            first.size
        );
        Some((ratio, text))
    };
    let mut ratios: Vec<(f64, String)> = curves.iter().filter_map(ratio).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((_, least), (_, greatest)) = (ratios.first()?, ratios.last()?);
    Some(format!(
        "Too few trials to tell whether {response} grows with {} on any of {} curves: the ratios of their medians range from {least} to {greatest}, without an interval.",
        curves.first()?.factor,
        ratios.len(),
    ))
}

fn growth(response: Response, curve: &Curve<'_>) -> Option<String> {
    let first = curve.points.first()?;
    let end = end(curve, first)?;
    let last = curve.points.last()?;
    let (factor, place) = (curve.factor, curve.place());
    let name = capitalised(&response.to_string());
    if first.size == end.size {
        let ratio = format_ratio(&first.ratio_of(last)?, " times");
        let verdict = if is_faster(last, first) {
            "falls with more"
        } else {
            "is not shown to grow with"
        };
        return Some(format!(
            "{name} {verdict} {factor}{place}: with {} it is {ratio} that with {}.",
            last.size, first.size
        ));
    }
    let ratio = first.ratio_of(end)?;
    let linear = end.size as f64 / first.size as f64;
    let mut text = format!(
        "{name} grows with {factor}{place}: {} from {} to {}, {}; that is {} of growth in proportion.",
        format_ratio(&ratio, " times"),
        first.size,
        end.size,
        with_origin(end, response),
        format_percent(ratio.ratio / linear),
    );
    if end.size == last.size {
        text.push_str(" It had not ended at the largest count measured.");
        return Some(text);
    }
    let beyond = format_ratio(&end.ratio_of(last)?, " times");
    text.push_str(&format!(
        " Beyond, {}: with {} it is {beyond} that with {}.",
        if is_faster(last, end) {
            "it falls"
        } else {
            "no gain is shown"
        },
        last.size,
        end.size
    ));
    Some(text)
}

fn with_origin(point: &Point<'_>, response: Response) -> String {
    point.with_interval(response) + &origin(point.cell)
}

/// Where the growth ends: the least count that is the first or shown to be faster than it, and than which no larger one is
/// shown to be faster.
fn end<'c, 'a>(curve: &'c Curve<'a>, first: &Point<'a>) -> Option<&'c Point<'a>> {
    let counts = |p: &&Point<'_>| p.size == first.size || is_faster(first, p);
    let candidates = || curve.points.iter().filter(counts);
    candidates()
        .find(|p| is_end(p, curve))
        .or_else(|| candidates().next_back())
}

/// Whether no larger count is shown to be faster.
fn is_end(point: &Point<'_>, curve: &Curve<'_>) -> bool {
    let mut larger = curve.points.iter().filter(|p| p.size > point.size);
    larger.all(|p| !is_faster(point, p))
}

/// Whether `other` is faster than `point`: the whole interval of the ratio lies above 1.
fn is_faster(point: &Point<'_>, other: &Point<'_>) -> bool {
    let ratio = point.ratio_of(other).and_then(|ratio| ratio.interval);
    ratio.is_some_and(|interval| interval.low > 1.0)
}
