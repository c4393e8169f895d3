//! The best size of a curve, with its uncertainty.

use iolab_stats::{Resampler, median};

use crate::curve::Curve;
use iolab_workload::response::Response;

/// Number of resamples that the interval is computed from.
const RESAMPLES: usize = 1000;
/// Share of the resamples outside the interval at either end.
const TAIL: f64 = 0.025;
/// Fewest trials of every size; resampling fewer is meaningless.
const TRIALS_MIN: usize = 6;

/// The best size of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Optimum {
    /// The size with the best median, bytes.
    pub size: u64,
    /// Lowest and highest size of its 95 % interval, bytes; `None` with too few trials.
    pub interval: Option<(u64, u64)>,
}

/// The best size of a curve, with the percentile bootstrap interval of the position of the maximum. 1000 times,
/// the trials of each size are resampled with replacement, and the size with the best median is recorded. The
/// interval contains the 2.5th to the 97.5th percentile of these sizes, and only measured sizes.
///
/// Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ch. 13.
///
/// Equal seeds give equal intervals. `None` for a curve without points.
pub fn optimum(curve: &Curve<'_>, response: Response, seed: u64) -> Option<Optimum> {
    let best = curve.best(response)?.size;
    let few = |point: &crate::curve::Point<'_>| point.cell.values.len() < TRIALS_MIN;
    let interval = (!curve.points.iter().any(few)).then(|| interval(curve, response, seed));
    Some(Optimum {
        size: best,
        interval: interval.flatten(),
    })
}

fn interval(curve: &Curve<'_>, response: Response, seed: u64) -> Option<(u64, u64)> {
    let mut draws = Resampler::new(seed);
    let mut drawn = Vec::new();
    let mut best: Vec<u64> = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let mut winner: Option<(f64, u64)> = None;
        for point in &curve.points {
            draws.resample(&point.cell.values, &mut drawn);
            let worth = response.worth(median(&drawn)?);
            // Of equal values, prefers the smaller size, like the curve itself: the points ascend.
            if winner.is_none_or(|(most, _)| worth > most) {
                winner = Some((worth, point.size));
            }
        }
        best.extend(winner.map(|(_, size)| size));
    }
    best.sort_unstable();
    let tail = (TAIL * best.len() as f64) as usize;
    Some((*best.get(tail)?, *best.get(best.len() - 1 - tail)?))
}
