//! Coverage of the interval of a median at the end of a run, by the rule that ends it. Prints the table of
//! docs/VALIDATION.md, "Intervals".
//!
//! `cargo run --release -p iolab-synthetic --example stopping [RUNS]`

#![allow(clippy::print_stdout, reason = "it prints a table")]

use iolab_stats::{
    Interval, has_gap, median, median_interval, median_interval_interpolated, two_modes,
};
use iolab_synthetic::Noise;

/// Half-width of the interval over the median at which a cell is precise.
const GOAL: f64 = 0.05;
/// Measured trials: the fewest with an interval, and the most in a run.
const TRIALS: std::ops::RangeInclusive<usize> = 6..=30;

struct Rule {
    name: &'static str,
    /// Interval that is reported.
    shown: fn(&[f64]) -> Option<Interval>,
    /// Interval that has to be narrow for the end.
    judged: fn(&[f64]) -> Option<Interval>,
    /// Number of consecutive narrow intervals required.
    in_a_row: usize,
}

fn exact(x: &[f64]) -> Option<Interval> {
    median_interval(x, 0.95)
}

fn interpolated(x: &[f64]) -> Option<Interval> {
    median_interval_interpolated(x, 0.95)
}

fn interpolated_96(x: &[f64]) -> Option<Interval> {
    median_interval_interpolated(x, 0.96)
}

fn interpolated_968(x: &[f64]) -> Option<Interval> {
    median_interval_interpolated(x, 0.968)
}

/// Interpolated interval, or the exact one if two groups are flagged.
fn unflagged(x: &[f64]) -> Option<Interval> {
    match two_modes(x) {
        Some(_) => exact(x),
        None => interpolated(x),
    }
}

fn exact_with_a_gap(x: &[f64], otherwise: fn(&[f64]) -> Option<Interval>) -> Option<Interval> {
    match has_gap(x) {
        true => exact(x),
        false => otherwise(x),
    }
}

/// Exact interval at 99 % if there may be two groups, which is `None` below eight values; `otherwise` in all
/// other cases.
fn guarded(x: &[f64], otherwise: fn(&[f64]) -> Option<Interval>) -> Option<Interval> {
    match has_gap(x) {
        true => median_interval(x, 0.99),
        false => otherwise(x),
    }
}

const fn plain(name: &'static str, shown: fn(&[f64]) -> Option<Interval>, in_a_row: usize) -> Rule {
    Rule {
        name,
        shown,
        judged: shown,
        in_a_row,
    }
}

const RULES: [Rule; 12] = [
    plain("exact, two in a row", exact, 2),
    plain("exact, three in a row", exact, 3),
    plain("exact, six in a row", exact, 6),
    plain("interpolated, two in a row", interpolated, 2),
    plain("interpolated, three in a row", interpolated, 3),
    plain("interpolated, six in a row", interpolated, 6),
    plain(
        "interpolated, exact where two groups are flagged, three in a row",
        unflagged,
        3,
    ),
    plain(
        "interpolated at 96.8 %, three in a row",
        interpolated_968,
        3,
    ),
    Rule {
        name: "exact, judged at 99 % with a gap, two in a row",
        shown: exact,
        judged: |x| guarded(x, exact),
        in_a_row: 2,
    },
    Rule {
        name: "interpolated, exact with a gap and judged at 99 %, three in a row",
        shown: |x| exact_with_a_gap(x, interpolated),
        judged: |x| guarded(x, interpolated),
        in_a_row: 3,
    },
    Rule {
        name: "the same, interpolated at 96 %",
        shown: |x| exact_with_a_gap(x, interpolated_96),
        judged: |x| guarded(x, interpolated_96),
        in_a_row: 3,
    },
    Rule {
        name: "the same, interpolated at 96.8 %",
        shown: |x| exact_with_a_gap(x, interpolated_968),
        judged: |x| guarded(x, interpolated_968),
        in_a_row: 3,
    },
];

const fn groups(upper: f64, ratio: f64) -> Noise {
    Noise::TwoGroups {
        upper,
        ratio,
        sigma: 0.005,
    }
}

