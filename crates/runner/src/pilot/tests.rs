//! Constraints on allocations, and the coverage of the intervals that runs end with, by simulation.

use super::super::stopping_rule::{Ended, Repetition};
use super::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Duration;

fn design() -> Design {
    Design {
        trials_min: 6,
        trials_max: 30,
        precision: 0.05,
        budget: Duration::from_secs(60),
        ..Design::default()
    }
}

fn units(spreads: &[f64]) -> Vec<Unit> {
    let unit = |spread: &f64| Unit {
        spread: *spread,
        cost: 0.2,
    };
    spreads.iter().map(unit).collect()
}

fn time(shares: &[Share], units: &[Unit]) -> f64 {
    let pairs = shares.iter().zip(units);
    pairs
        .map(|(share, unit)| f64::from(share.visits) * unit.cost)
        .sum()
}

#[test]
fn time_goes_to_cells_with_spread() {
    let units = units(&[0.01, 0.02, 0.08, 0.01]);
    let shares = allocate(&units, &design(), 20.0);
    let visits: Vec<u32> = shares.iter().map(|share| share.visits).collect();
    assert_eq!((visits[0], visits[1], visits[3]), (1, 1, 1), "{visits:?}");
    assert!(visits[2] > 1, "{visits:?}");
    assert!(shares.iter().all(|share| share.reaches), "{shares:?}");
}

#[test]
fn unreachable_goals_take_no_time_from_reachable_ones() {
    // The last two cells would need far more than the budget.
    let units = units(&[0.05, 0.05, 0.3, 0.5]);
    let shares = allocate(&units, &design(), 5.0);
    assert!(shares[0].reaches && shares[1].reaches, "{shares:?}");
    assert!(!shares[2].reaches && !shares[3].reaches, "{shares:?}");
    assert_eq!((shares[2].needed, shares[3].needed), (None, None));
    assert!(shares.iter().all(|share| share.visits >= 1));
}

#[test]
fn an_allocation_fits_budget_and_most_trials() {
    for (spreads, left) in [
        (&[0.02, 0.06, 0.07, 0.12][..], 10.0),
        (&[0.1; 12], 15.0),
        (&[0.2, 0.01], 100.0),
        (&[f64::INFINITY, 0.05], 10.0),
        (&[0.0, 0.0], 10.0),
    ] {
        let units = units(spreads);
        let shares = allocate(&units, &design(), left);
        assert!(shares.iter().all(|share| share.visits >= 1), "{shares:?}");
        // At least two blocks are paid for.
        assert!(2.0 * time(&shares, &units) <= left + 1e-9, "{shares:?}");
        assert!(
            shares
                .iter()
                .all(|share| BLOCKS + 2 * share.visits <= 30 + 2)
        );
    }
    // Without room for two blocks nothing is chosen.
    let poor = allocate(&units(&[0.2; 4]), &design(), 1.0);
    assert!(poor.iter().all(|share| share.visits == 1 && !share.reaches));
}

#[test]
fn a_stall_does_not_make_cells_wild() {
    let steady = vec![100.0, 101.0, 99.0, 100.5, 20.0];
    let others = vec![vec![100.0, 103.0, 97.0, 101.0, 99.0]; 5];
    let spreads = spreads(&[vec![steady], others].concat());
    assert!(spreads[0] < 0.03, "{spreads:?}");
}

/// A study of cells of many spreads, repeated to its end with the pilot and without it: how many cells reach the goal, and of the
/// intervals that it ends with how many hold the true median.
struct Study {
    random: Xoshiro256PlusPlus,
    intervals: u32,
    held: u32,
    reached: u32,
}

