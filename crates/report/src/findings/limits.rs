//! Limits of this study that follow from its design: settings that did not vary, questions that were not asked.

use super::{Finding, Rule};
use crate::group_settings;
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_workload::trial::CacheState;

pub(crate) const NO_GIVEN_LOAD: Rule = Rule::limit("no-given-load", "the rate of each cell");
pub(crate) const ONE_CACHE_STATE: Rule =
    Rule::limit("one-cache-state", "the cache state of each cell");

/// The limits of all runs together.
pub fn limits(analyses: &[&Analysis]) -> Vec<Finding> {
    let rules = [no_given_load, one_cache_state];
    rules.iter().filter_map(|rule| rule(analyses)).collect()
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
