//! Grades of claims about runs with known truth: how often they are false, and how often large effects are
//! reported.
//!
//! `IOLAB_GRADE_RUNS=2000 cargo test --release -p iolab-synthetic --test all -- claims:: --nocapture` prints
//! its rows of the table of docs/METHODS.md, which has the command for all of them. Otherwise a kind has 60 runs,
//! which show what is wrong in 13 % of them; the whole grade, which runs nightly, shows 5 %.
//! `IOLAB_GRADE_ONLY=TEXT` selects the rows with this text.

#![allow(
    clippy::print_stdout,
    reason = "the table is printed where it is asked for"
)]

use std::fmt;
use std::ops::RangeInclusive;

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{
    CellId, Claim, Contrast, Difference, MARGIN, Point, Quantity, Standing, claims,
};
use iolab_record::RunRecord;
use iolab_synthetic::{
    At, Curve, Disturbance, Disturber, Noise, Outcome, Scenario, Score, Truth, grade_each,
};

/// Greatest share of runs with a false claim of a kind.
pub(crate) const FALSE_MAX: f64 = 0.05;
/// Least share of runs that report a large effect.
pub(crate) const SAID_MIN: f64 = 0.9;

/// Trials of each cell: the fewest with an interval, and more.
pub(crate) const TRIALS: [u32; 2] = [6, 16];

/// Runs of a row: the fewest, and the most, which are made if the fewest do not decide.
pub(crate) type Runs = RangeInclusive<usize>;

/// Runs of each kind on each commit: with fixed seeds, and too few for a share of 5 %, so that a row has to
/// stay below the bound of so few.
const ON_COMMIT: usize = 60;

/// Runs of a row whose kind has two others or more.
pub(crate) fn runs() -> Runs {
    runs_beside(2)
}

/// Runs of a row whose kind has `others` further rows: the kind has at least the runs of a commit.
pub(crate) fn runs_beside(others: usize) -> Runs {
    let most = *all_runs().end();
    match makes_table() {
        true => most..=most,
        false => most.div_ceil(others + 1)..=most,
    }
}

/// Runs of the only row of a kind.
pub(crate) fn all_runs() -> Runs {
    let asked = std::env::var("IOLAB_GRADE_RUNS").ok();
    let runs = asked.map_or(ON_COMMIT, |asked| {
        asked.parse().expect("IOLAB_GRADE_RUNS is a number")
    });
    runs..=runs
}

/// A quarter of these runs, for a kind with slow ones.
pub(crate) fn few_runs() -> Runs {
    let runs = all_runs().end().div_ceil(4);
    runs..=runs
}

/// Whether the table of docs/METHODS.md is made, which has rows that no test asserts.
pub(crate) fn makes_table() -> bool {
    std::env::var_os("IOLAB_GRADE_RUNS").is_some()
}

/// Whether a row is requested.
fn is_asked(kind: &Kind) -> bool {
    let only = std::env::var("IOLAB_GRADE_ONLY").unwrap_or_default();
    kind.to_string().contains(&only)
}

/// A kind of claim in a scenario.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    claim: &'static str,
    scenario: String,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", self.claim, self.scenario)
    }
}

