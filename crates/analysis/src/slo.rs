//! The greatest rate at which service levels hold: a search that treats noise as noise.
//!
//! Pure: the search says which rate comes next, receives the result of a trial at it, and says at the end between which rates
//! the limit lies. What carries the trials out is elsewhere; the tests simulate it.

mod search;
#[cfg(test)]
mod tests;
mod values;

pub use search::{Limit, RatePoint, Search, Step};
pub use values::{LevelValues, level_values};

use std::collections::BTreeMap;

use iolab_record::{RunRecord, SampleLatency};
use iolab_spec::Result;
use iolab_spec::level::Levels;
use iolab_spec::trial::RATE_MAX;

use crate::fitness::{keeps, times_of_samples};

/// The measured trials of a run, in the order of time: the rate of each, and whether it kept all levels.
///
/// # Errors
/// The first of `latencies`.
pub fn visits(
    levels: &Levels,
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<Vec<(u64, bool)>> {
    let rates: BTreeMap<i64, u64> = record
        .cells
        .iter()
        .filter_map(|cell| Some((cell.id, cell.trial().rate?.requests()?)))
        .collect();
    let mut times = times_of_samples(latencies)?;
    let measured = record.samples.iter().filter(|sample| sample.is_measured());
    Ok(measured
        .filter_map(|sample| {
            let times = times.remove(&sample.id).unwrap_or_default();
            let rate = rates.get(&sample.cell)?;
            Some((*rate, keeps(levels.all(), sample, times)))
        })
        .collect())
}

/// Between which rates the limit of a run lies.
///
/// # Errors
/// As [`visits`].
pub fn limit(
    levels: &Levels,
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<Limit> {
    let mut search = Search::new(1, 1, RATE_MAX, record.run.seed);
    for (rate, kept) in visits(levels, record, latencies)? {
        search.recall(rate, kept);
    }
    Ok(search.limit())
}
