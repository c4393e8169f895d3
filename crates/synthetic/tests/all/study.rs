//! A whole study: how often any of the first statements of its page is false.

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::claim::{CellId, Claim, HEADLINES_MAX, claims, headlines};
use iolab_record::RunRecord;
use iolab_synthetic::{At, Common, Curve, Noise, Outcome, Scenario, TrueCell, Truth};

use crate::claims::{SAID_MIN, hold_each, judged, of_best, outcome, place, runs, shapes};

/// Greatest share of studies with a false first statement.
const FALSE_MAX: f64 = 0.1;
/// Trials of each cell.
const TRIALS: u32 = 9;

/// Sequential and random accesses over sizes, and skips: the experiments of a study. Small random requests are
/// slower, and so are long skips.
fn experiments(noise: Noise) -> Vec<Scenario> {
    let sizes = |name: &str, mb_s: f64, effects: &[(&str, f64)]| Scenario {
        mb_s,
        curves: vec![("bs", Curve::Amortised { half: 65536.0 })],
        effects: effects
            .iter()
            .map(|(at, ratio)| (At::levels(at), *ratio))
            .collect(),
        ..Scenario::of(name, &["bs=4k,16k,64k,256k,1M,4M"])
    };
    let skips = |name: &str, mb_s: f64| Scenario {
        mb_s,
        effects: vec![(At::levels("skip=1M"), 0.6)],
        ..Scenario::of(name, &["bs=128k,1M", "skip=4k,32k,1M"])
    };
    let all = [
        sizes("read-size", 500.0, &[]),
        sizes("read-random", 500.0, &[("bs=4k", 0.4), ("bs=16k", 0.7)]),
        sizes("write-size", 200.0, &[]),
        sizes("write-random", 200.0, &[("bs=4k", 0.5)]),
        skips("read-stride", 400.0),
        skips("write-stride", 180.0),
    ];
    let of = |(hour, one): (u64, Scenario)| Scenario {
        started: one.started + 3600 * hour,
        noise,
        tails: vec![(At::all(), 0.8)],
        common: Common {
            block_sigma: 0.1,
            ..Common::default()
        },
        trials: TRIALS,
        ..one
    };
    (0..).zip(all).map(of).collect()
}

fn study(noise: Noise) -> impl Fn(u64) -> Vec<(RunRecord, Truth)> {
    let all: Vec<_> = experiments(noise).iter().map(Scenario::runs).collect();
    move |seed| {
        let all = (0..).zip(&all);
        all.map(|(place, run)| run(10 * seed + place)).collect()
    }
}

fn truth(truths: &[&Truth], id: CellId) -> TrueCell {
    let of_run = truths[id.run];
    of_run.cells[place(id, of_run)].clone()
}

/// Whether everything that a statement claims of these runs is true.
fn is_true(claim: &Claim, truths: &[&Truth]) -> Outcome {
    let level = |id| truth(truths, id).mb_s;
    match claim.comparison() {
        Some(_) => Outcome::of_all(claim.points.iter().map(|effect| {
            let [base, other] = [effect.base, effect.cell].map(|id| level(id.expect("a cell")));
            judged(effect.difference(), other / base)
        })),
        _ if claim.ranked().next().is_some() => of_best(claim, truths[claim.runs()[0]]),
        // No level changes in these runs.
        _ if claim.level_change().is_some() => Outcome::False,
        _ => match claim.kind.name {
            "long-tail" => outcome(truth(truths, claim.cells[0]).p99_over_p50 > 3.0),
            "not-written-over" => Outcome::True,
            // Of the trials that were made: they may scatter as far as blocks do.
            "not-steady" => Outcome::NotClaimed,
            other => panic!("{other} is not about such runs"),
        },
    }
}

#[test]
fn a_study_rarely_begins_with_a_false_statement() {
    for (name, noise) in shapes() {
        let row = format!("{name}, n = {TRIALS}");
        let [score] = hold_each(
            (["study, what comes first"], &row),
            (runs(), FALSE_MAX),
            study(noise),
            |made| {
                let analyses: Vec<Analysis> =
                    made.iter().map(|(record, _)| analyse(record)).collect();
                let analyses: Vec<&Analysis> = analyses.iter().collect();
                let truths: Vec<&Truth> = made.iter().map(|(_, truth)| truth).collect();
                let all = claims(&analyses);
                let first = headlines(&all).into_iter().take(HEADLINES_MAX);
                [Outcome::of_all(first.map(|claim| is_true(claim, &truths)))]
            },
        );
        assert!(score.is_true_at_least(SAID_MIN), "{score}");
    }
}
