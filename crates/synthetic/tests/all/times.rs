//! Grades of claims on times of requests, where less is better: their median and 99th percentile, and the best
//! sizes by them. `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::claim::{Claim, Contrast, MARGIN, Point, Quantity, Standing};
use iolab_plan::experiment::Experiment;
use iolab_record::RunRecord;
use iolab_synthetic::{At, Disturbance, Disturber, Noise, Outcome, Scenario, Truth};
use iolab_workload::response::Response;

use super::claims::{
    SAID_MIN, TRIALS, compared, each_best, hold, hold_runs, outcome, place, runs_beside, shapes,
};

/// Time responses.
const TIMES: [(Response, &str); 2] = [(Response::Latency, "median"), (Response::P99, "p99")];

fn is_depth(contrast: &Contrast) -> bool {
    matches!(contrast, Contrast::Levels { factor, .. } if factor == "depth")
}

/// Sizes and depths, with a time as response. Requests in flight wait for each other, so without an effect the
/// times are equal.
fn waiting(response: Response, noise: Noise, trials: u32) -> Scenario {
    let grid = Scenario::of(
        "read-random",
        &["bs=4k,64k", "backend=io_uring", "depth=1,4"],
    )
    .drifting(noise, trials);
    Scenario {
        experiment: Experiment {
            response,
            ..grid.experiment
        },
        effects: vec![(At::levels("depth=4"), 4.0)],
        ..grid
    }
}

#[test]
fn times_without_a_difference_are_rarely_told_apart() {
    for (response, what) in TIMES {
        for (name, noise) in shapes() {
            for trials in TRIALS {
                let equal = waiting(response, noise, trials);
                let name = format!("{what}, {name}");
                hold("times, none", &equal, &name, |run| compared(run, is_depth));
            }
        }
    }
}

#[test]
fn large_differences_of_times_are_said() {
    for (response, what) in TIMES {
        for trials in TRIALS {
            for ratio in [2.0, 0.5] {
                let mut apart = waiting(response, Noise::Lognormal { sigma: 0.03 }, trials);
                apart.effects.push((At::levels("depth=4"), 1.0 / ratio));
                let name = format!("{what}, lognormal 3 %, ratio {ratio}");
                let score = hold("times", &apart, &name, |run| compared(run, is_depth));
                assert!(score.is_true_at_least(SAID_MIN), "{score}");
            }
        }
    }
}

/// Other programs make times longer, never shorter.
#[test]
fn times_by_a_disturbance_are_not_claimed() {
    for by in [Disturber::Traffic, Disturber::Cpu] {
        let disturbed = Scenario {
            disturbances: vec![Disturbance::of_every_trial(by, At::levels("depth=4"), 0.65)],
            ..waiting(Response::Latency, Noise::Lognormal { sigma: 0.03 }, 10)
        };
        let name = format!("median, {by:?}");
        hold_runs(
            "times, disturbed",
            &disturbed,
            &name,
            runs_beside(1),
            |run| compared(run, is_depth),
        );
    }
}

/// Whether the sizes that are called worse or near in a time are that.
fn of_best(best: &Claim, truth: &Truth) -> Outcome {
    let time = |one: &Point| {
        let cell = &truth.cells[place(one.cell.expect("a cell"), truth)];
        match one.quantity {
            Quantity::Of(response) => cell.value(response).expect("a time"),
            other => panic!("{other:?}"),
        }
    };
    let least = best.ranked().map(time).fold(f64::INFINITY, f64::min);
    Outcome::of_all(best.ranked().map(|one| match one.standing {
        Standing::Worse => outcome(time(one) > least),
        Standing::Near => outcome(time(one) <= (1.0 + MARGIN) * least * (1.0 + 1e-9)),
        _ => Outcome::NotClaimed,
    }))
}

fn bests(run: (RunRecord, Truth)) -> Outcome {
    each_best(run, of_best)
}

#[test]
fn size_with_the_shortest_time_is_kept() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            // Slower by the same factor as they are larger, so that all have the same time.
            let equal = Scenario {
                effects: vec![
                    (At::levels("bs=16k"), 4.0),
                    (At::levels("bs=64k"), 16.0),
                    (At::levels("bs=256k"), 64.0),
                ],
                ..asked_for_time(noise, trials)
            };
            let name = format!("equal, {name}");
            hold("best size by time", &equal, &name, bests);
        }
    }
    // A size four times as large takes four times as long.
    let longer = asked_for_time(Noise::Lognormal { sigma: 0.03 }, 12);
    let score = hold(
        "best size by time",
        &longer,
        "as long as they are large, lognormal 3 %",
        bests,
    );
    assert!(score.is_true_at_least(SAID_MIN), "{score}");
}

fn asked_for_time(noise: Noise, trials: u32) -> Scenario {
    let sizes = Scenario::of("read-random", &["bs=4k,16k,64k,256k"]).drifting(noise, trials);
    Scenario {
        experiment: Experiment {
            response: Response::Latency,
            ..sizes.experiment
        },
        ..sizes
    }
}
