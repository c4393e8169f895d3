//! Doubts about the cells of a run: one finding a row of the table of doubts.

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::doubt::{Doubt, DoubtClass, DoubtKind, of_cell};
use iolab_analysis::gaps::MoreTrials;
use iolab_record::TargetKind;
use iolab_workload::units::{format_percent, significant};

use super::precision::{longer_trials, more_trials};
use super::{Finding, Rule, Says, cells_of, with_levels};
use crate::{ceiling, doubt};

/// Basis of doubts.
const BASIS: &str = "counters and settings of each trial (METHODS.md, \"Doubts\")";

/// Findings on doubts, the weightiest first.
pub(crate) const SAYS: &[Says] = &[doubts];

/// Doubts about cells, each with the number of its cells and its greatest extent.
pub fn doubts(analysis: &Analysis) -> Vec<Finding> {
    let all: Vec<(&CellAnalysis, Vec<Doubt>)> = analysis
        .cells
        .iter()
        .map(|cell| (cell, of_cell(cell)))
        .collect();
    let finding = |what: DoubtKind| {
        let own = all.iter().filter_map(|(cell, doubts)| {
            let is_told = what != DoubtKind::FewTrials || cell.n > 0 && analysis.has_response(cell);
            let own = doubts.iter().find(|doubt| doubt.what == what && is_told)?;
            Some((*cell, own))
        });
        let own: Vec<(&CellAnalysis, &Doubt)> = own.collect();
        let extent = |doubt: &Doubt| doubt.extent.unwrap_or(0.0);
        let (cell, worst) = own
            .iter()
            .max_by(|a, b| extent(a.1).total_cmp(&extent(b.1)))?;
        let most = worst.extent.map(|value| {
            let extent = doubt::extent(what, value);
            format!("up to {extent}{}", with_levels(analysis, cell))
        });
        let further = match most.or_else(|| detail(analysis, cell, worst)) {
            None => String::new(),
            Some(further) => format!(" ({further})"),
        };
        let cells: Vec<&CellAnalysis> = own.iter().map(|(cell, _)| *cell).collect();
        let remedy = match what {
            DoubtKind::FewTrials => Some(more_trials(MoreTrials::of(analysis, &cells)).to_owned()),
            DoubtKind::FewRequests => Some(longer_trials(analysis).to_owned()),
            _ => doubt::remedy(what).filter(|_| can_help(what, cell)),
        };
        let remedy = remedy.filter(|remedy| !remedy.is_empty());
        let remedy = remedy.map_or_else(String::new, |remedy| format!(" {remedy}"));
        Some(Finding {
            rule: Rule::doubt(what.name(), BASIS),
            text: format!(
                "{}: {}{further}.{remedy}",
                cells_of(own.len(), analysis),
                what.words()
            ),
        })
    };
    let told = DoubtKind::ALL.iter().copied();
    told.filter(|what| is_told(analysis, *what))
        .filter_map(finding)
        .collect()
}

/// Whether a finding of its own is about the doubt: it makes numbers useless, or something helps against it.
fn is_told(analysis: &Analysis, what: DoubtKind) -> bool {
    match (what, what.class()) {
        // Claims say what was read back, and what the drive counted.
        (DoubtKind::VerifyFailed | DoubtKind::Throttled, _) => false,
        // A standard, or the job file, prescribes which trials follow each other.
        (DoubtKind::EarlierWrites, _) => {
            analysis.standard.is_none() && analysis.target_kind != TargetKind::Imported
        }
        // An inquiry has as many blocks as its question needs.
        (DoubtKind::FewTrials | DoubtKind::FewRequests, _) => {
            analysis.inquiry.is_none() && analysis.seeks_precision
        }
        (_, DoubtClass::Invalid | DoubtClass::Source) => true,
        _ => what.remedy().is_some(),
    }
}

/// Whether the remedy can help: a rate that was missed while others used the machine may not be too high.
fn can_help(what: DoubtKind, cell: &CellAnalysis) -> bool {
    what != DoubtKind::RateNotHeld || !cell.is_disturbed()
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
        DoubtKind::ExceedsCeiling => {
            let efficiency = cell.efficiency?;
            Some(format!(
                "{} of {}",
                format_percent(efficiency.share),
                ceiling::ceiling(&efficiency)
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
        DoubtKind::RequestsSplit => {
            let split = cell.disturbance.split?;
            let groups = [split.whole, split.pieces].map(|group| {
                format!(
                    "{} in {} trials with {} device I/Os per request",
                    analysis.response.format(group.response),
                    group.trials,
                    significant(group.ios_per_request)
                )
            });
            Some(groups.join(", "))
        }
        _ => doubt.note.clone(),
    }
}
