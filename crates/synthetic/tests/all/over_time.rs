//! Grades of claims about the order of trials, levels over time, steady states and tails: how often they are
//! false, and how often large effects are reported. Printed and counted as in `claims.rs`.

use iolab_analysis::analysis::{CellAnalysis, analyse};
use iolab_analysis::bends::{self, Bends};
use iolab_analysis::claim::{
    Claim, LevelChange, Point, Quantity, Standing, claims, drifting_cells, groups,
};
use iolab_record::{RunRecord, Sample};
use iolab_synthetic::{
    At, Change, Common, Curve, Disturbance, Disturber, Evidence, Noise, Outcome, OverTime,
    Scenario, TrueChange, Truth,
};

use crate::claims::{
    FALSE_MAX, SAID_MIN, all_runs, few_runs, hold, hold_each, hold_made, hold_runs, outcome, place,
    runs, runs_beside, shapes,
};

/// Outcome of a run's claims by `judge`, which returns `None` for claims on other subjects.
fn judged(
    (record, truth): (RunRecord, Truth),
    judge: impl Fn(&Claim, &Truth) -> Option<bool>,
) -> Outcome {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    Outcome::of_all(
        all.iter()
            .filter_map(|claim| judge(claim, &truth))
            .map(outcome),
    )
}

fn writing(changes: &[&str]) -> Scenario {
    let sets: Vec<&str> = [&["bs=64k,1M", "sync=end"], changes].concat();
    Scenario {
        trials: 12,
        ..Scenario::of("write-size", &sets)
    }
}

/// The change between two levels that a claim states, if it is meant.
fn level_change(claim: &Claim, is_meant: impl Fn(&LevelChange) -> bool) -> Option<LevelChange> {
    claim.level_change().filter(is_meant)
}

/// A claimed change is true with the right direction, the right block within two, and the right factor within a
/// fifth.
fn change_over_run(claim: &Claim, truth: &Truth) -> Option<bool> {
    let change = level_change(claim, |change| change.is_of_run)?;
    let seen = claim.of(Standing::Seen).next()?;
    if seen.quantity != Quantity::Count("trial") {
        return None;
    }
    let before = seen.value as usize;
    let cell = &truth.cells[place(change.cell, truth)];
    Some(cell.changes.iter().any(|of| {
        let trials_before = of.block as usize - 1;
        (change.factor() / of.ratio).ln().abs() < 1.2_f64.ln()
            && before.abs_diff(trials_before) <= 2
    }))
}

#[test]
fn level_change_over_a_run_is_rarely_false() {
    for (name, noise) in shapes() {
        let quiet = Scenario {
            noise,
            common: Common {
                wander_sigma: 0.05,
                wander_correlation: 0.8,
                ..Common::default()
            },
            ..writing(&[])
        };
        hold("level over the run, none", &quiet, name, |run| {
            judged(run, change_over_run)
        });
        let reading = Scenario {
            noise,
            common: quiet.common,
            trials: quiet.trials,
            ..Scenario::of("read-size", &["bs=64k,1M"])
        };
        let name = format!("reads, {name}");
        hold("level over the run, none", &reading, &name, |run| {
            judged(run, change_over_run)
        });
    }
}

#[test]
fn a_level_over_the_run_is_found() {
    for ratio in [0.4, 2.5] {
        let changing = Scenario {
            changes: vec![Change {
                at: At::all(),
                after: 0.5,
                ratio,
            }],
            ..writing(&[])
        };
        let name = format!("lognormal 3 %, ratio {ratio}");
        let score = hold_runs(
            "level over the run",
            &changing,
            &name,
            runs_beside(1),
            |run| judged(run, change_over_run),
        );
        assert!(score.is_true_at_least(SAID_MIN), "{score}");
    }
}

fn change_within(claim: &Claim, truth: &Truth) -> Option<bool> {
    let change = level_change(claim, |_| claim.kind.name == "level-within-trials")?;
    let ratio = truth.cells[place(change.cell, truth)].within_trials;
    Some((change.factor() / ratio).ln().abs() < 1.2_f64.ln())
}

