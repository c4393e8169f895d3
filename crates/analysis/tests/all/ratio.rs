//! The ratio of two cells that claims rest on, between two groups of trials.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::ratio;
use iolab_record::RunRecord;
use iolab_synthetic::{At, Noise, Outcome, Scenario, Truth, grade};

/// Ratios from the blocks that both cells share, and of runs that share none. The ratio of the medians with the
/// interval of Price and Bonett misses the truth here in a fifth of the runs.
#[test]
fn ratio_interval_covers_truth_with_two_groups() {
    let scenario = Scenario {
        noise: Noise::TwoGroups {
            upper: 0.48,
            ratio: 1.2,
            sigma: 0.005,
        },
        effects: vec![(At::levels("bs=1M"), 1.3)],
        trials: 20,
        ..Scenario::of("read-size", &["bs=4k,1M"])
    };
    for shares_blocks in [true, false] {
        let judge = |(record, truth): (RunRecord, Truth)| {
            let run = analyse(&record);
            let side = |cell: usize| {
                let (values, blocks) = run.cells[cell].trials();
                (values, if shares_blocks { blocks } else { &[] })
            };
            let found = ratio(side(0), side(1)).expect("positive values");
            assert_eq!(found.blocks, shares_blocks.then_some(20));
            let (low, high) = found.interval.expect("20 trials");
            match (low..=high).contains(&truth.ratio(0, 1)) {
                true => Outcome::True,
                false => Outcome::False,
            }
        };
        let score = grade("ratio", 400, scenario.runs(), judge);
        assert_eq!(score.claimed, 400);
        assert!(score.is_false_at_most(0.05), "{shares_blocks}: {score}");
    }
}
