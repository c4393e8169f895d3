//! Trials without a step: a drift, tenths that differ, or the same level from their beginning.
//!
//! To find the smallest detectable change, changes are added to the trial itself, so that its own scatter and dependence decide: no
//! model of them is needed.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::recurring_changes::{INTERVALS_MIN, level_changes, logarithms, only_trials};
use super::{FACTOR_MIN, is_free, lasting};
use iolab_record::RunRecord;
use iolab_stats::{mann_kendall, median, spread_within};

/// Parts of a trial that are compared.
const PARTS: usize = 10;

/// Fewest values: with fewer, tenths of dependent values differ too often.
const VALUES_MIN: usize = 100;

/// Level of the test for a trend of the tenths, over all trials of a run.
const ALPHA: f64 = 0.001;

/// Least distance between the first and the last tenth of a trend, in standard deviations within the tenths.
const TREND_SEPARATION: f64 = 4.0;

/// Least distance between the lowest and the highest tenth where there is no trend, likewise.
const RANGE_SEPARATION: f64 = 8.0;

/// Throughput that is not constant over a trial, though no step is found in it: medians of tenths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gradual {
    /// Throughput of the first tenth, MB/s.
    pub first_mb_s: f64,
    /// Throughput of the last tenth, MB/s.
    pub last_mb_s: f64,
    /// Throughput of the lowest tenth, MB/s.
    pub lowest_mb_s: f64,
    /// Throughput of the highest tenth, MB/s.
    pub highest_mb_s: f64,
    /// Whether it falls or rises without a jump back: by the test of Mann and Kendall, or because the first and the last tenth
    /// are the highest and the lowest.
    pub has_direction: bool,
}

/// Gradual course of the logarithms of throughput in one of `trials` trials. `None` if they show a constant
/// level, or are fewer than 100.
///
/// False positives by simulation (a test below, with 1000 series each of 100 and 200 values and of standard
/// deviation up to 0.4): at most 0.5 % of independent series, and of first-order autoregressive ones with a
/// coefficient of 0.6. With coefficients of 0.8 and 0.9 at most 1 % and 4 %.
pub(super) fn gradual(values: &[f64], trials: usize) -> Option<Gradual> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let bounds = |part: usize| part * values.len() / PARTS;
    let parts = (0..PARTS).map(|part| &values[bounds(part)..bounds(part + 1)]);
    let parts: Vec<&[f64]> = parts.collect();
    let medians: Option<Vec<f64>> = parts.iter().map(|part| median(part)).collect();
    let medians = medians?;
    let (first, last) = (medians[0], medians[PARTS - 1]);
    let lowest = medians.iter().copied().reduce(f64::min)?;
    let highest = medians.iter().copied().reduce(f64::max)?;
    // The median, since a tenth that holds a jump scatters by the jump.
    let spreads: Option<Vec<f64>> = parts.iter().map(|part| spread_within(&[part])).collect();
    let spread = median(&spreads?)?;
    let is_apart = |difference: f64, separation: f64| {
        difference.abs() >= FACTOR_MIN.ln().max(separation * spread)
    };
    let trend = mann_kendall(&medians)
        .filter(|trend| trend.p * trials.max(1) as f64 <= ALPHA)
        .filter(|_| is_apart(last - first, TREND_SEPARATION));
    let turns = medians.windows(2).any(|pair| {
        let change = pair[1] - pair[0];
        change * (last - first) < 0.0 && is_apart(change, TREND_SEPARATION)
    });
    // One that reaches a level early has ties, or no order, for the rest of its time.
    let has_direction =
        trend.is_some() || [(first, last), (last, first)].contains(&(highest, lowest));
    let is_shown = trend.is_some() || is_apart(highest - lowest, RANGE_SEPARATION);
    is_shown.then(|| Gradual {
        first_mb_s: first.exp(),
        last_mb_s: last.exp(),
        lowest_mb_s: lowest.exp(),
        highest_mb_s: highest.exp(),
        has_direction: has_direction && !turns,
    })
}