#[test]
fn levels_within_trials_are_found_but_not_invented() {
    for ratio in [1.0, 0.4, 2.5] {
        let course = Scenario {
            over_time: Some(OverTime {
                sigma: 0.1,
                at: At::levels("bs=1M"),
                after: 0.4,
                ratio,
                slope: 0.0,
                once_in: None,
            }),
            ..writing(&["time=4s", "bytes=none"])
        };
        let name = format!("intervals scatter by 10 %, ratio {ratio}");
        let score = hold("level within trials", &course, &name, |run| {
            judged(run, change_within)
        });
        assert!(ratio == 1.0 || score.is_true_at_least(SAID_MIN), "{score}");
    }
}

/// A change for good inside one of few trials is a change of the run, with the right factor, and not one that
/// recurs in each trial.
fn change_inside(claim: &Claim, truth: &Truth) -> Option<bool> {
    let change = level_change(claim, |_| true)?;
    let cell = &truth.cells[place(change.cell, truth)];
    let alike = |of: &TrueChange| (change.factor() / of.ratio).ln().abs() < 1.2_f64.ln();
    Some(change.is_of_run && cell.changes.iter().any(alike))
}

/// Ratio of a change that four of five runs show when a tenth of the trials stalls to 0.4: a stall is nearer to
/// its level than half of the change.
const LEAST: f64 = 0.15;
/// A ratio three times as far, on the logarithms.
const FAR: f64 = 0.0033;

#[test]
fn change_inside_one_trial_belongs_to_the_run() {
    for (name, noise) in shapes() {
        // A stalled trial is at neither level of a change to 0.2: a third of such runs has one.
        let stalls = matches!(noise, Noise::Stalls { .. });
        let far = [(3, 2, LEAST), (3, 2, FAR), (2, 2, FAR), (3, 3, 300.0)];
        let far = far.into_iter().filter(|_| stalls);
        let near = [(3, 0, 1.0), (3, 2, 0.2), (2, 2, 0.2), (3, 3, 5.0)];
        for (trials, once_in, ratio) in near.into_iter().chain(far) {
            // Small enough that requests complete in each interval of the lower level too.
            let is_near = near.contains(&(trials, once_in, ratio));
            let size = if is_near { "bs=64k" } else { "bs=4k" };
            let few = Scenario {
                trials,
                noise,
                over_time: Some(OverTime {
                    sigma: 0.1,
                    at: At::all(),
                    after: 0.4,
                    ratio,
                    slope: 0.0,
                    once_in: Some(once_in),
                }),
                ..Scenario::of("write-size", &[size, "sync=end", "time=4s", "bytes=none"])
            };
            let name = format!("{name}, in trial {once_in}, ratio {ratio}");
            let score = hold("level inside a trial", &few, &name, |run| {
                judged(run, change_inside)
            });
            let said_min = match stalls {
                true if is_near => 0.6,
                true if ratio == LEAST => 0.8,
                _ => SAID_MIN,
            };
            assert!(ratio == 1.0 || score.is_true_at_least(said_min), "{score}");
        }
    }
}

/// Writes are called unsteady where the level trends or changes.
fn unsteady(claim: &Claim, is_unsteady: bool) -> Option<bool> {
    (claim.kind.name == "not-steady").then_some(is_unsteady)
}

#[test]
fn unsteady_writes_are_said_where_there_are_any() {
    let over = ["region=16M"];
    let level = writing(&over);
    hold("settled", &level, "lognormal 3 %", |run| {
        judged(run, |claim, _| unsteady(claim, false))
    });
    let trend = Scenario {
        common: Common {
            trend: -1.5,
            ..Common::default()
        },
        ..writing(&over)
    };
    hold("settled", &trend, "falls to 0.22 over the run", |run| {
        judged(run, |claim, _| unsteady(claim, true))
    });
    let late = Scenario {
        changes: vec![Change {
            at: At::all(),
            after: 0.8,
            ratio: 0.5,
        }],
        ..writing(&over)
    };
    let score = hold(
        "settled",
        &late,
        "halves three trials before the end",
        |run| judged(run, |claim, _| unsteady(claim, true)),
    );
    assert!(score.is_true_at_least(SAID_MIN), "{score}");
}

/// Truth of a long tail: the ratio is long, and within the interval.
fn tail(claim: &Claim, truth: &Truth) -> Option<bool> {
    let tail = claim.ratio.filter(|_| claim.kind.name == "long-tail")?;
    let ratio = truth.cells[place(claim.cells[0], truth)].p99_over_p50;
    let (low, high) = tail.interval?;
    Some(ratio > 3.0 && (low..=high).contains(&ratio))
}

