//! What skipping costs.

use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::curve::{Curve, by_size};

use super::rule::RATIOS;
use super::{Finding, Rule, Says, at, format_ratio};

pub(crate) const COST_OF_SKIPPING: Rule = Rule::result("cost-of-skipping", RATIOS);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(cost_of_skipping)];

/// What skipping costs: the least skip against the one with the lowest throughput.
pub fn cost_of_skipping(analysis: &Analysis) -> Vec<Finding> {
    if analysis.response != Response::Throughput {
        return Vec::new();
    }
    let sentence = |curve: Curve| {
        let (least, rest) = curve.points.split_first()?;
        let worst = rest
            .iter()
            .min_by(|a, b| a.summary.median.total_cmp(&b.summary.median))?;
        let ratio = least.ratio_of(worst)?;
        let verdict = if ratio.interval.is_some_and(|i| i.high < 1.0) {
            "Skipping costs throughput"
        } else if ratio.interval.is_some_and(|i| i.low > 1.0) {
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
        Some(Finding {
            rule: COST_OF_SKIPPING,
            text,
        })
    };
    by_size(analysis, "skip")
        .into_iter()
        .filter_map(sentence)
        .collect()
}