/// Shapes with spreads from "narrow at once" to "never narrow"; in between the rule matters.
const SHAPES: [(&str, &[Noise]); 7] = [
    (
        "normal",
        &[
            Noise::Normal { cv: 0.04 },
            Noise::Normal { cv: 0.07 },
            Noise::Normal { cv: 0.1 },
            Noise::Normal { cv: 0.2 },
        ],
    ),
    (
        "lognormal",
        &[
            Noise::Lognormal { sigma: 0.03 },
            Noise::Lognormal { sigma: 0.06 },
            Noise::Lognormal { sigma: 0.1 },
            Noise::Lognormal { sigma: 0.15 },
            Noise::Lognormal { sigma: 0.5 },
        ],
    ),
    ("exponential", &[Noise::Exponential]),
    (
        "stalls",
        &[
            Noise::Stalls {
                share: 0.1,
                ratio: 0.4,
                sigma: 0.03,
            },
            Noise::Stalls {
                share: 0.1,
                ratio: 0.4,
                sigma: 0.07,
            },
            Noise::Stalls {
                share: 0.3,
                ratio: 0.8,
                sigma: 0.03,
            },
            Noise::Stalls {
                share: 0.3,
                ratio: 0.4,
                sigma: 0.05,
            },
        ],
    ),
    (
        "two groups",
        &[
            groups(0.5, 1.08),
            groups(0.5, 1.12),
            groups(0.5, 1.2),
            groups(0.5, 2.0),
        ],
    ),
    (
        "48:52",
        &[
            groups(0.48, 1.08),
            groups(0.48, 1.12),
            groups(0.48, 1.2),
            groups(0.52, 1.2),
            groups(0.48, 2.0),
        ],
    ),
    (
        "40:60",
        &[
            groups(0.4, 1.08),
            groups(0.4, 1.12),
            groups(0.4, 1.2),
            groups(0.6, 1.2),
        ],
    ),
];

/// Ends of runs of one scatter by one rule.
#[derive(Default)]
struct Ends {
    /// Runs whose interval contains the median, by the limit on trials.
    held: [usize; 31],
    /// Trials of all runs with a limit of 30.
    trials: usize,
    /// Sum of the half-widths at the end.
    half_widths: f64,
}

fn simulate(rule: &Rule, noise: Noise, runs: usize) -> Ends {
    let mut ends = Ends::default();
    let mut draws = noise.draws(2026);
    for _ in 0..runs {
        let values: Vec<f64> = (0..*TRIALS.end()).map(|_| draws.next_log().exp()).collect();
        let mut narrow = 0;
        for n in TRIALS {
            let x = &values[..n];
            let shown = (rule.shown)(x).expect("six values");
            let centre = median(x).expect("six values");
            let width = (rule.judged)(x).and_then(|judged| judged.relative_half_width(centre));
            narrow = match width.is_some_and(|width| width <= GOAL) {
                true => narrow + 1,
                false => 0,
            };
            let holds = usize::from(shown.low <= 1.0 && 1.0 <= shown.high);
            ends.held[n] += holds;
            if narrow == rule.in_a_row || n == *TRIALS.end() {
                // Whatever the higher limit.
                ends.held[n + 1..]
                    .iter_mut()
                    .for_each(|held| *held += holds);
                ends.trials += n;
                ends.half_widths += shown.half_width();
                break;
            }
        }
    }
    ends
}

fn main() {
    let runs = std::env::args().nth(1);
    let runs: usize = runs.map_or(10_000, |n| n.parse().expect("a number of runs"));
    let names = SHAPES.map(|(name, _)| name).join(" | ");
    println!("| rule | {names} | trials | half-width |");
    println!("|---|{}---|---|", "---|".repeat(SHAPES.len()));
    for rule in &RULES {
        let of = |noises: &[Noise]| -> Vec<Ends> {
            let ends = noises.iter().map(|noise| simulate(rule, *noise, runs));
            ends.collect()
        };
        let all = SHAPES.map(|(_, noises)| of(noises));
        let least = all.iter().map(|ends| {
            let held = ends.iter().flat_map(|ends| TRIALS.map(|n| ends.held[n]));
            let least = held.min().unwrap_or(0);
            format!("{:.1}", 100.0 * least as f64 / runs as f64)
        });
        let least = least.collect::<Vec<_>>().join(" | ");
        // For lognormal values, where the rule ends some runs of every spread.
        let lognormal = &all[1];
        let count = (lognormal.len() * runs) as f64;
        let trials = lognormal.iter().map(|ends| ends.trials).sum::<usize>() as f64;
        let half_widths: f64 = lognormal.iter().map(|ends| ends.half_widths).sum();
        let (trials, width) = (trials / count, 100.0 * half_widths / count);
        println!("| {} | {least} | {trials:.1} | {width:.2} % |", rule.name);
    }

    println!(
        "\nMean width over that of the exact interval, normal values, by the number of trials:\n"
    );
    let trials = [6, 7, 8, 9, 10, 11, 12, 15, 20, 30];
    println!(
        "| | {} |\n|---|{}",
        trials.map(|n| n.to_string()).join(" | "),
        "---|".repeat(trials.len())
    );
    for (name, shown) in [
        (
            "interpolated",
            interpolated as fn(&[f64]) -> Option<Interval>,
        ),
        ("interpolated at 96 %, exact with a gap", |x| {
            exact_with_a_gap(x, interpolated_96)
        }),
    ] {
        let row = trials.map(|n| {
            let mut draws = Noise::Lognormal { sigma: 0.05 }.draws(n as u64);
            let (mut own, mut other) = (0.0, 0.0);
            for _ in 0..runs {
                let x: Vec<f64> = (0..n).map(|_| draws.next_log()).collect();
                own += shown(&x).expect("six values").half_width();
                other += exact(&x).expect("six values").half_width();
            }
            format!("{:.2}", own / other)
        });
        println!("| {name} | {} |", row.join(" | "));
    }
}