#[test]
fn long_tails_are_said_and_others_are_not() {
    for (factor, name) in [
        (1.0, "p99 3 times p50"),
        (0.8, "2.4 times"),
        (1.5, "4.5 times"),
    ] {
        let reading = Scenario {
            tails: vec![(At::levels("bs=64k"), factor)],
            trials: 8,
            ..Scenario::of("read-size", &["bs=4k,64k,1M"])
        };
        let score = hold("long tail", &reading, name, |run| judged(run, tail));
        assert!(factor <= 1.0 || score.is_true_at_least(SAID_MIN), "{score}");
    }
}

/// Slowness caused by others is neither a long tail nor an unsteady state of the storage.
#[test]
fn disturbance_alone_is_neither_tail_nor_unsteadiness() {
    let disturbed = Scenario {
        tails: vec![(At::all(), 3.0)],
        disturbances: vec![Disturbance {
            by: Disturber::Traffic,
            at: At::all(),
            share: 0.5,
            ratio: 0.3,
            evidence: Evidence::Shown,
        }],
        ..writing(&["region=16M"])
    };
    let kind = "long tail, disturbed";
    hold_runs(kind, &disturbed, "traffic", all_runs(), |run| {
        judged(run, |claim, _| {
            ["long-tail", "not-steady"]
                .contains(&claim.kind.name)
                .then_some(false)
        })
    });
}

/// Bends of a curve with one kink, at 256 KiB, or none. Each is slow, so an exact share is left to the table.
#[test]
fn bends_lie_where_a_curve_has_a_kink() {
    for (curve, name) in [
        (Curve::Flat, "flat"),
        (Curve::Plateau { from: 262_144.0 }, "plateau"),
    ] {
        let sizes = Scenario {
            curves: vec![("bs", curve)],
            ..Scenario::of(
                "read-size",
                &["bs=4k,8k,16k,32k,64k,128k,256k,512k,1M,2M,4M"],
            )
        };
        let judge =
            |(record, _): (RunRecord, Truth)| {
                let analysis = analyse(&record);
                let found = Bends::of(&analysis);
                let curves = bends::bendable(&analysis);
                let placed = curves.iter().flat_map(|curve| found.placed_on(curve));
                let mut intervals = placed.filter_map(|bend| bend.interval).peekable();
                if intervals.peek().is_none() {
                    return Outcome::NotClaimed;
                }
                // Sizes are a factor of two apart: a kink is placed to within one of them.
                outcome(intervals.all(|i| {
                    i.low <= 2.0 * 262_144.0 && i.high >= 131_072.0 && curve != Curve::Flat
                }))
            };
        let score = hold_runs("bends", &sizes, name, few_runs(), judge);
        assert!(
            curve == Curve::Flat || score.is_true_at_least(SAID_MIN),
            "{score}"
        );
    }
}

/// Whether the trials of any cell drift, and whether the trials of any cell form two groups.
fn shapes_of((record, _): (RunRecord, Truth)) -> [bool; 2] {
    let run = analyse(&record);
    let split = |cell: &CellAnalysis| groups(&run, cell).is_some();
    [
        !drifting_cells(&run).is_empty(),
        run.cells.iter().any(split),
    ]
}

#[test]
fn drift_and_groups_are_said_where_planted() {
    let reading = |noise: Noise, common: Common, trials: u32| Scenario {
        noise,
        common,
        trials,
        ..Scenario::of("read-size", &["bs=4k,64k,1M"])
    };
    let quiet = Common::default();
    for (name, noise) in shapes() {
        for trials in [10, 30] {
            let none = reading(noise, quiet, trials);
            let row = (
                ["drift, none", "two groups, none"],
                &*format!("{name}, n = {trials}"),
            );
            let is_smooth = matches!(noise, Noise::Lognormal { .. });
            hold_each(row, (runs(), FALSE_MAX), none.runs(), |run| {
                let [drifts, splits] = shapes_of(run);
                [drifts, splits && is_smooth].map(|is_said| match is_said {
                    true => Outcome::False,
                    false => Outcome::NotClaimed,
                })
            });
        }
    }
    let little = Noise::Lognormal { sigma: 0.03 };
    let trend = Common {
        trend: 0.3,
        ..quiet
    };
    let split = Noise::TwoGroups {
        upper: 0.5,
        ratio: 1.5,
        sigma: 0.01,
    };
    for (kind, place, scenario) in [
        ("drift", 0, reading(little, trend, 20)),
        ("two groups", 1, reading(split, quiet, 20)),
    ] {
        let score = hold_runs(
            kind,
            &scenario,
            "all cells",
            all_runs(),
            |run| match shapes_of(run)[place] {
                true => Outcome::True,
                false => Outcome::NotClaimed,
            },
        );
        assert!(score.is_true_at_least(SAID_MIN), "{score}");
    }
}

