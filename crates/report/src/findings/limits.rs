//! Limits of this study from runs, whatever they found: what was not varied, not touched, not asked.

use std::collections::BTreeSet;

use super::{Finding, Rule};
use crate::group_settings;
use iolab_analysis::analysis::{Analysis, CellAnalysis, MeasuredTarget};
use iolab_workload::settings::CellSpec;
use iolab_workload::target::TargetName;
use iolab_workload::trial::CacheState;
use iolab_workload::units::format_size;

pub(crate) const ONE_PLACE: Rule = Rule::limit("one-place", "the targets of the runs");
pub(crate) const UNTOUCHED: Rule = Rule::limit("untouched", "the region of each cell");
pub(crate) const NO_GIVEN_LOAD: Rule = Rule::limit("no-given-load", "the rate of each cell");
pub(crate) const ONE_CACHE_STATE: Rule =
    Rule::limit("one-cache-state", "the cache state of each cell");

/// The limits of all runs together.
pub fn limits(analyses: &[&Analysis]) -> Vec<Finding> {
    let rules = [one_place, untouched, no_given_load, one_cache_state];
    rules.iter().filter_map(|rule| rule(analyses)).collect()
}

/// What was measured is one target, once: it speaks for no other.
pub fn one_place<'a>(analyses: &[&'a Analysis]) -> Option<Finding> {
    measured(analyses).next()?;
    let of = |analysis: &&'a Analysis| -> BTreeSet<&'a str> {
        let own = |named: Option<&'a TargetName>| {
            named.map_or(analysis.target.as_str(), TargetName::as_str)
        };
        let named = |cell: &'a CellAnalysis| cell.cell.spec.targets();
        analysis.cells.iter().flat_map(named).map(own).collect()
    };
    let targets: BTreeSet<&str> = analyses.iter().flat_map(of).collect();
    let (what, its, it) = match targets.len() {
        1 => ("One target was measured".to_owned(), "its", "it"),
        n => (format!("{n} targets were measured"), "their", "them"),
    };
    limit(
        ONE_PLACE,
        format!(
            "{what}, in {its} state at that time: the intervals apply to repetitions on {it}, not to other devices, nor to a fuller, older or warmer one."
        ),
    )
}

/// No trial touched more than a part of what there is; nothing where each target is a device of which trials touched all.
pub fn untouched(analyses: &[&Analysis]) -> Option<Finding> {
    if analyses.iter().all(|analysis| is_swept_whole(analysis)) {
        return None;
    }
    let most = measured(analyses).map(|c| c.cell.trial().region).max()?;
    limit(
        UNTOUCHED,
        format!(
            "Regions larger than {} were not measured; they may exceed the device's own caches and tables.",
            format_size(most)
        ),
    )
}

/// Whether a region of some cell covers each target up to less than one request.
fn is_swept_whole(analysis: &Analysis) -> bool {
    let only = [analysis];
    let swept = |named: &str| {
        let cells = measured(&only);
        let is_there = |one: Option<&TargetName>| analysis.target_of(one) == named;
        let end = |cell: &CellAnalysis| covered(&cell.cell.spec, is_there);
        cells.map(end).max().unwrap_or(0)
    };
    let mut targets = analysis.targets.iter();
    let whole = |target: &MeasuredTarget| {
        let largest = target.largest_region;
        largest.is_some_and(|largest| swept(&target.name) > largest)
    };
    !analysis.targets.is_empty() && targets.all(whole)
}

/// Bytes of a target that the groups that use it cover without a gap, and those of a request.
fn covered(spec: &CellSpec, is_there: impl Fn(Option<&TargetName>) -> bool) -> u64 {
    let mut trials = spec.trials_on(is_there);
    trials.sort_by_key(|trial| trial.offset);
    let first = trials.first().map_or(0, |trial| trial.offset);
    let mut end = first;
    for trial in &trials {
        if trial.offset > end {
            break;
        }
        end = end.max(trial.offset.saturating_add(trial.region));
    }
    let bs = trials.iter().map(|trial| trial.bs).max().unwrap_or(0);
    (end - first).saturating_add(bs)
}

/// All requests were made in a closed loop.
pub fn no_given_load(analyses: &[&Analysis]) -> Option<Finding> {
    let latencies = measured(analyses).filter(|c| c.latency.is_some()).count();
    let rates = measured(analyses).any(|c| c.cell.trial().has_rate());
    (latencies > 0 && !rates).then_some(())?;
    limit(NO_GIVEN_LOAD, "All requests were issued in a closed loop, so latencies are service times. --rate measures the response time at a given load.".to_owned(),
    )
}

/// Only one state of the page cache was measured.
pub fn one_cache_state(analyses: &[&Analysis]) -> Option<Finding> {
    let trials = measured(analyses).flat_map(|c| c.cell.spec.trials());
    let mut states = trials.map(|trial| trial.cache);
    let only = states.next()?;
    states.all(|state| state == only).then_some(())?;
    let other = match only {
        CacheState::Direct => {
            "programs that use the page cache get other results, often higher ones".to_owned()
        }
        _ => format!(
            "storage without the page cache was not measured ({} measures it)",
            group_settings::direct(measured(analyses), |_| true)
        ),
    };
    limit(
        ONE_CACHE_STATE,
        format!("Everything was measured with cache={only}: {other}."),
    )
}

/// The cells with measured trials in which iolab itself issued the requests.
fn measured<'a>(analyses: &[&'a Analysis]) -> impl Iterator<Item = &'a CellAnalysis> {
    let cells = analyses.iter().flat_map(|a| &a.cells);
    cells.filter(|c| c.n > 0 && !c.cell.spec.runs_program())
}

fn limit(rule: Rule, text: String) -> Option<Finding> {
    Some(Finding { rule, text })
}
