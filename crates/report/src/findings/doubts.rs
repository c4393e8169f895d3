//! Doubts about the cells of a run, conditions that its trials do not give, and whether trials are enough.

use std::collections::BTreeSet;

use super::{Finding, Rule, cells_of, levels_of, with_levels};
use crate::{doubt, ratio};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response, TAIL_REQUESTS_MIN};
use iolab_analysis::doubt::{Doubt, DoubtClass, DoubtKind, of_cell};
use iolab_analysis::gaps::MoreTrials;
use iolab_record::{ServedBy, TargetKind};
use iolab_workload::trial::{SyncPolicy, TrialSpec};
use iolab_workload::units::{format_percent, significant};

/// Basis of doubts.
const BASIS: &str = "counters and settings of each trial (METHODS.md, \"Doubts\")";

/// Doubts about cells, the weightiest first, each with the number of its cells and its greatest extent.
pub(super) fn doubts(analysis: &Analysis) -> Vec<Finding> {
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

/// Cells whose interval is wider than the requested precision, or missing.
pub(super) fn below_precision(analysis: &Analysis) -> Vec<String> {
    // An inquiry has as many blocks as its question needs, and its comparisons have their own intervals. Steady
    // rounds and a soak have no goal of precision, and get no more trials.
    if analysis.inquiry.is_some() || !analysis.seeks_precision {
        return Vec::new();
    }
    let measured = || {
        let all = analysis.cells.iter();
        all.filter(|c| c.n > 0 && analysis.has_response(c))
    };
    let wide: Vec<&CellAnalysis> = measured()
        .filter(|c| c.precision.is_some_and(|p| p > analysis.precision_goal))
        .collect();
    let worst = wide.iter().max_by(|a, b| {
        a.precision
            .unwrap_or(0.0)
            .total_cmp(&b.precision.unwrap_or(0.0))
    });
    let Some(worst) = worst else {
        return Vec::new();
    };
    let goal = format_percent(analysis.precision_goal);
    let reached = format!(
        "{} after {} trials",
        match wide_interval(worst, analysis.response) {
            None => format!("+/- {}", format_percent(worst.precision.unwrap_or(0.0))),
            Some(interval) => format!("95 % interval {interval}"),
        },
        worst.n
    );
    let missed = format!(
        "{} missed the {goal} precision goal ({}{reached}).",
        cells_of(wide.len(), analysis),
        match levels_of(analysis, worst) {
            None => String::new(),
            Some(levels) => format!("worst with {levels}: "),
        },
    );
    // Further trials are at one level or the other.
    let changed = analysis.timeline.over_run.iter();
    let has_changed = changed
        .map(|shift| shift.cell)
        .any(|id| wide.iter().any(|cell| cell.cell.id == id));
    let remedy = match has_changed {
        true => "The level changed during the run, so that more trials do not help.",
        false => more_trials(MoreTrials::of(analysis, &wide)),
    };
    vec![format!("{missed} {remedy}").trim_end().to_owned()]
}

/// The interval of the median of a cell, `0.0250 MB/s to 14.9 MB/s`, if half of it exceeds the median: a
/// distance of 16853 % to both sides has no meaning.
pub(super) fn wide_interval(cell: &CellAnalysis, response: Response) -> Option<String> {
    cell.precision.filter(|precision| *precision > 1.0)?;
    let interval = cell.response?.median_interval?;
    let [low, high] = [interval.low, interval.high].map(|end| response.format(end));
    Some(format!("{low} to {high}"))
}

/// Way to get more requests per trial.
fn longer_trials(analysis: &Analysis) -> &'static str {
    match analysis.target_kind {
        TargetKind::Imported => "Longer jobs in the imported file have more.",
        // The budget of 'iolab why' decides on the length of its trials.
        _ if analysis.inquiry.is_some() => "",
        _ => "Increase --time.",
    }
}

/// Cells whose trials have too few requests for a 99th percentile.
pub(super) fn tail_unknown(analysis: &Analysis) -> Vec<String> {
    let unknown = |c: &&CellAnalysis| match &c.mix {
        Some(mix) => {
            let requests = mix.iter().filter(|(operation, _)| operation.is_request());
            let mut all = requests.filter_map(|(_, one)| one.as_ref());
            all.any(|one| !one.has_tail)
        }
        None => c.latency.is_some() && c.tail.is_none(),
    };
    let shown = match analysis.response {
        Response::P99 => "",
        _ => ": p99 is close to the maximum of a trial there, and may be far from the true one",
    };
    match analysis.cells.iter().filter(unknown).count() {
        0 => Vec::new(),
        n => vec![format!(
            "{} had too few requests per trial to estimate the 99th percentile of latency ({TAIL_REQUESTS_MIN} are needed){shown}. {}",
            cells_of(n, analysis),
            longer_trials(analysis),
        )],
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
        of => more_trials(of),
    }
}

/// Requests that reach the device in pieces, which is as it should be above the device's limit.
pub(super) fn requests_in_pieces(analysis: &Analysis) -> Vec<String> {
    let cells: Vec<&CellAnalysis> = analysis
        .cells
        .iter()
        .filter(|c| c.disturbance.is_in_pieces())
        .collect();
    let ios = |cell: &CellAnalysis| cell.disturbance.ios_per_request.unwrap_or(1.0);
    let by_ios = |a: &&&CellAnalysis, b: &&&CellAnalysis| ios(a).total_cmp(&ios(b));
    let Some(most) = cells.iter().max_by(by_ios) else {
        return Vec::new();
    };
    vec![format!(
        "{}: requests reached the device in pieces, up to {} device I/Os per request{}. The cause is a limit of the device (device_request_max_kib, device_segments_max) or the memory of the buffers.",
        cells_of(cells.len(), analysis),
        significant(ios(most)),
        with_levels(analysis, most),
    )]
}

/// Whether a trial writes and nothing makes that durable.
fn is_unsynced(trial: &TrialSpec) -> bool {
    trial.writes_data() && trial.sync == SyncPolicy::None
}

/// Writes to storage without a sync, except those that another finding reports as owed write-back.
pub(super) fn not_durable(analysis: &Analysis) -> Vec<String> {
    let unsynced = |cell: &&CellAnalysis| {
        let served = cell.served.as_ref();
        cell.cell.program().is_none()
            && cell.cell.spec.trials().into_iter().any(is_unsynced)
            && served.is_some_and(|served| !served.any(ServedBy::NotStorage))
            && !cell.flags.contains(&DoubtKind::WriteBackOwed)
    };
    let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(unsynced).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let trials = cells.iter().flat_map(|cell| cell.cell.spec.named_trials());
    let groups = trials.filter(|(_, trial)| is_unsynced(trial));
    let settings: BTreeSet<String> = groups
        .map(|(group, _)| match group {
            None => "--set sync=end".to_owned(),
            Some(group) => format!("--set {group}.sync=end"),
        })
        .collect();
    let remedy = match analysis.target_kind {
        TargetKind::Imported => "A sync at the end of each job".to_owned(),
        _ => Vec::from_iter(settings).join(" "),
    };
    vec![format!(
        "{} wrote without a sync (sync=none): a power failure may lose writes that are still in a cache. {remedy} makes them durable, and includes that time.",
        cells_of(cells.len(), analysis),
    )]
}