impl Study {
    fn new(seed: u64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            intervals: 0,
            held: 0,
            reached: 0,
        }
    }

    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// One run of 12 cells: lognormal values, and every twentieth trial is a stall that takes twice as long.
    fn run(&mut self, has_pilot: bool) {
        const CELLS: usize = 12;
        const COST: f64 = 0.19;
        let spreads: Vec<f64> = (0..CELLS)
            .map(|_| 0.06 * (0.6 * self.normal()).exp())
            .collect();
        let design = Design {
            trials_max: 60,
            budget: Duration::from_secs_f64(13.0 * COST * CELLS as f64),
            ..design()
        };
        let mut run = Repetition::new(design, CELLS);
        let mut visits = [1u32; CELLS];
        run.spend(Duration::from_secs_f64(COST * CELLS as f64));
        let ended = (0u32..).find_map(|block| {
            if has_pilot && block == BLOCKS {
                let values = (0..CELLS).map(|cell| run.values(cell).expect("open").to_vec());
                let spreads = super::spreads(&values.collect::<Vec<_>>());
                let units: Vec<Unit> = spreads
                    .into_iter()
                    .map(|spread| Unit { spread, cost: COST })
                    .collect();
                let shares = allocate(&units, &design, run.left().as_secs_f64());
                for (visits, share) in visits.iter_mut().zip(shares) {
                    *visits = share.visits;
                }
                let block = COST * f64::from(visits.iter().sum::<u32>());
                run.block_took(Duration::from_secs_f64(block));
            }
            if let Some(ended) = run.ends().filter(|_| block > 0) {
                return Some(ended);
            }
            let mut took = 0.0;
            for cell in 0..CELLS {
                for _ in 0..visits[cell] {
                    let stall = if self.uniform() < 0.05 { 0.5 } else { 1.0 };
                    let value = (spreads[cell] * self.normal()).exp();
                    run.measured(cell, value * stall);
                    took += COST;
                }
            }
            run.spend(Duration::from_secs_f64(took));
            run.block_took(Duration::from_secs_f64(took));
            None
        });
        let ended = ended.unwrap_or(Ended::Budget);
        assert!(matches!(
            ended,
            Ended::Budget | Ended::Precision | Ended::Trials
        ));
        for (cell, spread) in spreads.iter().enumerate() {
            let values = run.values(cell).expect("open");
            let Some(interval) = iolab_stats::median_interval(values, 0.95) else {
                continue;
            };
            let truth = true_median(*spread);
            self.intervals += 1;
            self.held += u32::from(interval.low <= truth && truth <= interval.high);
            self.reached += u32::from(run.is_precise(cell));
        }
    }
}

/// The median of the mixture, by bisection: below it lie half of 95 % of the values and of 5 % that are half as large.
fn true_median(spread: f64) -> f64 {
    let below = |x: f64, centre: f64| {
        let z = (x / centre).ln() / spread;
        0.5 * (1.0 + erf(z / std::f64::consts::SQRT_2))
    };
    let share = |x: f64| 0.95 * below(x, 1.0) + 0.05 * below(x, 0.5);
    let (mut low, mut high) = (0.4, 1.1);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if share(middle) < 0.5 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Abramowitz and Stegun, 7.1.26: to 1.5e-7.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let terms = [
        1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592,
    ];
    let sum = terms.iter().fold(0.0, |sum, term| (sum + term) * t);
    (1.0 - sum * (-x * x).exp()).copysign(x)
}

/// The pilot chooses by the spread and never by the place, and its trials count: the intervals must hold the median as often as
/// without it, and more cells must reach the goal.
#[test]
fn the_pilot_keeps_coverage_and_narrows_more_cells() {
    let (mut with, mut without) = (Study::new(17), Study::new(17));
    for _ in 0..400 {
        with.run(true);
        without.run(false);
    }
    let share = |part: u32, of: &Study| f64::from(part) / f64::from(of.intervals);
    let (held, before) = (share(with.held, &with), share(without.held, &without));
    let (reached, once) = (share(with.reached, &with), share(without.reached, &without));
    let found = format!(
        "coverage {held:.3} with, {before:.3} without; within the goal {reached:.3} with, {once:.3} without"
    );
    // 4800 intervals: the standard error of a share of 0.95 is 0.003.
    assert!(held >= 0.945, "{found}");
    assert!(reached > once + 0.02, "{found}");
}

const LIMIT: Duration = Duration::from_millis(180);

fn profiles(ratios: [f64; 5]) -> Vec<Profile> {
    let of = |ratio: f64| Profile {
        beginnings: [Some(ratio); 3],
        overhead: 0.01,
    };
    ratios.map(of).to_vec()
}

#[test]
fn trials_that_differ_as_wholes_become_shortest() {
    let steady = profiles([0.001, -0.002, 0.0, 0.002, -0.001]);
    let found = shorter(&steady, LIMIT, 0.1, 0.05).expect("a shorter length");
    assert_eq!(found.time, Duration::from_millis(20));
    assert!((0.1..0.102).contains(&found.spread), "{}", found.spread);
}

#[test]
fn a_beginning_that_differs_keeps_the_length() {
    let burst = profiles([0.27, 0.25, 0.26, 0.28, 0.24]);
    assert_eq!(shorter(&burst, LIMIT, 0.1, 0.05), None);
    // Nor if it may differ: the interval reaches beyond the goal.
    let unsure = profiles([0.06, -0.05, 0.0, 0.05, -0.06]);
    assert_eq!(shorter(&unsure, LIMIT, 0.1, 0.05), None);
}

#[test]
fn noise_within_trials_gains_nothing() {
    // The beginning of 20 ms differs by an amount that the other 160 ms average out.
    let noisy = profiles([0.03, -0.03, 0.0, 0.02, -0.02]);
    assert_eq!(shorter(&noisy, LIMIT, 0.009, 0.05), None);
}
