//! A run in one line that can be pasted.

use std::collections::BTreeSet;

use super::agreement::shown;
use super::run_status::is_by_user;
use super::words::{done, in_words_of_standard, state_in_short, times};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Flag, Response};
use iolab_analysis::claim::groups;
use iolab_analysis::compare::Comparison;
use iolab_record::RunStatus;
use iolab_workload::quantity::{format_bytes, format_ns, format_percent};
use iolab_workload::settings::cell_label;

/// Most cells that the line names besides the lowest and the highest.
const NAMED_MAX: usize = 2;

/// `read-random on /mnt/disk: throughput 58.9 MB/s (bs=4KiB) to 2351 MB/s (bs=1MiB), from the device; 1 of 12 cells disturbed`.
/// With the comparisons of iolab with `peers`, also whether these agree. `None` where nothing was measured, and of a run that looks for a
/// cause.
pub fn conclusion(analysis: &Analysis, peers: &[Comparison]) -> Option<String> {
    // The cells of an inquiry are variants that a cause is told from, and not to be ranked.
    if analysis.inquiry.is_some() {
        return None;
    }
    let all = || analysis.cells.iter().filter(|cell| cell.response.is_some());
    let is_own = |cell: &&CellAnalysis| !cell.cell.spec.tool.is_peer();
    // Other tools are held against iolab's cells in a table of their own, and are no levels to rank.
    let has_own = all().any(|cell| is_own(&cell));
    let measured = || all().filter(|cell| is_own(cell) || !has_own);
    let median = |cell: &CellAnalysis| cell.response.map_or(0.0, |response| response.median);
    let least = measured().min_by(|a, b| median(a).total_cmp(&median(b)));
    let most = measured().max_by(|a, b| median(a).total_cmp(&median(b)));
    let (Some(least), Some(most)) = (least, most) else {
        return no_value(analysis);
    };
    let response = analysis.response;
    let value = |cell: &CellAnalysis| format!("{}{}", level(analysis, cell), place(analysis, cell));
    let answer = match least.cell.id == most.cell.id {
        true => {
            let precision = least.precision;
            let within =
                precision.map_or_else(String::new, |p| format!(" +/- {}", format_percent(p)));
            value(least) + &within
        }
        false if level(analysis, least) == level(analysis, most) => {
            let all = level(analysis, least);
            format!("{all} in all {} cells", measured().count())
        }
        false => format!("{} to {}", value(least), value(most)),
    };
    // IOPS are their own unit.
    let quantity = match response {
        Response::Iops if analysis.response_group.is_none() => String::new(),
        _ => match &analysis.response_group {
            Some(group) => format!("{group}'s {} ", analysis.quantity()),
            None => format!("{} ", analysis.quantity()),
        },
    };
    Some(format!(
        "{} on {}: {quantity}{answer}{}{}{}{}{}",
        analysis.experiment,
        analysis.target,
        source(measured()),
        rounds(analysis),
        without_value(analysis),
        agreement(peers),
        doubts(analysis)
    ))
}

/// `interference on /mnt/disk: too few requests for a value in all 2 cells`: where no cell that was measured has a value.
fn no_value(analysis: &Analysis) -> Option<String> {
    let lacks = |cell: &&CellAnalysis| cell.n > 0 && analysis.has_response(cell);
    let all = match analysis.cells.iter().filter(lacks).count() {
        0 => return None,
        1 if analysis.cells.len() == 1 => "in the only cell".to_owned(),
        n if n == analysis.cells.len() => format!("in all {n} cells"),
        n => format!("in {n} of {} cells", analysis.cells.len()),
    };
    Some(format!(
        "{} on {}: too few requests for a value {all}{}",
        analysis.experiment,
        analysis.target,
        doubts(analysis)
    ))
}

/// Where a cell is among the others: ` (bs=4KiB)`. That iolab measured it is left out: only its own cells are ranked.
fn place(analysis: &Analysis, cell: &CellAnalysis) -> String {
    let factors = analysis.factors.iter().zip(&cell.cell.levels);
    let (factors, levels): (Vec<_>, Vec<_>) = factors
        .filter(|(factor, _)| *factor != "tool" || cell.cell.spec.tool.is_peer())
        .map(|(factor, level)| (factor.clone(), level.clone()))
        .unzip();
    match factors.is_empty() {
        true => String::new(),
        false => format!(" ({})", cell_label(&factors, &levels)),
    }
}

/// Whether other tools measure the same: `; against fio: 1.02 times (0.985 to 1.05), equivalent within 10 %`.
fn agreement(peers: &[Comparison]) -> String {
    let parts = peers.iter().map(|comparison| {
        let all = comparison.overall.as_ref();
        let all = all.map(|all| (all.estimate, shown(all, comparison)));
        let only = || match comparison.cells.as_slice() {
            [only] => Some((only.estimate?, only.verdict.to_string())),
            _ => None,
        };
        let found = match all.or_else(only) {
            Some((estimate, shown)) => format!("{}, {shown}", times(&estimate)),
            None => "cannot tell".to_owned(),
        };
        format!("; against {}: {found}", comparison.base)
    });
    parts.collect()
}

