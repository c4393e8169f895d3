//! Grades of claims on time by layer. `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::analysis::{Timed, analyse};
use iolab_analysis::claim::{Claim, Point, Quantity, Standing, claims};
use iolab_synthetic::{LAYERS, LayerShares, Layers, Outcome, SYNC_LAYERS, traced};
use iolab_workload::stages::Stage;
use rand_core::SeedableRng;
use rand_distr::{Distribution, Uniform};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::claims::{SAID_MIN, hold_made, runs};

/// Random divisions of any kind from a seed, near ties included.
fn layers(seed: u64, cells: usize) -> Vec<Layers> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut within = |low: f64, high: f64| {
        let uniform = Uniform::new(low, high).expect("a range");
        uniform.sample(&mut random)
    };
    let mut division = || LayerShares {
        first: within(0.2, 0.8),
        second: within(0.5, 1.0),
        sigma: within(0.05, 1.0),
    };
    let one = |_| Layers {
        mean: division(),
        tail: division(),
        sync: division(),
        sync_tail: division(),
    };
    (0..cells).map(one).collect()
}

/// Whether the interval contains the true share of the stage, and no other stage has more than that interval
/// allows.
fn is_true(said: &Point, names: [Stage; 3], truth: LayerShares) -> bool {
    let shares = truth.medians();
    let is_said = |name| matches!(said.quantity, Quantity::Stage(stage, _) if stage == name);
    let own = names.iter().zip(shares).find(|(name, _)| is_said(**name));
    let (low, high) = said.interval.expect("an interval");
    own.is_some_and(|(_, share)| low <= share && share <= high)
        && shares.iter().all(|share| *share <= high)
}

fn judge(timed: Timed, truth: &[Layers], said: &[Claim]) -> Outcome {
    let kind = match timed {
        Timed::Requests => "time-by-layer",
        Timed::Syncs => "syncs-by-layer",
    };
    let own = said.iter().filter(|said| said.kind.name == kind);
    Outcome::of_all(own.map(|said| {
        let layers = truth[said.cells[0].cell as usize];
        let (names, mean, tail) = match timed {
            Timed::Requests => (LAYERS, layers.mean, layers.tail),
            Timed::Syncs => (SYNC_LAYERS, layers.sync, layers.sync_tail),
        };
        let mut tails = said.of(Standing::Slowest);
        let tail_is_true = tails.all(|said| is_true(said, names, tail));
        match is_true(&said.points[1], names, mean) && tail_is_true {
            true => Outcome::True,
            false => Outcome::False,
        }
    }))
}

#[test]
fn largest_layer_is_rarely_false() {
    for (trials, cells) in [(10, 1), (20, 3)] {
        for timed in Timed::ALL {
            let make = |seed: u64| {
                let truth = layers(seed, cells);
                let analysis = analyse(&traced(seed + 1000, trials, &truth));
                (truth, claims(&[&analysis]))
            };
            let what = match timed {
                Timed::Requests => "requests",
                Timed::Syncs => "syncs",
            };
            let name = format!("{what}, {cells} cells, n = {trials}");
            let score = hold_made(("time by layer", &name), runs(), make, |(truth, said)| {
                judge(timed, &truth, &said)
            });
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}
