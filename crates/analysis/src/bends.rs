//! Bends of curves over I/O sizes, the thresholds of the machine at these sizes, and the sizes between that refine a curve.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{Analysis, Response};
use crate::claim::effect::{confidence, median_within};
use crate::curve::{Curve, Point, by_size};
use crate::io_limit::MachineThreshold;
use iolab_stats::{Breakpoint, Interval, LatencyBandwidth, fit_latency_bandwidth, fit_piecewise};

/// Fewest sizes of a curve for which a bend can be distinguished from scatter.
const POINTS_MIN: usize = 8;

/// Most sizes of a curve in which bends are searched. The cost of a fit grows with them, and the fit is repeated
/// many times.
const POINTS_MAX: usize = 256;

/// Most bends of one curve.
const BENDS_MAX: usize = 4;

/// Resamples for the interval of a bend: more hardly change it, and the fit is repeated for each.
const RESAMPLES: usize = 200;

/// An interval with a higher ratio of its ends does not locate a bend, and contains thresholds of any machine.
const INTERVAL_RATIO_MAX: f64 = 4.0;

/// Largest error at any size, as a share of the time, with which the model of a fixed cost and a bandwidth is
/// reported.
const MODEL_ERROR_MAX: f64 = 0.25;

/// A size at which a curve changes its slope.
#[derive(Debug, Clone, PartialEq)]
pub struct Bend {
    /// Position of the bend, bytes.
    pub size: f64,
    /// 95 % interval of the position, bytes, from resampled trials.
    pub interval: Option<Interval>,
    /// Exponent of the power law below it: 1 if the response doubles with the size, 0 if it stays constant.
    pub slope_before: f64,
    /// Exponent of the power law above it.
    pub slope_after: f64,
    /// Thresholds within the interval: a coincidence, not a proven cause.
    pub thresholds: Vec<MachineThreshold>,
}

/// Whether the ends of an interval are within a factor of 4.
fn is_placed(interval: &Interval) -> bool {
    interval.high <= INTERVAL_RATIO_MAX * interval.low
}

/// The curves over `bs` with enough sizes for bends, in the order of the definition.
pub fn bendable(analysis: &Analysis) -> Vec<Curve<'_>> {
    let mut curves = by_size(analysis, "bs");
    curves.retain(|curve| (POINTS_MIN..=POINTS_MAX).contains(&curve.points.len()));
    curves
}

/// The bends of all [`bendable`] curves of an analysis. Slow to compute, since each curve is fitted 200 times:
/// compute it once and pass it on.
#[derive(Debug, Clone, PartialEq)]
pub struct Bends(Vec<OfCurve>);
/// The fixed levels of one curve, which identify it, and its bends.
type OfCurve = (Vec<(String, String)>, Vec<Bend>);

impl Bends {
    /// Finds the bends with [`iolab_stats::fit_piecewise`], seeded by the run's seed so that the result is deterministic.
    pub fn of(analysis: &Analysis) -> Self {
        let of_curve = |curve: &Curve<'_>| (curve.held.clone(), find(analysis, curve));
        Self(bendable(analysis).iter().map(of_curve).collect())
    }

    /// The bends of one of the [`bendable`] curves that are shown, in ascending order: those whose interval
    /// spans at most a factor of 4. Empty for other curves.
    pub fn placed_on(&self, curve: &Curve<'_>) -> impl Iterator<Item = &Bend> {
        let own = self.0.iter().find(|(held, _)| *held == curve.held);
        let bends = own.into_iter().flat_map(|(_, bends)| bends);
        bends.filter(|bend| bend.interval.as_ref().is_some_and(is_placed))
    }

    /// The bends of all curves, curve by curve.
    pub fn iter(&self) -> impl Iterator<Item = &Bend> {
        self.0.iter().flat_map(|(_, bends)| bends)
    }
}

fn find(analysis: &Analysis, curve: &Curve<'_>) -> Vec<Bend> {
    let trials = curve.points.iter();
    let trials = trials.map(|point| (point.size as f64, point.cell.values.clone()));
    let trials: Vec<(f64, Vec<f64>)> = trials.collect();
    let bends = fit_piecewise(&trials, BENDS_MAX, RESAMPLES, analysis.seed).unwrap_or_default();
    let bend = |found: Breakpoint| {
        let placed = found.interval.filter(is_placed);
        let holds = |threshold: &&MachineThreshold| {
            let bytes = threshold.bytes as f64;
            placed.is_some_and(|ends| (ends.low..=ends.high).contains(&bytes))
        };
        let thresholds = analysis.machine_thresholds.iter().filter(holds);
        Bend {
            size: found.x,
            interval: found.interval,
            slope_before: found.slope_before,
            slope_after: found.slope_after,
            thresholds: thresholds.copied().collect(),
        }
    };
    bends.into_iter().map(bend).collect()
}

