//! Doubts about the cells of a run, and ways to get more trials, in words.

use super::with_levels;
use crate::{doubt, ratio};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::doubt::{Doubt, DoubtKind};
use iolab_analysis::gaps::MoreTrials;
use iolab_record::TargetKind;
use iolab_workload::units::{format_percent, significant};

/// The doubt that a claim is about, with its greatest extent or what else is known of the first cell.
pub(super) fn in_words(doubt: &Doubt, run: &Analysis, cell: &CellAnalysis) -> String {
    let words = doubt.what.words();
    let most = doubt.extent.map(|value| {
        let extent = doubt::extent(doubt.what, value);
        format!("up to {extent}{}", with_levels(run, cell))
    });
    match most.or_else(|| detail(run, cell, doubt)) {
        None => words.to_owned(),
        Some(further) => format!("{words} ({further})"),
    }
}

/// The remedy for a doubt about these cells; empty if nothing is known to help.
pub(super) fn remedy(what: DoubtKind, run: &Analysis, cells: &[&CellAnalysis]) -> String {
    match what {
        DoubtKind::FewTrials => more_trials(MoreTrials::of(run, cells)).to_owned(),
        DoubtKind::FewRequests => longer_trials(run).to_owned(),
        // A rate that was missed while others used the machine may not be too high.
        DoubtKind::RateNotHeld if cells.first().is_some_and(|cell| cell.is_disturbed()) => {
            String::new()
        }
        _ => doubt::remedy(what).unwrap_or_default(),
    }
}

/// Knowledge of a doubt about a cell that has no extent.
fn detail(analysis: &Analysis, cell: &CellAnalysis, doubt: &Doubt) -> Option<String> {
    match doubt.what {
        DoubtKind::IoLimit => {
            let limit = cell.io_limit?;
            Some(limit.what.format(limit.per_second))
        }
        DoubtKind::FewRequests => {
            let (response, needed) = (analysis.response, analysis.response.requests_min());
            Some(format!("a {response} needs {needed} in a trial"))
        }
        DoubtKind::ExceedsCeiling | DoubtKind::SlowLink => {
            let efficiency = cell.efficiency?;
            Some(format!(
                "{} of {}",
                format_percent(efficiency.share),
                ratio::ceiling(&efficiency)
            ))
        }
        DoubtKind::RateNotHeld => {
            let rate = cell.rate_report.as_ref()?;
            Some(format!(
                "{} of {} per second in the median trial; missed in {} of {} trials",
                significant(rate.rate_achieved),
                significant(rate.rate_wanted),
                rate.not_held,
                cell.n
            ))
        }
        _ => doubt.note.clone(),
    }
}

/// Way to get more requests per trial.
pub(super) fn longer_trials(analysis: &Analysis) -> &'static str {
    match analysis.target_kind {
        TargetKind::Imported => "Longer jobs in the imported file have more.",
        // The budget of 'iolab why' decides on the length of its trials.
        _ if analysis.inquiry.is_some() => "",
        _ => "Increase --time.",
    }
}

/// A sentence with the way to get more trials.
pub(super) fn more_trials(of: MoreTrials) -> &'static str {
    match of {
        MoreTrials::Jobs => "More jobs of the same settings in the imported file give more trials.",
        MoreTrials::Runs => "--runs N gives more trials.",
        MoreTrials::Uninterrupted => "A run that is not interrupted gives more trials.",
        MoreTrials::Resume => "'iolab resume FILE' gives more trials.",
        MoreTrials::Limits {
            budget,
            trials_max,
            precision,
        } => match (budget, trials_max) {
            (true, false) => "A larger --budget gives more trials.",
            (true, true) => "A larger --budget and --set trials_max=N give more trials.",
            (false, true) => "--set trials_max=N gives more trials.",
            (false, false) if precision => "A smaller --precision gives more trials.",
            // No setting of the user ended the trials.
            (false, false) => "",
        },
    }
}
