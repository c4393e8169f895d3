//! Use of more blocks for an explanation, and whether a larger budget gives them.

use iolab_plan::experiment::BLOCKS_MAX;

/// ` Increase --budget.`, if that gives more than these blocks.
pub(super) fn of_phenomenon(blocks: usize) -> String {
    match blocks < BLOCKS_MAX as usize {
        true => " Increase --budget.".to_owned(),
        false => format!(
            " A larger budget gives no more than {BLOCKS_MAX} blocks: measure when the machine is idle."
        ),
    }
}

/// ` (about 25 blocks, here 20: increase --budget)`, if a verdict needs that many.
pub(super) fn of_verdict(needed: usize, blocks: usize) -> String {
    match needed <= BLOCKS_MAX as usize {
        true => format!(" (about {needed} blocks, here {blocks}: increase --budget)"),
        false => format!(" (about {needed} blocks, and a run has at most {BLOCKS_MAX})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_budget_is_recommended_only_for_more_blocks() {
        insta::assert_snapshot!(of_phenomenon(29), @" Increase --budget.");
        insta::assert_snapshot!(of_phenomenon(30), @" A larger budget gives no more than 30 blocks: measure when the machine is idle.");
        insta::assert_snapshot!(of_verdict(30, 20), @" (about 30 blocks, here 20: increase --budget)");
        insta::assert_snapshot!(of_verdict(60, 28), @" (about 60 blocks, and a run has at most 30)");
    }
}
