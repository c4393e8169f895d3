//! Only trials from their beginning (`--soak`) without a step: those that keep their level, with the smallest
//! detectable change, and those that do not.
//!
//! To find that change, changes are added to the trial itself, so that its own scatter and dependence decide: no
//! model of them is needed.

use std::collections::BTreeMap;

use super::gradual::{Gradual, gradual};
use super::recurring_changes::{INTERVALS_MIN, logarithms, only_trials};
use super::short_levels::level_changes;
use super::{is_free, lasting};
use iolab_record::RunRecord;

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
    let asked = asked.filter(|cell| !changed(cell.id));
    // Trials that are imported or made by another tool may have no course.
    let courses: Vec<(i64, Vec<f64>)> = asked
        .filter_map(|cell| Some((cell.id, logarithms(&only.get(&cell.id)?.points)?)))
        .collect();
    let tested = courses.len();
    let found: BTreeMap<i64, Gradual> = courses
        .iter()
        .filter_map(|(cell, course)| Some((*cell, gradual(course, tested)?)))
        .collect();
    let kept = courses
        .into_iter()
        .filter(|(cell, _)| !found.contains_key(cell));
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
    let is_seen = |factor: &f64| {
        let by = factor.ln();
        QUARTERS
            .into_iter()
            .all(|quarters| is_found(quarters, by) && is_found(quarters, -by))
    };
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
    let is_seen = |factor: &f64| is_found(factor.ln()) && is_found(-factor.ln());
    FACTORS.into_iter().find(is_seen)
}