/// Shapes of scatter of cells, each with a name.
pub(crate) fn shapes() -> [(&'static str, Noise); 4] {
    [
        ("lognormal 3 %", Noise::Lognormal { sigma: 0.03 }),
        ("lognormal 20 %", Noise::Lognormal { sigma: 0.2 }),
        (
            "two groups 1.2",
            Noise::TwoGroups {
                upper: 0.5,
                ratio: 1.2,
                sigma: 0.005,
            },
        ),
        (
            "stalls to 0.4",
            Noise::Stalls {
                share: 0.1,
                ratio: 0.4,
                sigma: 0.03,
            },
        ),
    ]
}

pub(crate) fn place(id: CellId, truth: &Truth) -> usize {
    let cells = truth.cells.iter();
    let mut places = cells.map(|cell| cell.cell.id);
    places.position(|cell| cell == id.cell).expect("a cell")
}

/// Whether a claimed effect on a response is true.
fn of_effect(effect: &Point, truth: &Truth) -> Outcome {
    let Quantity::Of(response) = effect.quantity else {
        panic!("{:?}", effect.quantity);
    };
    let value = |id: Option<CellId>| {
        let own = truth.cells[place(id.expect("a cell"), truth)].value(response);
        own.expect("a response that follows from the throughput")
    };
    judged(effect.difference(), value(effect.cell) / value(effect.base))
}

/// Whether a difference is true for this true ratio.
pub(crate) fn judged(difference: Difference, ratio: f64) -> Outcome {
    outcome(match difference {
        Difference::Higher => ratio > 1.0,
        Difference::Lower => ratio < 1.0,
        Difference::Equivalent => {
            // A ratio at the margin itself is equivalent, up to rounding.
            ratio.ln().abs() <= MARGIN.ln_1p() + 1e-9
        }
        Difference::NotFound | Difference::CannotTell => return Outcome::NotClaimed,
    })
}

pub(crate) fn outcome(is_true: bool) -> Outcome {
    match is_true {
        true => Outcome::True,
        false => Outcome::False,
    }
}

/// Whether a size that is called worse or near is that.
pub(crate) fn of_best(best: &Claim, truth: &Truth) -> Outcome {
    let level = |one: &Point| truth.cells[place(one.cell.expect("a cell"), truth)].mb_s;
    let most = best.ranked().map(level).fold(0.0, f64::max);
    Outcome::of_all(best.ranked().map(|one| match one.standing {
        Standing::Worse => outcome(level(one) < most),
        Standing::Near => outcome(level(one) >= (1.0 - MARGIN) * most * (1.0 - 1e-9)),
        _ => Outcome::NotClaimed,
    }))
}

/// Outcome of a run's comparisons of one contrast.
pub(crate) fn compared(
    run: (RunRecord, Truth),
    is_asked: impl Fn(&Contrast) -> bool + Copy,
) -> Outcome {
    let [outcome] = each_compared(run, [is_asked]);
    outcome
}

/// Outcomes of the comparisons of several contrasts.
fn each_compared<const N: usize>(
    (record, truth): (RunRecord, Truth),
    contrasts: [impl Fn(&Contrast) -> bool; N],
) -> [Outcome; N] {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    let judge = |of: &Claim| {
        let effects = of.points.iter();
        Outcome::of_all(effects.map(|effect| of_effect(effect, &truth)))
    };
    contrasts.map(|is_asked| {
        let is_own = |claim: &&Claim| claim.comparison().is_some_and(|of| is_asked(&of.contrast));
        Outcome::of_all(all.iter().filter(is_own).map(judge))
    })
}

pub(crate) fn bests(run: (RunRecord, Truth)) -> Outcome {
    each_best(run, of_best)
}

/// Judges the best size of each curve.
pub(crate) fn each_best(
    (record, truth): (RunRecord, Truth),
    judge: impl Fn(&Claim, &Truth) -> Outcome,
) -> Outcome {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    Outcome::of_all(all.iter().map(|best| judge(best, &truth)))
}

/// Grades a kind, prints its row, and checks it against the limits.
pub(crate) fn hold(
    claim: &'static str,
    scenario: &Scenario,
    name: &str,
    claimed: impl Fn((RunRecord, Truth)) -> Outcome,
) -> Score<Kind> {
    hold_runs(claim, scenario, name, runs(), claimed)
}

/// As [`hold`], with this number of runs.
pub(crate) fn hold_runs(
    claim: &'static str,
    scenario: &Scenario,
    name: &str,
    runs: Runs,
    claimed: impl Fn((RunRecord, Truth)) -> Outcome,
) -> Score<Kind> {
    let name = format!("{name}, n = {}", scenario.trials);
    hold_made((claim, &name), runs, scenario.runs(), claimed)
}

/// As [`hold_runs`], for runs or pairs of runs made by `make`.
pub(crate) fn hold_made<R>(
    (claim, scenario): (&'static str, &str),
    runs: Runs,
    make: impl Fn(u64) -> R,
    claimed: impl Fn(R) -> Outcome,
) -> Score<Kind> {
    let claimed = |run| [claimed(run)];
    let [score] = hold_each(([claim], scenario), (runs, FALSE_MAX), make, claimed);
    score
}

/// As [`hold_made`], for several kinds, each false in at most this share of the same runs.
pub(crate) fn hold_each<R, const N: usize>(
    (claims, scenario): ([&'static str; N], &str),
    (runs, false_max): (Runs, f64),
    make: impl Fn(u64) -> R,
    claimed: impl Fn(R) -> [Outcome; N],
) -> [Score<Kind>; N] {
    let kinds = claims.map(|claim| Kind {
        claim,
        scenario: scenario.to_owned(),
    });
    let (fewest, most) = match kinds.iter().any(is_asked) {
        true => runs.into_inner(),
        false => (0, 0),
    };
    // 60 runs refuse false claims in 13 % of them. One row of 16 then has none in its first 20 runs; one kind of 4000
    // has none in the first 60 of all its rows.
    let is_decided = |score: &Score<Kind>| {
        let is_unanimous = score.false_claims == 0 && [0, score.runs].contains(&score.claimed);
        (fewest..most).contains(&score.runs)
            && (is_unanimous || score.shows_false_at_most(false_max, most))
    };
    let scores = grade_each(kinds, most, make, claimed, is_decided);
    for score in scores.iter().filter(|score| is_asked(&score.kind)) {
        println!("{score}");
        assert!(score.is_false_at_most(false_max), "{score}");
    }
    scores
}

#[test]
fn comparisons_without_a_difference_are_rarely_false() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let grid = Scenario::of(
                "disk-grid",
                &["workload=RS,RR", "bs=4k,64k", "threads=1,2,8"],
            )
            .drifting(noise, trials);
            let contrasts: [fn(&Contrast) -> bool; 2] = [
                |contrast| matches!(contrast, Contrast::Levels { .. }),
                |contrast| matches!(contrast, Contrast::Pattern),
            ];
            let kinds = ["scaling, none", "random, none"];
            let limits = (runs(), FALSE_MAX);
            let row = format!("{name}, n = {trials}");
            hold_each((kinds, &row), limits, grid.runs(), |run| {
                each_compared(run, contrasts)
            });
        }
    }
}

#[test]
fn large_differences_of_either_sign_are_said() {
    for trials in TRIALS {
        for ratio in [2.0, 0.5] {
            let grid = Scenario {
                effects: vec![(At::levels("threads=8"), ratio)],
                ..Scenario::of("disk-grid", &["workload=RS", "bs=4k,64k", "threads=1,2,8"])
                    .drifting(Noise::Lognormal { sigma: 0.03 }, trials)
            };
            let is = |contrast: &Contrast| matches!(contrast, Contrast::Levels { .. });
            let name = format!("lognormal 3 %, ratio {ratio}");
            let score = hold("scaling", &grid, &name, |run| compared(run, is));
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}

#[test]
fn two_groups_are_not_a_cost_of_policy() {
    let log = Scenario {
        noise: Noise::TwoGroups {
            upper: 0.5,
            ratio: 1.5,
            sigma: 0.005,
        },
        trials: 20,
        ..Scenario::of("write-size", &["bs=4k,64k", "sync=none,fdatasync"])
    };
    let is = |contrast: &Contrast| matches!(contrast, Contrast::Levels { .. });
    let name = "two groups 1.5";
    hold_runs("sync, none", &log, name, all_runs(), |run| {
        compared(run, is)
    });
}

#[test]
fn best_size_is_never_ruled_out() {
    let curves = [
        ("flat", Curve::Flat),
        ("amortised", Curve::Amortised { half: 65536.0 }),
        ("plateau", Curve::Plateau { from: 65536.0 }),
        (
            "dip",
            Curve::Dip {
                at: 65536.0,
                ratio: 0.7,
            },
        ),
        (
            "cliff",
            Curve::Cliff {
                from: 262_144.0,
                ratio: 0.6,
            },
        ),
    ];
    for (shape, noise) in shapes() {
        for (name, curve) in curves {
            for trials in [6, 12] {
                let sizes = Scenario {
                    curves: vec![("bs", curve)],
                    ..Scenario::of("read-size", &["bs=4k,16k,64k,256k,1M"]).drifting(noise, trials)
                };
                hold("best size", &sizes, &format!("{name}, {shape}"), bests);
            }
        }
    }
}

/// The curves of a grid are one family: each by itself may be falsely claimed in 5 % of runs.
#[test]
fn equal_sizes_of_many_curves_stay() {
    for (shape, noise) in shapes() {
        for trials in [9, 16] {
            let grid =
                Scenario::of("disk-grid", &["bs=4k,64k", "threads=1,2,8"]).drifting(noise, trials);
            let name = format!("12 flat curves, {shape}");
            hold("best size", &grid, &name, bests);
        }
    }
}

/// A stalled trial says nothing of how good its size can be: sizes far from the best are reported, however many
/// there are.
#[test]
fn sizes_far_from_the_best_are_worse() {
    for ratio in [0.4, 0.01, 0.001] {
        for trials in [7, 8] {
            let stalls = Noise::Stalls {
                share: 0.1,
                ratio,
                sigma: 0.03,
            };
            let sizes = Scenario {
                curves: vec![("bs", Curve::Amortised { half: 65536.0 })],
                ..Scenario::of("read-size", &[]).drifting(stalls, trials)
            };
            let name = format!("16 sizes, stalls to {ratio}");
            hold("best size", &sizes, &name, bests);
            let least = Scenario {
                noise: Noise::Lognormal { sigma: 0.03 },
                noises: vec![(At::levels("bs=4k"), stalls)],
                ..sizes
            };
            let name = format!("least of 16 sizes stalls to {ratio}");
            let score = hold("best size", &least, &name, least_size_is_worse);
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}

/// Whether 4 KiB, at a 17th of the best throughput, is shown to be worse.
fn least_size_is_worse((record, _): (RunRecord, Truth)) -> Outcome {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    let mut sizes = all.iter().flat_map(Claim::ranked);
    let least = analysis.cells[0].cell.id;
    let is_worse = sizes
        .any(|one| one.standing == Standing::Worse && one.cell.is_some_and(|id| id.cell == least));
    match is_worse {
        true => Outcome::True,
        false => Outcome::NotClaimed,
    }
}

#[test]
fn what_only_a_disturbance_makes_is_not_claimed() {
    for by in [Disturber::Traffic, Disturber::Cpu] {
        let disturbed = Scenario {
            disturbances: vec![Disturbance::of_every_trial(
                by,
                At::levels("threads=8"),
                0.65,
            )],
            ..Scenario::of("disk-grid", &["workload=RR", "bs=4k,64k", "threads=1,8"])
        };
        let is = |contrast: &Contrast| matches!(contrast, Contrast::Levels { .. });
        hold_runs(
            "scaling, disturbed",
            &disturbed,
            &format!("{by:?}"),
            runs_beside(1),
            |run| compared(run, is),
        );
    }
}

/// Claims of a run, without details that depend on its notation.
fn said(record: &RunRecord) -> Vec<String> {
    let analysis = analyse(record);
    let mut all: Vec<String> = claims(&[&analysis])
        .iter()
        .flat_map(|claim| match claim.comparison() {
            Some(_) => {
                let level = |id: Option<CellId>| {
                    let cell = analysis.cell(id.expect("a cell").cell);
                    &cell.expect("a cell of the run").cell.levels
                };
                let effects = claim.points.iter();
                effects
                    .map(|one| {
                        let ratio = one.ratio.expect("a ratio").ratio;
                        let levels = [one.base, one.cell].map(level);
                        format!("{levels:?} {:?} {ratio:.6}", one.difference())
                    })
                    .collect()
            }
            None => claim
                .ranked()
                .map(|one| format!("{:?} {:?}", one.cell, one.standing))
                .collect::<Vec<String>>(),
        })
        .collect();
    all.sort();
    all
}

/// Two runs that compare the same two settings and find opposite results.
#[test]
fn what_two_runs_contradict_is_claimed_of_neither() {
    let grid = |ratio: f64| Scenario {
        effects: vec![(At::levels("threads=8"), ratio)],
        ..Scenario::of("disk-grid", &["workload=RS", "bs=64k", "threads=1,8"])
    };
    let sizes = |ratio: f64| Scenario {
        effects: vec![(At::levels("bs=1M"), ratio)],
        ..Scenario::of("read-size", &["bs=64k,1M"])
    };
    for seed in 1..=20 {
        for (one, other) in [(grid(2.0), grid(0.5)), (sizes(2.0), sizes(0.5))] {
            let (first, second) = (one.run(seed).0, other.later().run(seed + 100).0);
            let shown = |records: &[&RunRecord]| {
                let analyses: Vec<_> = records.iter().map(|record| analyse(record)).collect();
                let all: Vec<_> = analyses.iter().collect();
                let all = claims(&all);
                let effects = all.iter().map(|claim| {
                    let effects = claim.points.iter().filter(|one| one.is_effect());
                    effects.count() + claim.of(Standing::Worse).count()
                });
                effects.sum::<usize>()
            };
            assert_eq!((shown(&[&first]), shown(&[&second])), (1, 1), "seed {seed}");
            assert_eq!(shown(&[&first, &second]), 0, "seed {seed}");
            // A claim that a second run repeats is not a contradiction.
            let again = one.later().run(seed + 200).0;
            assert_eq!(shown(&[&first, &again]), 2, "seed {seed}");
        }
    }
}

#[test]
fn cell_order_and_time_unit_change_no_claim() {
    for seed in 1..=20 {
        let grid = Scenario {
            effects: vec![(At::levels("threads=8"), 1.3)],
            noise: Noise::Lognormal { sigma: 0.1 },
            ..Scenario::of("disk-grid", &["workload=RS", "bs=4k,64k", "threads=1,2,8"])
        };
        let (record, _) = grid.run(seed);
        let own = said(&record);
        let mut reversed = record.clone();
        reversed.cells.reverse();
        assert_eq!(said(&reversed), own, "seed {seed}");
        let mut slow = record.clone();
        for sample in &mut slow.samples {
            sample.elapsed_ns *= 16;
        }
        assert_eq!(said(&slow), own, "seed {seed}");
        let mut renamed = record;
        "another".clone_into(&mut renamed.experiment.name);
        assert_eq!(said(&renamed), own, "seed {seed}");
    }
}
