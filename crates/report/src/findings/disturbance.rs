//! Findings about disturbance: other traffic, read-ahead, split requests, CPU, suspension, write-back.

use super::rule::DEVICE_REQUESTS;
use super::{Finding, Rule, Says, capitalised, cells_of};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Flag, WriteOut};
use iolab_analysis::disturbance::{CellDisturbance, Split, TrialGroup};
use iolab_analysis::imbalance::Disturber;
use iolab_analysis::io_limit::ReachedLimit;
use iolab_record::{ServedBy, TargetKind};
use iolab_workload::quantity::{format_ns, format_percent, significant};
use iolab_workload::settings::cell_label;
use iolab_workload::trial::{CacheState, SyncPolicy, TrialSpec};

use crate::disturber;
use crate::doubt::without;
use crate::group_settings;

pub(crate) const OTHER_TRAFFIC: Rule = Rule::doubt(
    "other-traffic",
    "the device's counters beyond iolab's own bytes, over all trials of a cell",
);
pub(crate) const READ_AHEAD: Rule = Rule::doubt(
    "read-ahead",
    "bytes fetched by the process's account, over bytes read",
);
pub(crate) const REQUESTS_IN_PIECES: Rule = Rule::doubt("requests-in-pieces", DEVICE_REQUESTS);
pub(crate) const WRITE_BACK_OWED: Rule = Rule::doubt(
    "write-back-owed",
    "an fdatasync that was timed after each trial",
);
pub(crate) const STORAGE_CACHE: Rule = Rule::doubt(
    "storage-cache",
    "an fdatasync that was timed after each trial",
);
pub(crate) const NOT_DURABLE: Rule =
    Rule::limit("not-durable", "the sync policy of each cell that writes");
pub(crate) const WRITE_OUT: Rule = Rule::limit(
    "write-out",
    "an fdatasync that was timed after each trial, over the budget",
);
pub(crate) const CPU_CONTENDED: Rule = Rule::doubt(
    "cpu-contended",
    "pressure stall information and steal time, over all trials of a cell",
);
pub(crate) const CPU_QUOTA: Rule = Rule::doubt(
    "cpu-quota",
    "the time in which the control group had used up its quota, in each trial",
);
pub(crate) const IO_LIMIT: Rule = Rule::doubt(
    "io-limit",
    "what reached the device in all trials of a cell, over the limits of its control groups",
);
pub(crate) const SUSPENDED: Rule = Rule::doubt(
    "suspended",
    "the clock that counts sleep against the one that does not, and the time for which iolab was stopped, in each trial",
);
pub(crate) const REQUESTS_SPLIT: Rule = Rule::doubt("requests-split", DEVICE_REQUESTS);

/// Rules on a run, in the order of their findings.
pub(crate) const SAYS: &[Says] = &[
    suspended, io_limited, taken_by_others, requests_split, requests_in_pieces, read_ahead,
    write_back_owed, storage_cache, written_out, not_durable,
];

/// Cells with a flag, and the one of them in which a quantity is greatest.
fn worst<'a>(
    analysis: &'a Analysis,
    flag: Flag,
    quantity: impl Fn(&CellDisturbance) -> Option<f64>,
) -> Option<(usize, &'a CellAnalysis, f64)> {
    let flagged = analysis.cells.iter().filter(|c| c.flags.contains(&flag));
    let of = |cell: &'a CellAnalysis| (cell, quantity(&cell.disturbance).unwrap_or(0.0));
    let cells: Vec<_> = flagged.map(of).collect();
    let (cell, value) = cells.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((cells.len(), cell, *value))
}

/// ` at bs=4KiB`; nothing where there is no factor.
fn at(analysis: &Analysis, cell: &CellAnalysis) -> String {
    if analysis.factors.is_empty() {
        return String::new();
    }
    format!(" at {}", cell_label(&analysis.factors, &cell.cell.levels))
}

/// Findings on time and traffic that others took, each with its flag and its disturbances.
const TAKEN: [(Rule, Flag, &[Disturber]); 3] = [
    (
        OTHER_TRAFFIC,
        Flag::OtherTraffic,
        &[Disturber::OtherTraffic],
    ),
    (
        CPU_CONTENDED,
        Flag::CpuContended,
        &[
            Disturber::CpuPressure,
            Disturber::WorkerWait,
            Disturber::Preempted,
            Disturber::Steal,
        ],
    ),
    (CPU_QUOTA, Flag::CpuQuota, &[Disturber::Quota]),
];