/// Every cell of a grid is examined: with 112, one in 500 would be a claim in a fifth of the runs.
#[test]
fn wide_grid_has_no_more_false_groups() {
    let spread = Noise::Lognormal { sigma: 0.2 };
    for (cells, changes) in [(56, &["workload=RS,RR"][..]), (112, &[])] {
        for (name, noise) in [
            ("lognormal 20 %", spread),
            ("exponential", Noise::Exponential),
        ] {
            let grid = Scenario {
                noise,
                trials: 10,
                ..Scenario::of("disk-grid", changes)
            };
            let name = format!("{cells} cells, {name}");
            hold_runs("two groups, none", &grid, &name, runs(), |(record, _)| {
                let run = analyse(&record);
                assert_eq!(run.cells.len(), cells);
                match run.cells.iter().any(|cell| groups(&run, cell).is_some()) {
                    true => Outcome::False,
                    false => Outcome::NotClaimed,
                }
            });
        }
    }
}

/// Claims on one trial from its beginning, in which the level may change.
fn soak(sigma: f64, (after, ratio): (f64, f64), seed: u64) -> Vec<Claim> {
    soak_for("time=6s", sigma, (after, ratio, 0.0), seed)
}

fn soak_for(time: &str, sigma: f64, course: (f64, f64, f64), seed: u64) -> Vec<Claim> {
    let (after, ratio, slope) = course;
    let scenario = Scenario {
        trials: 1,
        over_time: Some(OverTime {
            sigma,
            at: At::all(),
            after,
            ratio,
            slope,
            once_in: None,
        }),
        ..Scenario::of("read-size", &["bs=64k", time, "bytes=none"])
    };
    let (mut record, _) = scenario.run(seed);
    let (warm_ups, measured) = record.samples.into_iter().partition(|one| one.warmup);
    record.samples = measured;
    let warm_ups: Vec<Sample> = warm_ups;
    let is_of_warm_up = |id: i64| warm_ups.iter().any(|one| one.id == id);
    record.series.retain(|one| !is_of_warm_up(one.sample));
    claims(&[&analyse(&record)])
}

/// Whether a change claimed to be detectable is found in the same trial with it, anywhere in its middle half.
fn found_with_it(sigma: f64, seed: u64) -> Outcome {
    let without = soak(sigma, (0.5, 1.0), seed);
    let mut said = without.iter().flat_map(|claim| claim.of(Standing::Step));
    let Some(&Point { value: factor, .. }) = said.next() else {
        return Outcome::NotClaimed;
    };
    let after = 0.25 + 0.5 * (seed % 97) as f64 / 96.0;
    let is_found = |ratio: f64| {
        let with = soak(sigma, (after, ratio), seed);
        let kinds = ["level-within-trials", "gradual-change"];
        let is_one = |claim: &Claim| kinds.contains(&claim.kind.name);
        with.iter().any(is_one)
    };
    outcome(is_found(factor) && is_found(1.0 / factor))
}

