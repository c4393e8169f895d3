//! What larger skips cost.

use iolab_stats::{Interval, Ratio};

use super::rule::RATIOS;
use super::{Finding, Rule, Says, at, format_ratio};
use crate::across::SENTENCES_MAX;
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::curve::{Curve, by_size};

pub(crate) const COST_OF_SKIPPING: Rule = Rule::result("cost-of-skipping", RATIOS);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(cost_of_skipping)];

/// The least skip against the one with the lowest throughput.
#[derive(Debug)]
pub(crate) struct Cost<'a> {
    pub(crate) least: &'a CellAnalysis,
    pub(crate) worst: &'a CellAnalysis,
    /// Throughput of the worst over that of the least.
    pub(crate) ratio: Ratio,
    place: String,
    text: String,
}

/// What skipping costs, on each curve or, of many curves, on the best and the worst.
pub fn cost_of_skipping(analysis: &Analysis) -> Vec<Finding> {
    let costs = skip_costs(analysis);
    let finding = |text| Finding {
        rule: COST_OF_SKIPPING,
        text,
    };
    match costs.len() > SENTENCES_MAX {
        true => of_many(&costs).map(finding).into_iter().collect(),
        false => costs.into_iter().map(|cost| finding(cost.text)).collect(),
    }
}

/// The costs on all curves of throughput over skips.
pub(crate) fn skip_costs(analysis: &Analysis) -> Vec<Cost<'_>> {
    if analysis.response != Response::Throughput {
        return Vec::new();
    }
    let curves = by_size(analysis, "skip").into_iter();
    curves.filter_map(|curve| cost(analysis, &curve)).collect()
}

fn cost<'a>(analysis: &'a Analysis, curve: &Curve<'a>) -> Option<Cost<'a>> {
    let (least, rest) = curve.points.split_first()?;
    let worst = rest
        .iter()
        .min_by(|a, b| a.summary.median.total_cmp(&b.summary.median))?;
    let ratio = least.ratio_of(worst)?;
    let verdict = if costs(&ratio) {
        "Skipping costs throughput"
    } else if ratio.interval.is_some_and(|i: Interval| i.low > 1.0) {
        "No larger skip is slower than the least"
    } else {
        "No cost of larger skips is shown"
    };
    let text = format!(
        "{verdict}{}: {} with the least skip, {} with the slowest; ratio {}.",
        curve.place(),
        at(least, analysis.response),
        at(worst, analysis.response),
        format_ratio(&ratio, ""),
    );
    Some(Cost {
        least: least.cell,
        worst: worst.cell,
        ratio,
        place: curve.place(),
        text,
    })
}

fn costs(ratio: &Ratio) -> bool {
    ratio.interval.is_some_and(|i| i.high < 1.0)
}

fn of_many(all: &[Cost<'_>]) -> Option<String> {
    let by_ratio = |a: &&Cost<'_>, b: &&Cost<'_>| a.ratio.ratio.total_cmp(&b.ratio.ratio);
    let (most, least) = (all.iter().min_by(by_ratio)?, all.iter().max_by(by_ratio)?);
    let words = |cost: &Cost<'_>| format_ratio(&cost.ratio, "") + &cost.place;
    Some(format!(
        "Skipping costs throughput in {} of {} settings. Throughput with the slowest skip over that with the least: {} to {}.",
        all.iter().filter(|cost| costs(&cost.ratio)).count(),
        all.len(),
        words(most),
        words(least),
    ))
}