/// Factors that are tried, in ascending order, from a little above the smallest reported change.
const FACTORS: [f64; 7] = [1.3, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0];

/// Quarters of the trial before the change that is added.
const QUARTERS: [usize; 3] = [1, 2, 3];

/// The only trial of a cell, without a change of its level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unchanged {
    /// The cell.
    pub cell: i64,
    /// The least tried factor by which a rise, and a fall, is found at the end of any quarter of the trial;
    /// `None` if 20 is not found.
    pub factor: Option<f64>,
    /// The least tried factor by which a steady rise, and a steady fall, over the whole trial is found; `None`
    /// if 20 is not found.
    pub drift: Option<f64>,
}

/// The cells of a run without warm-ups that have one trial with a course, limited by the storage, and no
/// detected change. First those that keep their level, then those that do not.
pub(super) fn without_step(
    record: &RunRecord,
    changed: impl Fn(i64) -> bool,
) -> (Vec<Unchanged>, BTreeMap<i64, Gradual>) {
    let only = only_trials(record);
    let asked = record.cells.iter();
    // The level of one group may change although the sum of all groups does not, and the reverse.
    let asked = asked.filter(|cell| is_free(cell) && !cell.spec.has_groups());
    // Trials that are imported or made by another tool may have no course.
    let course = |cell: i64| Some((cell, logarithms(&only.get(&cell)?.rates())?));
    let unchanged = asked.map(|cell| cell.id).filter(|cell| !changed(*cell));
    let courses: Vec<(i64, Vec<f64>)> = unchanged.filter_map(course).collect();
    let tested = courses.len();
    let found = courses.iter();
    let found = found.filter_map(|(cell, course)| Some((*cell, gradual(course, tested)?)));
    let found: BTreeMap<i64, Gradual> = found.collect();
    let kept = courses.into_iter();
    let kept = kept.filter(|(cell, _)| !found.contains_key(cell));
    let kept = kept.map(|(cell, course)| {
        let is_long = course.len() >= INTERVALS_MIN;
        Unchanged {
            cell,
            factor: is_long.then(|| found_from(&course, tested)).flatten(),
            drift: is_long.then(|| drift_found_from(&course, tested)).flatten(),
        }
    });
    (kept.collect(), found)
}

/// The least step, as a factor, that the test finds in a course.
fn found_from(course: &[f64], tested: usize) -> Option<f64> {
    let is_found = |quarters: usize, by: f64| {
        let place = course.len() * quarters / 4;
        let mut changed = course.to_vec();
        changed[place..].iter_mut().for_each(|value| *value += by);
        let found = level_changes(&changed, &lasting(changed.len(), tested)).unwrap_or_default();
        let near = course.len() / 10;
        found.iter().any(|one| one.abs_diff(place) <= near) || gradual(&changed, tested).is_some()
    };
    least(|by| QUARTERS.into_iter().all(|quarters| is_found(quarters, by)))
}

/// The least factor that is found as a rise and as a fall, by its logarithm.
fn least(is_found: impl Fn(f64) -> bool) -> Option<f64> {
    let is_seen = |factor: &f64| is_found(factor.ln()) && is_found(-factor.ln());
    FACTORS.into_iter().find(is_seen)
}

/// The least factor of a drift that is found, as a drift or as a step.
fn drift_found_from(course: &[f64], tested: usize) -> Option<f64> {
    let is_found = |by: f64| {
        let last = (course.len() - 1).max(1) as f64;
        let slope = (0..course.len()).map(|at| by * at as f64 / last);
        let changed: Vec<f64> = course.iter().zip(slope).map(|(own, by)| own + by).collect();
        gradual(&changed, tested).is_some()
            || level_changes(&changed, &lasting(changed.len(), tested))
                .is_some_and(|found| !found.is_empty())
    };
    least(is_found)
}
