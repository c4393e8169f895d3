//! What untouched buffers cost against zeroed ones.

use iolab_workload::quantity::{format_ns, format_p, significant};

use super::{Finding, Rule, Says, format_ratio};
use iolab_analysis::analysis::Analysis;
use iolab_analysis::equivalence::FIRST_TRIALS;
use iolab_analysis::preparation::{PreparationPoint, preparation};

pub(crate) const PREPARATION: Rule = Rule::result(
    "preparation",
    "the ratio of medians with its interval, Welch's test, and the page faults of each trial",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[untouched_buffers];

/// The setting in which untouched buffers cost most, and in how many they cost anything.
pub fn untouched_buffers(analysis: &Analysis) -> Vec<Finding> {
    let points = preparation(analysis);
    let costs = |point: &&PreparationPoint| point.ratio.interval.is_some_and(|i| i.high < 1.0);
    let least = points
        .iter()
        .min_by(|a, b| a.ratio.ratio.total_cmp(&b.ratio.ratio));
    let Some(least) = least else {
        return Vec::new();
    };
    if !points.iter().any(|point| costs(&point)) {
        return Vec::new();
    }
    let response = analysis.response;
    let place = match least.held.as_slice() {
        [] => String::new(),
        held => format!(" with {}", held.join(" ")),
    };
    let tests: Vec<String> = FIRST_TRIALS
        .iter()
        .zip(least.p)
        .filter_map(|(n, p)| Some(format!("p {} with {n} trials", format_p(p?))))
        .collect();
    let tests = match tests.as_slice() {
        [] => String::new(),
        some => format!("; {}", some.join(", ")),
    };
    let cost = least
        .ns_per_fault
        .map_or_else(String::new, |ns| format!(", {} per fault", format_ns(ns)));
    PREPARATION.one(format!(
            "Untouched buffers give {}{place}: {} against {}{tests}. A trial has {} page faults against {}{cost}. They are \
             slower in {} of {} settings.",
            format_ratio(&least.ratio, " of the throughput of zeroed ones"),
            response.format(least.medians.0),
            response.format(least.medians.1),
            significant(least.faults.0),
            significant(least.faults.1),
            points.iter().filter(costs).count(),
            points.len(),
        ),
    )
}
