//! How throughput and IOPS grow with threads, depth, ranks and hosts, and where that ends.

use iolab_stats::Ratio;

use super::format_ratio;
use super::rule::RATIOS;
use super::{Finding, Rule, Says, capitalised, origin};
use crate::across::SENTENCES_MAX;
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::curve::{Curve, Point, by_size};
use iolab_workload::quantity::{format_percent, significant};

/// What makes a workload more parallel.
const FACTORS: [&str; 4] = ["threads", "depth", "ranks", "hosts"];

pub(crate) const SCALING: Rule = Rule::result("scaling", RATIOS);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(scaling)];

/// For each curve over what makes the workload more parallel: what the growth from the least count is, and the count from which no
/// larger one is shown to be faster.
pub fn scaling(analysis: &Analysis) -> Vec<Finding> {
    if analysis.response.is_time() {
        return Vec::new();
    }
    FACTORS
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
    let mut texts: Vec<String> = match told.len() > SENTENCES_MAX {
        true => of_many(response, &told).into_iter().collect(),
        false => told.iter().filter_map(|c| growth(response, c)).collect(),
    };
    texts.extend(match untold.as_slice() {
        [only] => growth(response, only),
        many => unknown(response, many),
    });
    texts
}

/// Growth on a curve: from the least count to the one where it ends, or to the largest where nothing grows.
#[derive(Debug)]
pub(crate) struct Growth<'a> {
    pub(crate) factor: &'static str,
    pub(crate) first: &'a CellAnalysis,
    pub(crate) end: &'a CellAnalysis,
    /// The response at the end over that at the least count.
    pub(crate) ratio: Ratio,
    counts: (u64, u64),
    place: String,
}

/// Growth on all curves over what makes the workload more parallel that have intervals.
pub(crate) fn growths(analysis: &Analysis) -> Vec<Growth<'_>> {
    if analysis.response.is_time() {
        return Vec::new();
    }
    FACTORS
        .into_iter()
        .flat_map(|factor| by_size(analysis, factor))
        .filter(has_interval)
        .filter_map(|curve| of_curve(&curve))
        .collect()
}

fn of_curve<'a>(curve: &Curve<'a>) -> Option<Growth<'a>> {
    let (first, last) = (curve.points.first()?, curve.points.last()?);
    let end = end(curve, first).filter(|end| end.size > first.size);
    let end = end.unwrap_or(last);
    Some(Growth {
        factor: curve.factor,
        first: first.cell,
        end: end.cell,
        ratio: first.ratio_of(end)?,
        counts: (first.size, end.size),
        place: curve.place(),
    })
}

/// How many curves grow, and the ones that grow most and least.
fn of_many(response: Response, curves: &[&Curve<'_>]) -> Option<String> {
    let growths: Vec<Growth<'_>> = curves.iter().filter_map(|curve| of_curve(curve)).collect();
    let grows = |growth: &&Growth<'_>| growth.ratio.interval.is_some_and(|i| i.low > 1.0);
    let by_ratio = |a: &&Growth<'_>, b: &&Growth<'_>| a.ratio.ratio.total_cmp(&b.ratio.ratio);
    let most = growths.iter().max_by(by_ratio)?;
    let least = growths.iter().min_by(by_ratio)?;
    let words = |growth: &Growth<'_>| {
        format!(
            "{} from {} to {}{}",
            format_ratio(&growth.ratio, " times"),
            growth.counts.0,
            growth.counts.1,
            growth.place
        )
    };
    Some(format!(
        "{} grows with {} in {} of {} settings; most: {}; least: {}.",
        capitalised(&response.to_string()),
        most.factor,
        growths.iter().filter(grows).count(),
        growths.len(),
        words(most),
        words(least),
    ))
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
        text.push_str(" Growth had not ended at the largest count measured.");
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