/// Findings on time and traffic that others took during trials.
pub fn taken_by_others(analysis: &Analysis) -> Vec<Finding> {
    let flagged = |flag: Flag| {
        analysis
            .cells
            .iter()
            .filter(move |c| c.flags.contains(&flag))
    };
    let told = TAKEN.iter().filter_map(|(rule, flag, taken)| {
        let worst = |by: Disturber| {
            let found = flagged(*flag).filter_map(|cell| {
                let mut all = Disturber::taken_by_others(&cell.disturbance);
                Some((by, cell, all.find(|(what, _)| *what == by)?.1))
            });
            found.max_by(|a, b| a.2.total_cmp(&b.2))
        };
        let found: Vec<_> = taken.iter().filter_map(|by| worst(*by)).collect();
        let (first, ..) = found.first()?;
        let clauses = found.iter().map(|(by, cell, value)| {
            let (what, extent) = (disturber::words(*by), disturber::extent(*by, *value));
            format!("{what} (up to {extent}{})", at(analysis, cell))
        });
        let text = format!(
            "{}: {}. {}.",
            cells_of(flagged(*flag).count(), analysis),
            clauses.collect::<Vec<_>>().join(", "),
            capitalised(without(*first)),
        );
        Some(Finding { rule: *rule, text })
    });
    told.collect()
}

/// Reads for which the kernel fetched more than was asked.
pub fn read_ahead(analysis: &Analysis) -> Vec<Finding> {
    let Some((n, cell, ratio)) = worst(analysis, Flag::ReadAhead, |c| c.read_ahead) else {
        return Vec::new();
    };
    let flagged = analysis.cells.iter();
    let flagged = flagged.filter(|cell| cell.flags.contains(&Flag::ReadAhead));
    let reads_ahead = |trial: &TrialSpec| trial.reads() && trial.cache != CacheState::Direct;
    let direct = group_settings::direct(flagged, reads_ahead);
    let text = format!(
        "{}: the kernel read ahead, and fetched up to {} times the requested bytes{}. The device was faster than this throughput; {direct} measures it without the page cache.",
        cells_of(n, analysis),
        significant(ratio),
        at(analysis, cell),
    );
    READ_AHEAD.one(text)
}

/// Cells named one by one in a sentence; more would bury it.
const NAMED_MAX: usize = 4;

/// Trials of one cell that fall into two groups by how their requests reached the device.
pub fn requests_split(analysis: &Analysis) -> Vec<Finding> {
    let response = analysis.response;
    let telling = |matters: bool, meaning: &str| {
        let cells: Vec<(&CellAnalysis, Split)> = analysis
            .cells
            .iter()
            .filter_map(|c| Some((c, c.disturbance.split.filter(|s| s.matters() == matters)?)))
            .collect();
        let named: Vec<String> = cells
            .iter()
            .take(NAMED_MAX)
            .map(|(cell, split)| groups(analysis, cell, *split))
            .collect();
        let rest = match cells.len() - named.len() {
            0 => String::new(),
            n => format!("; and in {n} more cells"),
        };
        let text = format!(
            "The kernel split the same requests in different ways{}{rest}. {meaning}",
            named.join(";"),
        );
        (!cells.is_empty()).then_some(Finding {
            rule: REQUESTS_SPLIT,
            text,
        })
    };
    let two_values = format!(
        "The {response} of such a cell is bimodal, usually because its buffer is fragmented in physical memory. --set buffer_memory=contiguous avoids that."
    );
    let one_value = "The medians of such trials lie within 5 % of each other.";
    [telling(true, &two_values), telling(false, one_value)]
        .into_iter()
        .flatten()
        .collect()
}

/// ` at bs=1MiB: 1.00 device I/Os per request in 7 trials (1454 MB/s), 2.61 in 2 trials (627 MB/s)`.
fn groups(analysis: &Analysis, cell: &CellAnalysis, split: Split) -> String {
    let trials = |group: TrialGroup| {
        let value = analysis.response.format(group.response);
        format!("in {} trials ({value})", group.trials)
    };
    format!(
        "{}: {} device I/Os per request {}, {} {}",
        at(analysis, cell),
        significant(split.whole.ios_per_request),
        trials(split.whole),
        significant(split.pieces.ios_per_request),
        trials(split.pieces),
    )
}

/// Requests that reach the device in pieces in every trial, which is as it should be above the device's limit.
pub fn requests_in_pieces(analysis: &Analysis) -> Vec<Finding> {
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
        at(analysis, most),
    );
    REQUESTS_IN_PIECES.one(text)
}

/// Buffered writes that were not on the device when the clock stopped.
pub fn write_back_owed(analysis: &Analysis) -> Vec<Finding> {
    let Some((n, cell, share)) = worst(analysis, Flag::WriteBackOwed, |c| c.owed) else {
        return Vec::new();
    };
    let after = cell
        .disturbance
        .owed_sync_ns
        .map_or_else(String::new, format_ns);
    let is_buffered = |trial: &TrialSpec| trial.cache != CacheState::Direct;
    let sync = sync_at_end(analysis, Flag::WriteBackOwed, is_buffered);
    let text = format!(
        "{} left writes in the page cache at the end of the timed span: making them durable took up to another {} of that span{} ({after}). The results exclude that time; {sync} includes it.",
        cells_of(n, analysis),
        format_percent(share),
        at(analysis, cell),
    );
    WRITE_BACK_OWED.one(text)
}

