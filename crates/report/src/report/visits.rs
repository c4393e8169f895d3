//! Order of the trials of a study's runs, in words.

use iolab_analysis::analysis::TrialOrder;

/// The sentences about the orders of the runs.
pub(super) fn visits(orders: &[Option<TrialOrder>]) -> String {
    let mut all: Vec<Option<TrialOrder>> = Vec::new();
    for order in orders {
        if !all.contains(order) {
            all.push(*order);
        }
    }
    let sentences = all.iter().map(|order| {
        let text = match order {
            Some(TrialOrder::BlocksAfterWarmUp) => {
                "All cells are visited in randomised complete blocks from the recorded seed, so that a drift adds to the spread of every cell and is not mistaken for an effect. The first trial of every cell is a warm-up, kept in the run file and left out of every number."
            }
            Some(TrialOrder::Blocks) => {
                "All cells are visited in randomised complete blocks from the recorded seed, so that a drift adds to the spread of every cell and is not mistaken for an effect. No trial is a warm-up."
            }
            Some(TrialOrder::Rounds) => {
                "All cells are visited in rounds, in the order of the definition, until the last rounds are steady or no more are allowed. Rounds before the last window are kept in the run file and left out of every number."
            }
            Some(TrialOrder::OnlyTrials) => {
                "Each cell has one trial, from its first request on, without a warm-up."
            }
            None => "The order of the trials is not known.",
        };
        match all.len() {
            1 => text.to_owned(),
            _ => format!("Of some runs: {text}"),
        }
    });
    sentences.collect::<Vec<String>>().join(" ")
}

/// Whether a run repeats trials for a precision, in random blocks.
pub(super) fn has_blocks(orders: &[Option<TrialOrder>]) -> bool {
    orders.iter().any(|order| match order {
        Some(TrialOrder::BlocksAfterWarmUp | TrialOrder::Blocks) => true,
        Some(TrialOrder::Rounds | TrialOrder::OnlyTrials) | None => false,
    })
}
