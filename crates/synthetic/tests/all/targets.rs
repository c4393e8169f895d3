//! Grades of claims on targets measured in separate runs: how often they are false, and how often large
//! differences are reported. `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::claims;
use iolab_record::RunRecord;
use iolab_synthetic::{At, Disturbance, Disturber, Noise, Outcome, Scenario, Truth};

use super::claims::{SAID_MIN, TRIALS, hold_made, judged, place, runs, runs_beside, shapes};

type Made = (RunRecord, Truth);

/// A run on each of three targets, with its throughput over the first one's.
fn on_targets(noise: Noise, trials: u32, ratios: [f64; 3]) -> [Scenario; 3] {
    let base = Scenario::of("read-random", &["bs=4k,64k,1M,4M"]).drifting(noise, trials);
    let mut names = ["/a", "/b", "/c"].into_iter();
    ratios.map(|ratio| Scenario {
        effects: vec![(At::all(), ratio)],
        ..base.on(names.next().expect("three"))
    })
}

fn make(targets: &[Scenario; 3]) -> impl Fn(u64) -> Vec<Made> + use<> {
    let targets = targets.each_ref().map(Scenario::runs);
    move |seed| {
        let all = (0..).zip(&targets);
        all.map(|(number, run)| run(3 * seed + number)).collect()
    }
}

/// Outcome of all claims on one target against another.
fn said(made: Vec<Made>) -> Outcome {
    let analyses: Vec<_> = made.iter().map(|(record, _)| analyse(record)).collect();
    let all = claims(&analyses.iter().collect::<Vec<_>>());
    let level = |id: Option<iolab_analysis::claim::CellId>| {
        let id = id.expect("a cell");
        let truth = &made[id.run].1;
        truth.cells[place(id, truth)].mb_s
    };
    let across = all.iter().filter(|claim| claim.compares_targets());
    let effects = across.flat_map(|claim| &claim.points);
    Outcome::of_all(effects.map(|one| judged(one.difference(), level(one.cell) / level(one.base))))
}

#[test]
fn equal_targets_are_rarely_called_different() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let targets = on_targets(noise, trials, [1.0; 3]);
            let name = format!("{name}, n = {trials}");
            let claim = ("targets across runs, none", name.as_str());
            hold_made(claim, runs(), make(&targets), said);
        }
    }
}

#[test]
fn large_differences_between_targets_are_said() {
    let little = Noise::Lognormal { sigma: 0.03 };
    for trials in TRIALS {
        for ratio in [0.3, 3.0] {
            let targets = on_targets(little, trials, [1.0, 1.0, ratio]);
            let name = format!("lognormal 3 %, ratio {ratio}, n = {trials}");
            let claim = ("targets across runs", name.as_str());
            let score = hold_made(claim, runs(), make(&targets), said);
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}

#[test]
fn a_disturbed_target_is_not_called_slower() {
    for by in [Disturber::Traffic, Disturber::Cpu] {
        let mut targets = on_targets(Noise::Lognormal { sigma: 0.03 }, 12, [1.0; 3]);
        targets[1].disturbances = vec![Disturbance::of_every_trial(by, At::all(), 0.65)];
        let name = format!("{by:?} on the second");
        let claim = ("targets across runs, disturbed", name.as_str());
        hold_made(claim, runs_beside(1), make(&targets), said);
    }
}
