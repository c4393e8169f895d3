//! Levels at the beginning and at the end of a trial that are too short for the test of a lasting shift: a full
//! cache, an exhausted credit, a slow start. In a longer trial they are a smaller share.

use iolab_stats::{Lasting, lasting_shifts, median};

/// Fewest values of a piece whose ends are searched for a short level.
const PIECE_MIN: usize = 100;
/// Fewest values of a short level at an end of a piece.
const VALUES_MIN: usize = 2;
/// Greatest length of a short level, as the inverse of its share of the piece.
const PARTS: usize = 5;
/// Values on either side of a change that are skipped, as the change takes that long.
const BETWEEN: usize = 2;
/// Number of values before and after the skipped ones that are compared.
const BESIDE: usize = 3;
/// Least share of a change that happens between the compared values: the rest of a decline is not a step.
const STEP_MIN: f64 = 0.5;
/// Least factor between all values of the level and nine tenths of the others of its piece.
const APART_MIN: f64 = 2.0;

/// Least factor between a single first value and all others of its piece, as when a cache fills up within that
/// interval.
const BURST_MIN: f64 = 5.0;

/// The places at which the level of an only trial changes, as indices of the first value of a new level. These
/// are the lasting shifts, and within the first and the last piece the longest beginning and the longest end
/// that lie apart. Values are logarithms.
pub(super) fn level_changes(values: &[f64], must: &Lasting) -> Option<Vec<usize>> {
    let mut places = lasting_shifts(values, must)?;
    let first = places.first().copied().unwrap_or(values.len());
    let last = places.last().copied().unwrap_or(0);
    if let Some(length) = apart(&values[..first]).or_else(|| burst(&values[..first])) {
        places.insert(0, length);
    }
    let from_the_end: Vec<f64> = values[last..].iter().rev().copied().collect();
    if let Some(length) = apart(&from_the_end) {
        places.push(values.len() - length);
    }
    let levels = [&[0], &places[..], &[values.len()]].concat();
    let is_step = |around: &[usize]| {
        let (before, after) = (around[0]..around[1], around[1]..around[2]);
        step(values, around[1])
            .zip(median(&values[after]).zip(median(&values[before])))
            .is_some_and(|(step, (after, before))| step / (after - before) >= STEP_MIN)
    };
    places.is_sorted().then(|| {
        let found = levels.windows(3).filter(|around| is_step(around));
        found.map(|around| around[1]).collect()
    })
}

/// Difference of the values after a place to those before it.
fn step(values: &[f64], place: usize) -> Option<f64> {
    let before = place.saturating_sub(BETWEEN).max(1);
    let after = (place + BETWEEN).min(values.len() - 1);
    let before = median(&values[before.saturating_sub(BESIDE)..before])?;
    Some(median(&values[after..(after + BESIDE).min(values.len())])? - before)
}

/// The length of the longest beginning whose values lie apart from the rest.
fn apart(piece: &[f64]) -> Option<usize> {
    let longest = piece.len() / PARTS;
    let far = APART_MIN.ln();
    let lies_apart = |begin: &[f64], (low, high): (f64, f64)| {
        begin.iter().all(|value| value - high >= far)
            || begin.iter().all(|value| low - value >= far)
    };
    // Range of some values without the `without` lowest and highest ones.
    let range = |values: &[f64], without: usize| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (sorted[without], sorted[sorted.len() - 1 - without])
    };
    // Quick check: the first values of any such beginning lie outside the middle range of the piece.
    let middle = || range(piece, piece.len() / 10 + longest);
    if piece.len() < PIECE_MIN || !lies_apart(&piece[..VALUES_MIN], middle()) {
        return None;
    }
    let is_apart = |length: &usize| {
        let (begin, others) = piece.split_at(*length);
        lies_apart(begin, range(others, others.len() / 10))
    };
    (VALUES_MIN..=longest).rev().find(is_apart)
}

/// The length of a beginning that is far above all other values: one value, or `None`.
fn burst(piece: &[f64]) -> Option<usize> {
    let (first, others) = piece.split_first()?;
    let highest = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (piece.len() >= PIECE_MIN && first - highest >= BURST_MIN.ln()).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUST: Lasting = Lasting {
        length: 10,
        shift: 0.22,
        alpha: 0.01,
    };

    fn changes(mb_s: impl Fn(usize) -> f64) -> Vec<usize> {
        let values: Vec<f64> = (0..200).map(|at| mb_s(at).ln()).collect();
        level_changes(&values, &MUST).expect("values")
    }

    #[test]
    fn short_ends_of_a_trial_are_levels() {
        // An exhausted credit, with one interval between both levels.
        assert_eq!(
            changes(|at| [12.3, 7.6, 1.2][usize::from(at > 5) + usize::from(at > 6)]),
            [7]
        );
        // A slow start, after which some intervals are slow too.
        let start = |at: usize| match at {
            0..6 => 100.0 * 1.3_f64.powi(at as i32),
            _ if at.is_multiple_of(30) => 150.0,
            _ => 1300.0,
        };
        assert_eq!(changes(start), [6]);
        assert_eq!(changes(|at| if at < 196 { 100.0 } else { 20.0 }), [196]);
        // The cache is full within the first interval.
        assert_eq!(changes(|at| if at == 0 { 3580.0 } else { 50.0 }), [1]);
    }

    #[test]
    fn a_smooth_decline_has_no_step() {
        for steepness in [1.0, 3.0, 10.0, 30.0, 100.0] {
            let part = |at: usize| at as f64 / 200.0;
            let noise = |at: usize| 1.0 + 0.02 * ((at * at + at / 3) % 5) as f64;
            let found = [
                changes(|at| noise(at) / (1.0 + steepness * part(at))),
                changes(|at| noise(at) * (1.0 - part(at) * steepness / (1.0 + steepness))),
                changes(|at| noise(at) * (-part(at) * steepness.ln_1p()).exp()),
                changes(|at| noise(at) * (1.0 + steepness * part(at))),
            ];
            assert!(found.iter().all(Vec::is_empty), "{steepness}: {found:?}");
        }
    }

    #[test]
    fn recurring_and_single_values_are_not_levels() {
        assert!(changes(|at| if at % 20 < 4 { 20.0 } else { 100.0 }).is_empty());
        assert!(changes(|at| if at == 0 { 1.0 } else { 100.0 }).is_empty());
        assert_eq!(changes(|at| if at < 50 { 100.0 } else { 20.0 }), [50]);
    }
}