/// `--set sync=end`, for the groups of flagged cells that write without a sync.
fn sync_at_end(analysis: &Analysis, flag: Flag, concerns: fn(&TrialSpec) -> bool) -> String {
    let flagged = analysis.cells.iter();
    let flagged = flagged.filter(|cell| cell.flags.contains(&flag));
    group_settings::set(
        flagged,
        |trial| is_unsynced(trial) && concerns(trial),
        "sync=end",
    )
}

/// Whether a trial writes and nothing makes that durable.
fn is_unsynced(trial: &TrialSpec) -> bool {
    trial.writes_data() && trial.sync == SyncPolicy::None
}

/// Direct writes that the storage had not stored when the clock stopped.
pub fn storage_cache(analysis: &Analysis) -> Vec<Finding> {
    let share = |around: &CellDisturbance| around.owed_by_storage;
    let Some((n, cell, share)) = worst(analysis, Flag::StorageCache, share) else {
        return Vec::new();
    };
    let after = cell
        .disturbance
        .owed_sync_ns
        .map_or_else(String::new, format_ns);
    let sync = sync_at_end(analysis, Flag::StorageCache, |_| true);
    STORAGE_CACHE.one(format!(
        "{} left writes in a cache of the storage: making them durable took up to another {} of the timed span{} ({after}), with which the throughput there is {} of what is shown. A load that outlasts the cache may be as slow; {sync} includes that time.",
        cells_of(n, analysis),
        format_percent(share),
        at(analysis, cell),
        format_percent(1.0 / (1.0 + share)),
    ))
}

/// Time of the budget for what trials had left in caches.
pub fn written_out(analysis: &Analysis) -> Vec<Finding> {
    let Some(write_out) = analysis.write_out else {
        return Vec::new();
    };
    let advice = match (write_out.cut_short, analysis.standard.is_some()) {
        // A standard says how its writes are synced.
        (_, true) | (false, _) => String::new(),
        (true, false) => {
            let sync = group_settings::set(&analysis.cells, is_unsynced, "sync=end");
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
pub(super) fn in_words_of(write_out: WriteOut) -> String {
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

/// Cells whose rate an I/O limit of control groups decided.
pub(crate) fn io_limited(analysis: &Analysis) -> Vec<Finding> {
    let reached = analysis.cells.iter().filter_map(|cell| cell.io_limit);
    let all: Vec<ReachedLimit> = reached.collect();
    let mut limits: Vec<String> = Vec::new();
    for limit in &all {
        let told = limit.what.format(limit.per_second);
        if !limits.contains(&told) {
            limits.push(told);
        }
    }
    match all.len() {
        0 => Vec::new(),
        n => IO_LIMIT.one(format!(
            "{} reached an I/O limit of the control group ({}): these numbers and their ratios are those of the limit, not of the storage. Raise it (io.max, docker --device-read-iops and the like) and measure again.",
            cells_of(n, analysis),
            limits.join(", "),
        )),
    }
}

/// Writes to storage without a sync, except those that another finding reports as owed write-back.
pub fn not_durable(analysis: &Analysis) -> Vec<Finding> {
    let unsynced = |cell: &&CellAnalysis| {
        let served = cell.served.as_ref();
        cell.cell.program().is_none()
            && cell.cell.spec.trials().into_iter().any(is_unsynced)
            && served.is_some_and(|served| !served.any(ServedBy::NotStorage))
            && !cell.flags.contains(&Flag::WriteBackOwed)
    };
    let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(unsynced).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let groups = group_settings::names(cells.iter().copied(), is_unsynced);
    let set = |value| group_settings::set(cells.iter().copied(), is_unsynced, value);
    let (whose, remedy) = match (groups.as_slice(), analysis.target_kind) {
        (_, TargetKind::Imported) => (String::new(), "A sync at the end of each job".to_owned()),
        ([], _) => (String::new(), "--set sync=end or sync=each".to_owned()),
        ([group], _) => (
            format!(" in group {group}"),
            format!("{} or {group}.sync=each", set("sync=end")),
        ),
        (groups, _) => (
            format!(" in {}", group_settings::in_words(groups)),
            set("sync=end"),
        ),
    };
    NOT_DURABLE.one(format!(
        "{} wrote without a sync{whose} (sync=none): a power failure may lose writes that are still in a cache. {remedy} makes them durable, and includes that time.",
        cells_of(cells.len(), analysis),
    ))
}

/// Trials during which the machine slept, or iolab was stopped.
pub fn suspended(analysis: &Analysis) -> Vec<Finding> {
    let slept = |c: &CellDisturbance| Some(c.suspended_ns as f64);
    let Some((n, cell, ns)) = worst(analysis, Flag::Suspended, slept) else {
        return Vec::new();
    };
    let text = format!(
        "The machine was suspended, or iolab was stopped (Ctrl-Z), during trials of {} ({}{}): their times are invalid. Keep the machine awake (systemd-inhibit), do not stop iolab, and measure again.",
        cells_of(n, analysis).to_lowercase(),
        format_ns(ns),
        at(analysis, cell),
    );
    SUSPENDED.one(text)
}