/// The median of a cell: `58.9 MB/s`. Where its only trial changes its level, both levels, of which the trial as a whole has neither:
/// `1800 MB/s, after 71.0 s (118 GiB written) 100 MB/s`.
fn level(analysis: &Analysis, cell: &CellAnalysis) -> String {
    let response = analysis.response;
    let is_rate = response == Response::Throughput && analysis.response_group.is_none();
    let shift = analysis.timeline.of_only_trial(cell.cell.id);
    match shift.filter(|_| is_rate) {
        None => response.format(cell.response.map_or(0.0, |response| response.median)),
        Some(shift) => format!(
            "{}, after {} ({} {}) {}",
            response.format(shift.before_mb_s),
            format_ns(shift.after_ns as f64),
            format_bytes(shift.moved_bytes),
            done(shift.of),
            response.format(shift.after_mb_s),
        ),
    }
}

/// `, from the device`.
fn source<'a>(cells: impl Iterator<Item = &'a CellAnalysis>) -> String {
    let sources = cells.filter(|cell| !cell.cell.spec.runs_program());
    let sources: BTreeSet<String> = sources
        .filter_map(|cell| cell.served.as_ref().map(ToString::to_string))
        .collect();
    let mut sources = sources.into_iter();
    match (sources.next().as_deref(), sources.next()) {
        (None, _) => String::new(),
        (Some("model"), None) => ", computed by a model".to_owned(),
        (Some("device"), None) => ", from the device".to_owned(),
        (Some(only), None) => format!(", served by: {only}"),
        _ => ", from several sources".to_owned(),
    }
}

/// `; steady after 8 rounds; scaled, not PTS`: of rounds of its cells, which were asked for with the numbers, and of the standard that the run
/// follows; nothing without them.
fn rounds(analysis: &Analysis) -> String {
    let steady = analysis.steady.as_ref();
    let steady = steady.filter(|steady| steady.is_of_cells());
    let parts = [
        steady.map(|steady| state_in_short(analysis, steady)),
        analysis.standard.as_ref().and_then(in_words_of_standard),
    ];
    let parts = parts.into_iter().flatten();
    parts.map(|part| format!("; {part}")).collect()
}

/// The cells that the line cannot rank, which may have been the slowest: `; too few requests for a value in 2 of 5 cells (writer.rate=200MB/s,
/// writer.rate=none)`.
fn without_value(analysis: &Analysis) -> String {
    let cells = analysis.cells.iter();
    let lacking = cells.filter(|c| c.response.is_none() && c.n > 0 && analysis.has_response(c));
    let lacking: Vec<&CellAnalysis> = lacking.collect();
    let names = lacking.iter().take(NAMED_MAX);
    let names: Vec<String> = names
        .map(|cell| cell_label(&analysis.factors, &cell.cell.levels))
        .collect();
    let more = match lacking.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    match lacking.len() {
        0 => String::new(),
        n => format!(
            "; too few requests for a value in {n} of {} cells ({}{more})",
            analysis.cells.len(),
            names.join(", ")
        ),
    }
}

/// What a reader of the line has to know: how many cells were disturbed, have no interval or missed the goal.
fn doubts(analysis: &Analysis) -> String {
    let all = analysis.cells.len();
    let count =
        |is: &dyn Fn(&CellAnalysis) -> bool| analysis.cells.iter().filter(|c| is(c)).count();
    let seeks = analysis.seeks_precision;
    let imprecise =
        |cell: &CellAnalysis| seeks && cell.precision.is_some_and(|p| p > analysis.precision_goal);
    // Of rounds the line says instead whether they are steady; a single long trial has neither.
    let lacks = |cell: &CellAnalysis| {
        (seeks || cell.n == 1) && cell.response.is_some() && cell.precision.is_none()
    };
    let parts = [
        (
            count(&|cell| cell.response.is_none() && cell.n == 0),
            "not measured",
        ),
        (
            count(&|cell| cell.flags.contains(&Flag::RateNotHeld)),
            "behind the requested rate",
        ),
        (count(&CellAnalysis::is_disturbed), "disturbed"),
        (
            count(&|cell| groups(analysis, cell).is_some()),
            "with two groups of trials",
        ),
        (count(&lacks), "without an interval"),
        (count(&imprecise), "less precise than asked"),
    ];
    let mut words: Vec<String> = parts
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| match all {
            1 => what.to_owned(),
            _ => format!("{n} of {all} cells {what}"),
        })
        .collect();
    if analysis.status != RunStatus::Done {
        let how = match is_by_user(analysis) {
            true => "the user ended the run",
            false => "the run did not finish",
        };
        words.insert(0, how.to_owned());
    }
    match words.is_empty() {
        true => String::new(),
        false => format!("; {}", words.join(", ")),
    }
}
