//! Grades of comparisons of two cells of a run.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{CellVerdict, Comparison, Criteria, HypothesisTest, RunSide};
use iolab_record::RunRecord;
use iolab_synthetic::{At, Common, Noise, Outcome, Scenario, Truth, grade};

use crate::claims::shapes;

/// Verdict of `compare --by bs` on a run with two sizes.
fn said(record: RunRecord) -> CellVerdict {
    let run = AnalysedRun::of(record);
    let side = |level| RunSide {
        run: &run,
        held: Some(("bs", level)),
    };
    let terms = Criteria {
        margin: 0.05,
        tests: vec![HypothesisTest::Welch],
        within_run: false,
        ..Criteria::default()
    };
    let names = ["4KiB", "1MiB"].map(|name| name.to_owned().into());
    let comparison = Comparison::of_runs(names, side("4KiB"), side("1MiB"), terms);
    comparison.expect("two sizes").cells[0].verdict
}

fn judge((record, truth): (RunRecord, Truth)) -> Outcome {
    let ratio = truth.ratio(0, 1);
    let is_true = match said(record) {
        CellVerdict::Faster => ratio > 1.0,
        CellVerdict::Slower => ratio < 1.0,
        CellVerdict::Equivalent => ratio.ln().abs() <= 1.05_f64.ln(),
        _ => return Outcome::NotClaimed,
    };
    match is_true {
        true => Outcome::True,
        false => Outcome::False,
    }
}

fn two_sizes(noise: Noise, ratio: f64) -> Scenario {
    Scenario {
        noise,
        effects: vec![(At::levels("bs=1M"), ratio)],
        common: Common {
            block_sigma: 0.1,
            ..Common::default()
        },
        ..Scenario::of("read-size", &["bs=4k,1M"])
    }
}

#[test]
fn ratios_within_blocks_are_rarely_false() {
    let [.., (_, groups), (_, stalls)] = shapes();
    // In a quarter of the runs, two blocks of ten or more have a stall on the faster side, so it has to be
    // faster by more than that.
    for (noise, large) in [
        (Noise::Lognormal { sigma: 0.08 }, 1.5),
        (groups, 1.5),
        (stalls, 3.0),
    ] {
        let none = two_sizes(noise, 1.0);
        let score = grade("no difference", 200, none.runs(), judge);
        assert!(score.is_false_at_most(0.05), "{noise:?} {score}");
        // Ratios of either sign.
        for ratio in [large, 1.0 / large] {
            let large = two_sizes(noise, ratio);
            let score = grade("a large one", 200, large.runs(), judge);
            assert!(score.is_true_at_least(0.9), "{noise:?} {ratio} {score}");
            assert!(score.is_false_at_most(0.05), "{noise:?} {ratio} {score}");
        }
    }
}