/// Time of a request as `t0 + size / bandwidth`, in ns and bytes, fitted to the medians of a curve of
/// throughput. The error is the greatest distance from either end of the medians' simultaneous 95 % intervals.
///
/// `None` with more than one request in flight (times overlap), with too few trials for an interval, or if the
/// error at any size exceeds a quarter of the time.
pub fn fixed_cost(analysis: &Analysis, curve: &Curve<'_>) -> Option<LatencyBandwidth> {
    let in_flight = |point: &Point<'_>| point.cell.cell.trial().in_flight_of_all();
    let one_at_a_time = curve.points.iter().all(|point| in_flight(point) == 1);
    if analysis.response != Response::Throughput || !one_at_a_time {
        return None;
    }
    let points = curve.points.iter().map(|point| {
        let size = point.size as f64;
        (size, size * 1e3 / point.summary.median)
    });
    let (sizes, times): (Vec<f64>, Vec<f64>) = points.unzip();
    let fit = fit_latency_bandwidth(&sizes, &times)?;
    let confidence = confidence(curve.points.len());
    let error = |point: &Point<'_>| {
        let (low, high) = median_within(&point.cell.values, confidence)?;
        let size = point.size as f64;
        let modelled = fit.t0 + size / fit.bandwidth;
        let off = |mb_s: f64| (modelled * mb_s / (size * 1e3) - 1.0).abs();
        Some(off(low).max(off(high)))
    };
    let errors: Option<Vec<f64>> = curve.points.iter().map(error).collect();
    let relative_error_max = errors?.into_iter().fold(0.0, f64::max);
    (relative_error_max <= MODEL_ERROR_MAX).then_some(LatencyBandwidth {
        relative_error_max,
        ..fit
    })
}

/// Smaller sizes are multiples of eight bytes, others of a KiB.
const SMALL: u64 = 4 << 10;

/// Sizes from this on are multiples of 4 KiB.
const LARGE: u64 = 64 << 10;

/// Finer sizes that are not measured yet, in ascending order.
///
/// The gap of the grid with a bend gets `finer` sizes. The two gaps next to a best size, or next to a bend at a
/// size, get half of that each. Sizes are spaced geometrically and rounded to multiples of eight bytes, of a KiB
/// from 4 KiB and of 4 KiB from 64 KiB on. They are always multiples of `unit`, the alignment of direct I/O in
/// bytes, or 1. Duplicates after rounding are dropped.
pub fn finer_sizes(analysis: &Analysis, finer: u32, unit: u64) -> Vec<u64> {
    let curves = by_size(analysis, "bs");
    let points = curves.iter().flat_map(|curve| &curve.points);
    let grid: BTreeSet<u64> = points.map(|point| point.size).collect();
    let grid: Vec<u64> = grid.into_iter().collect();
    let mut gaps = Gaps {
        grid: &grid,
        wanted: BTreeMap::new(),
    };
    for bend in Bends::of(analysis).iter() {
        gaps.want(bend.size, finer);
    }
    let best = |curve: &Curve<'_>| Some(curve.best(analysis.response)?.size);
    for size in curves.iter().filter_map(best) {
        gaps.want(size as f64, finer);
    }
    gaps.sizes(unit.max(1))
}

/// The gaps between adjacent sizes of the grid, with the number of sizes wanted in each; gap 0 lies above the first size.
struct Gaps<'a> {
    grid: &'a [u64],
    wanted: BTreeMap<usize, u32>,
}

