//! Findings that the conditions of the trials do not give, and settings to change, by group of workers.

use super::{DEVICE_REQUESTS, Finding, Rule, capitalised, cells_of, with_levels};
use iolab_analysis::analysis::{Analysis, CellAnalysis, WriteOut};
use iolab_analysis::doubt::DoubtKind;
use iolab_record::{ServedBy, TargetKind};
use iolab_workload::trial::{SyncPolicy, TrialSpec};
use iolab_workload::units::{format_ns, significant};

const REQUESTS_IN_PIECES: Rule = Rule::doubt("requests-in-pieces", DEVICE_REQUESTS);

const NOT_DURABLE: Rule = Rule::limit("not-durable", "the sync policy of each cell that writes");

const WRITE_OUT: Rule = Rule::limit(
    "write-out",
    "an fdatasync that was timed after each trial, over the budget",
);

/// Requests that reach the device in pieces in every trial, which is as it should be above the device's limit.
pub(super) fn requests_in_pieces(analysis: &Analysis) -> Vec<Finding> {
    let cells: Vec<&CellAnalysis> = analysis
        .cells
        .iter()
        .filter(|c| c.disturbance.is_in_pieces() && c.disturbance.split.is_none())
        .collect();
    let ios = |cell: &CellAnalysis| cell.disturbance.ios_per_request.unwrap_or(1.0);
    let by_ios = |a: &&&CellAnalysis, b: &&&CellAnalysis| ios(a).total_cmp(&ios(b));
    let Some(most) = cells.iter().max_by(by_ios) else {
        return Vec::new();
    };
    let text = format!(
        "{}: requests reached the device in pieces, up to {} device I/Os per request{}. The cause is a limit of the device (device_request_max_kib, device_segments_max) or the memory of the buffers.",
        cells_of(cells.len(), analysis),
        significant(ios(most)),
        with_levels(analysis, most),
    );
    REQUESTS_IN_PIECES.one(text)
}

/// Whether a trial writes and nothing makes that durable.
fn is_unsynced(trial: &TrialSpec) -> bool {
    trial.writes_data() && trial.sync == SyncPolicy::None
}

/// Time of the budget for what trials had left in caches.
pub(super) fn written_out(analysis: &Analysis) -> Vec<Finding> {
    let Some(write_out) = analysis.write_out else {
        return Vec::new();
    };
    let advice = match (write_out.cut_short, analysis.standard.is_some()) {
        // A standard says how its writes are synced.
        (_, true) | (false, _) => String::new(),
        (true, false) => {
            let sync = set(&analysis.cells, is_unsynced, "sync=end");
            format!(
                " A larger --budget gives more trials; with {sync} that time is a part of the trials."
            )
        }
    };
    let counts = match write_out.is_unpaid {
        true => "The load that was asked for does not count the first.",
        false => "The budget counts both.",
    };
    WRITE_OUT.one(format!(
        "{}. {counts}{advice}",
        capitalised(&in_words_of(write_out))
    ))
}

/// `writing out what trials had left in caches took 641 s, the trials themselves 35.1 s`.
fn in_words_of(write_out: WriteOut) -> String {
    let WriteOut {
        took_ns,
        trials_ns,
        cut_short: _,
        is_unpaid: _,
    } = write_out;
    format!(
        "writing out what trials had left in caches took {}, the trials themselves {}",
        format_ns(took_ns as f64),
        format_ns(trials_ns as f64)
    )
}

/// Writes to storage without a sync, except those that another finding reports as owed write-back.
pub(super) fn not_durable(analysis: &Analysis) -> Vec<Finding> {
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
    let groups = names(cells.iter().copied(), is_unsynced);
    let set = |value| set(cells.iter().copied(), is_unsynced, value);
    let (whose, remedy) = match (groups.as_slice(), analysis.target_kind) {
        (_, TargetKind::Imported) => (String::new(), "A sync at the end of each job".to_owned()),
        ([], _) => (String::new(), "--set sync=end or sync=each".to_owned()),
        ([group], _) => (
            format!(" in group {group}"),
            format!("{} or {group}.sync=each", set("sync=end")),
        ),
        (groups, _) => (format!(" in {}", in_words(groups)), set("sync=end")),
    };
    NOT_DURABLE.one(format!(
        "{} wrote without a sync{whose} (sync=none): a power failure may lose writes that are still in a cache. {remedy} makes them durable, and includes that time.",
        cells_of(cells.len(), analysis),
    ))
}

/// Names of the groups of these cells whose trials the advice concerns, each once; empty without groups.
fn names<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
    concerns: impl Fn(&TrialSpec) -> bool,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        for (group, trial) in cell.cell.spec.named_trials() {
            if let Some(name) = group.filter(|name| concerns(trial) && !names.contains(name)) {
                names.push(name);
            }
        }
    }
    names
}

/// `--set sync=end`, or for cells with groups `--set log.sync=end --set bulk.sync=end`, for the groups that it
/// concerns.
fn set<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
    concerns: impl Fn(&TrialSpec) -> bool,
    setting: &str,
) -> String {
    let names = names(cells, concerns);
    if names.is_empty() {
        return format!("--set {setting}");
    }
    let sets = names.iter().map(|name| format!("--set {name}.{setting}"));
    sets.collect::<Vec<_>>().join(" ")
}

/// `groups log and bulk`.
fn in_words(names: &[&str]) -> String {
    match names {
        [some @ .., last] if !some.is_empty() => format!("groups {} and {last}", some.join(", ")),
        names => format!("group {}", names.concat()),
    }
}
