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
    let is_only = all.len() == 1;
    let of = |capital: &str, small: &str| match is_only {
        true => capital.to_owned(),
        false => format!("In some runs {small}"),
    };
    let blocks = || {
        format!(
            "{} are visited in randomised complete blocks from the recorded seed, so that a drift adds to the spread of every cell and is not mistaken for an effect.",
            of("All cells", "all cells")
        )
    };
    let sentences = all.iter().map(|order| match order {
        Some(TrialOrder::BlocksAfterWarmUp) => format!(
            "{} {} of every cell is a warm-up, kept in the run file and left out of every number.",
            blocks(),
            match is_only {
                true => "The first trial",
                false => "There the first trial",
            }
        ),
        Some(TrialOrder::Blocks) => format!("{} No trial is a warm-up.", blocks()),
        Some(TrialOrder::Rounds) => format!(
            "{} are visited in rounds, in the order of the definition, until the last rounds are steady or no more are allowed. Rounds before the last window are kept in the run file and left out of every number.",
            of("All cells", "all cells")
        ),
        Some(TrialOrder::OnlyTrials) => format!(
            "{} has one trial, from its first request on, without a warm-up.",
            of("Each cell", "each cell")
        ),
        None => format!(
            "{} of the trials is not known.",
            of("The order", "the order")
        ),
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