impl Gaps<'_> {
    fn want(&mut self, place: f64, finer: u32) {
        let above = self.grid.partition_point(|size| (*size as f64) <= place);
        // The number of sizes up to the position: the gap below it has one index less.
        let Some(below) = above.checked_sub(1) else {
            return;
        };
        let last = self.grid.len() - 1;
        let on_a_size = self.grid[below] as f64 == place;
        match (on_a_size, below) {
            (false, _) if below < last => self.at_least(below, finer),
            (true, 0) if last > 0 => self.at_least(0, finer),
            (true, _) if below == last && last > 0 => self.at_least(last - 1, finer),
            (true, _) if last > 0 => {
                self.at_least(below - 1, finer.div_ceil(2));
                self.at_least(below, finer / 2);
            }
            _ => {}
        }
    }

    fn at_least(&mut self, gap: usize, count: u32) {
        let wanted = self.wanted.entry(gap).or_default();
        *wanted = (*wanted).max(count);
    }

    fn sizes(&self, unit: u64) -> Vec<u64> {
        let mut sizes = BTreeSet::new();
        for (&gap, &count) in &self.wanted {
            let (low, high) = (self.grid[gap], self.grid[gap + 1]);
            let step = high as f64 / low as f64;
            for number in 1..=count {
                let share = f64::from(number) / f64::from(count + 1);
                sizes.insert(rounded(low as f64 * step.powf(share), unit));
            }
        }
        // Rounding may give the ends of the gap, or exceed them.
        let (first, last) = (self.grid.first(), self.grid.last());
        sizes.retain(|size| {
            first.is_some_and(|first| first < size)
                && last.is_some_and(|last| size < last)
                && self.grid.binary_search(size).is_err()
        });
        sizes.into_iter().collect()
    }
}

fn rounded(size: f64, unit: u64) -> u64 {
    let coarse = match size {
        s if s < SMALL as f64 => 8,
        s if s < LARGE as f64 => 1 << 10,
        _ => 4 << 10,
    };
    // Alignments are powers of two, so that the larger is a multiple of the other.
    let unit = unit.max(coarse);
    (size / unit as f64).round() as u64 * unit
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gaps(grid: &[u64], places: &[f64], finer: u32, unit: u64) -> Vec<u64> {
        let mut gaps = Gaps {
            grid,
            wanted: BTreeMap::new(),
        };
        places.iter().for_each(|place| gaps.want(*place, finer));
        gaps.sizes(unit)
    }

    const GRID: [u64; 5] = [512, 1024, 2048, 4096, 8192];

    #[test]
    fn a_bend_is_surrounded_within_its_gap() {
        assert_eq!(gaps(&GRID, &[1500.0], 1, 1), [1448]);
        assert_eq!(gaps(&GRID, &[1500.0], 3, 1), [1216, 1448, 1720]);
        assert_eq!(gaps(&GRID, &[1100.0, 2000.0], 1, 1), [1448]);
    }

    #[test]
    fn a_best_size_is_surrounded_on_both_sides() {
        assert_eq!(gaps(&GRID, &[2048.0], 2, 1), [1448, 2896]);
        assert_eq!(gaps(&GRID, &[2048.0], 3, 1).len(), 3);
        assert_eq!(gaps(&GRID, &[2048.0], 1, 1), [1448]);
        // The first and the last size have a gap on one side only.
        assert_eq!(gaps(&GRID, &[512.0], 1, 1), [728]);
        assert_eq!(gaps(&GRID, &[8192.0], 2, 1), [5 << 10, 6 << 10]);
        // Positions outside the grid are ignored.
        assert!(gaps(&GRID, &[100.0, 9000.0], 4, 1).is_empty());
        assert!(gaps(&[4096], &[4096.0], 4, 1).is_empty());
        assert!(gaps(&[], &[4096.0], 4, 1).is_empty());
    }

    #[test]
    fn there_is_nothing_between_eight_and_sixteen_bytes() {
        assert!(gaps(&[8, 16, 32], &[10.0], 4, 1).is_empty());
        assert_eq!(gaps(&[8, 16, 32], &[20.0], 4, 1), [24]);
        assert!(gaps(&[4096, 8192], &[5000.0], 4, 4096).is_empty());
    }

    proptest! {
        #[test]
        fn finer_sizes_are_new_aligned_and_inside(
            powers in proptest::collection::btree_set(3u32..30, 2..12),
            places in proptest::collection::vec(0f64..1.0, 1..6),
            finer in 1u32..=32,
            unit in 0u32..13,
        ) {
            let unit = 1u64 << unit;
            let grid: Vec<u64> = powers.iter().map(|p| (1u64 << p).max(unit)).collect::<BTreeSet<_>>().into_iter().collect();
            let (low, high) = (grid[0] as f64, grid[grid.len() - 1] as f64);
            let at: Vec<f64> = places.iter().map(|p| low * (high / low).powf(*p)).collect();
            let sizes = gaps(&grid, &at, finer, unit);
            prop_assert!(sizes.len() <= 2 * finer as usize * places.len());
            prop_assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
            for size in sizes {
                prop_assert!(size > grid[0] && size < grid[grid.len() - 1]);
                prop_assert!(!grid.contains(&size) && size % unit == 0 && size % 8 == 0);
            }
        }
    }
}