/// Levels of 1 to 50 % of a trial, at its beginning and at its end, with the interval in which they begin.
#[test]
fn short_level_of_a_soak_is_found() {
    // Not all of them lie between the groups of three intervals that are searched.
    for after in [0.01, 0.022, 0.053, 0.2, 0.503, 0.8, 0.963, 0.98, 0.99] {
        for ratio in [0.2, 5.0] {
            let make = |seed| soak_for("time=60s", 0.1, (after, ratio, 0.0), seed);
            let first = 100.0 / (after + ratio * (1.0 - after));
            let is_near = |value: f64| value.ln().abs() < 1.2_f64.ln();
            let judge = |claims: Vec<Claim>| {
                let mut found = claims
                    .iter()
                    .filter_map(|claim| level_change(claim, |_| true));
                found.next().map_or(Outcome::NotClaimed, |change| {
                    let late_ns = change.since.ns as f64 - after * 60e9;
                    let is_first = is_near(change.before_mb_s / first);
                    outcome(is_near(change.factor() / ratio) && is_first && late_ns.abs() <= 1e8)
                })
            };
            let name = format!("{ratio} times after {:.0} % of a soak", 100.0 * after);
            let score = hold_made(("level of a soak", &name), few_runs(), make, judge);
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}

/// A jump is reported in a trial that falls before and after it. A smooth fall has no jump, and a constant level neither.
#[test]
fn jump_between_declines_is_found() {
    // A short level is looked for where it is far from the whole decline.
    let places = [0.25, 0.45, 0.75, 0.02, 0.96];
    for (ratio, slope, places) in [
        (1.0, 0.0, &places[..1]),
        (1.0, -2.0, &places[..1]),
        (1.72, -0.5, &places[..3]),
        (5.0, -1.6, &places[..3]),
        (5.0, -0.5, &places),
        (0.2, -0.5, &places),
    ] {
        let is_true = |claim: &Claim| match claim.kind.name {
            "level-within-trials" => Some((claim.ratio?.ratio - 1.0) * (ratio - 1.0) > 0.0),
            // A rise is not a part of a fall.
            "gradual-change" if ratio > 1.0 => Some(claim.of(Standing::First).next().is_none()),
            "gradual-change" => Some(slope < 0.0),
            _ => None,
        };
        let judge = |all: Vec<Claim>| Outcome::of_all(all.iter().filter_map(is_true).map(outcome));
        for after in places {
            let make = |seed| soak_for("time=61s", 0.03, (*after, ratio, slope), seed);
            let name = format!("{ratio} times after {after}, slope {slope}");
            let score = hold_made(("jump in a soak", &name), few_runs(), make, judge);
            assert!(slope == 0.0 || score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}

/// A trial from its beginning without a change: a change claimed to be detectable is found when added to the
/// same trial.
#[test]
fn detectable_change_is_found_when_added() {
    for sigma in [0.02, 0.1, 0.2, 0.4] {
        let name = format!("intervals scatter by {:.0} %", 100.0 * sigma);
        let kind = ("no change inside a trial", name.as_str());
        let score = hold_made(kind, runs(), |seed| seed, |seed| found_with_it(sigma, seed));
        assert!(sigma > 0.3 || score.is_true_at_least(SAID_MIN), "{score}");
    }
}

/// Four cells of which one block took the time `factor` times.
fn with_slow_block(noise: Noise, factor: f64) -> impl Fn(u64) -> (RunRecord, u32) {
    let sizes = Scenario {
        noise,
        trials: 12,
        ..Scenario::of("read-size", &["bs=4k,16k,64k,256k"])
    };
    let run = sizes.runs();
    move |seed| {
        let (mut record, _) = run(seed);
        let block = 1 + (seed % 12) as u32;
        let own = record.samples.iter_mut().filter(|one| one.block == block);
        own.for_each(|one| one.elapsed_ns = (one.elapsed_ns as f64 * factor) as u64);
        (record, block)
    }
}

#[test]
fn a_block_apart_is_claimed() {
    for (name, noise) in shapes() {
        for factor in [1.0_f64, 0.2, 5.0] {
            let of = |(record, block): (RunRecord, u32)| {
                let analysis = analyse(&record);
                let all = claims(&[&analysis]);
                let own = all.iter().filter(|claim| claim.kind.name == "block-apart");
                Outcome::of_all(own.map(|claim| {
                    let share = claim.points[2].value / factor.max(1.0 / factor);
                    let is_right = claim.points[0].value == f64::from(block);
                    outcome(factor != 1.0 && is_right && (0.67..1.5).contains(&share))
                }))
            };
            let named = format!("{name}, time x {factor}");
            let score = hold_made(
                ("block", &named),
                runs(),
                with_slow_block(noise, factor),
                of,
            );
            let is_small = factor != 1.0 && name == "lognormal 3 %";
            assert!(!is_small || score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}
