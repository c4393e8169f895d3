//! Grades of claims on rounds repeated until they are steady, for a drive with a known level in each round.
//! `claims.rs` explains how the table of docs/METHODS.md is made.

use std::time::Duration;

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::claims;
use iolab_plan::precondition::{Round, SteadyRounds};
use iolab_record::{PreparationKind, PreparationStep, RunRecord};
use iolab_stats::{SteadyLimits, steady_state};
use iolab_synthetic::{Noise, Outcome, Scenario};

use super::claims::{SAID_MIN, hold_made, outcome, runs};

/// Most rounds.
const ROUNDS: u32 = 25;
/// Requests of a round at the level 1.
const REQUESTS: f64 = 1e6;

/// Multiple of a limit up to which a level is just at it: a window is judged by five rounds, each with its
/// scatter.
const NEAR: f64 = 1.5;

/// Level of a drive in each round, from 0 on.
type Level = fn(f64) -> f64;

/// Rounds of random writes, made until the last of them are steady, as in a run; with the level of each.
fn rounds(level: Level, noise: Noise, seed: u64) -> (RunRecord, Vec<f64>) {
    let mut scenario = Scenario::of("write-random", &["bs=4k", "sync=none"]);
    scenario.experiment.design.precondition.steady = Some(SteadyRounds {
        round: Round::Writes(Duration::from_secs(60)),
        rounds: ROUNDS,
        ..SteadyRounds::default()
    });
    let (mut record, _) = scenario.run(seed);
    let mut draws = noise.draws(seed);
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    for number in 1..=ROUNDS {
        let true_level = level(f64::from(number - 1));
        let requests = REQUESTS * true_level * draws.next_log().exp();
        levels.push(true_level);
        values.push(requests);
        record.preparation.push(PreparationStep {
            at_utc: record.run.started_utc.clone(),
            kind: PreparationKind::Round,
            number,
            ok: true,
            bs: Some(4096),
            requests: requests as u64,
            bytes: requests as u64 * 4096,
            elapsed_ns: 60_000_000_000,
            ..PreparationStep::default()
        });
        if steady_state(&values, SteadyLimits::SNIA).is_some_and(|steady| steady.reached) {
            break;
        }
    }
    (record, levels)
}

/// Whether the drive's own level is steady in the last window, within this multiple of the standard's limits.
fn is_steady(levels: &[f64], multiple: f64) -> bool {
    let limits = SteadyLimits {
        range: SteadyLimits::SNIA.range * multiple,
        slope: SteadyLimits::SNIA.slope * multiple,
        ..SteadyLimits::SNIA
    };
    steady_state(levels, limits).is_some_and(|steady| steady.reached)
}

/// Whether rounds that are called steady are, and others are not; levels just at a limit do not count.
fn judged((record, levels): (RunRecord, Vec<f64>)) -> Outcome {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    Outcome::of_all(all.iter().map(|claim| match claim.kind.name {
        "steady-rounds" => outcome(is_steady(&levels, NEAR)),
        "rounds-not-steady" => outcome(!is_steady(&levels, 1.0 / NEAR)),
        _ => Outcome::NotClaimed,
    }))
}

#[test]
fn rounds_are_called_steady_only_correctly() {
    let drives: [(&str, Level); 4] = [
        ("one level", |_| 1.0),
        ("falls to a quarter within 5 rounds", |round| {
            1.0 + 3.0 * (-round / 2.0).exp()
        }),
        ("falls to a quarter within 15 rounds", |round| {
            1.0 + 3.0 * (-round / 5.0).exp()
        }),
        ("falls by 8 % in each round", |round| 0.92_f64.powf(round)),
    ];
    for (drive, level) in drives {
        for (name, sigma) in [("lognormal 1 %", 0.01), ("lognormal 2 %", 0.02)] {
            let noise = Noise::Lognormal { sigma };
            let row = format!("{drive}, {name}");
            let make = |seed| rounds(level, noise, seed);
            let score = hold_made(("steady rounds", &row), runs(), make, judged);
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}
