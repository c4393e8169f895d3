//! Ways to get more trials, in words.

use iolab_analysis::more_trials::MoreTrials;

/// A sentence with the way to get more trials.
pub(super) fn sentence(of: MoreTrials) -> &'static str {
    match of {
        MoreTrials::Jobs => "More jobs of the same settings in the imported file give more trials.",
        MoreTrials::Uninterrupted => "A run that is not interrupted gives more trials.",
        MoreTrials::Resume => "'iolab resume FILE' gives more trials.",
        MoreTrials::Limits {
            budget,
            trials_max,
            precision: _,
        } => match (budget, trials_max) {
            (true, false) => "A larger --budget gives more trials.",
            (true, true) => "A larger --budget and --set trials_max=N give more trials.",
            (false, true) => "--set trials_max=N gives more trials.",
            // No setting of the user ended the trials.
            (false, false) => "",
        },
    }
}

/// Ways to get more trials for cells that may have reached the goal of precision, and need trials for something
/// else.
pub(super) fn beyond_precision(of: MoreTrials) -> &'static str {
    match of {
        MoreTrials::Limits {
            budget: false,
            trials_max: false,
            precision: true,
        } => "A smaller --precision gives more trials.",
        of => sentence(of),
    }
}
