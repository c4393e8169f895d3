//! Doubts about the cells of a run, and ways to get more trials, in words.

use super::with_levels;
use crate::{doubt, ratio};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::doubt::{Doubt, DoubtKind};
use iolab_record::{EndedBy, RunStatus, TargetKind};
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
        DoubtKind::FewTrials => more_trials(run, cells).to_owned(),
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

/// A sentence with the way to get more trials of these cells; empty if no setting of the user ended them.
pub(super) fn more_trials(run: &Analysis, cells: &[&CellAnalysis]) -> &'static str {
    let ended = |by: Option<EndedBy>| cells.iter().any(|c| c.cell.ended_by == by);
    let is_cut = ended(None) && run.status != RunStatus::Done || ended(Some(EndedBy::User));
    let by_trials_max = ended(Some(EndedBy::TrialsMax));
    let is_precise = |c: &&CellAnalysis| c.precision.is_none_or(|p| p <= run.precision_goal);
    match run.target_kind {
        TargetKind::Imported => {
            "More jobs of the same settings in the imported file give more trials."
        }
        TargetKind::Commands => "--runs N gives more trials.",
        kind if is_cut && kind.is_resumable() => "'iolab resume FILE' gives more trials.",
        _ if is_cut => "A run that is not interrupted gives more trials.",
        _ if ended(Some(EndedBy::Budget)) && by_trials_max => {
            "A larger --budget and --set trials_max=N give more trials."
        }
        _ if ended(Some(EndedBy::Budget)) => "A larger --budget gives more trials.",
        _ if by_trials_max => "--set trials_max=N gives more trials.",
        _ if ended(Some(EndedBy::Precision)) && cells.iter().all(is_precise) => {
            "A smaller --precision gives more trials."
        }
        _ => "",
    }
}
