//! Doubts about an answer, in words.

use iolab_analysis::doubt::{ComparedSide, Direction, Doubt, Doubts, Reason, SideDoubt};
use iolab_analysis::imbalance::Disturber;
use iolab_analysis::io_limit::ReachedLimit;
use iolab_record::ServedBy;
use iolab_workload::quantity::{counted, format_ns, format_percent, significant};
use iolab_workload::trial::SyncPolicy;

use crate::disturber::{self, of_both};

/// The doubt as a clause: `other traffic on the device (up to 44 %) in 8 of 8 trials`.
pub fn words(doubt: &Doubt, all: &Doubts) -> String {
    let (concerned, trials) = (doubt.samples.len(), all.trials);
    let within = format!("in {concerned} of {}", counted(trials as u64, "trial"));
    match &doubt.reason {
        Reason::NotSynced { .. } | Reason::NeverFlushed { .. } => clause(&doubt.reason),
        Reason::ServedBy {
            served_by,
            reason,
            is_one,
        } => match (is_one, concerned == trials) {
            (true, true) => format!("served by {served_by}: {reason}"),
            (true, false) => format!("served by {served_by} {within}: {reason}"),
            (false, _) => format!("served by {served_by} {within}; the first: {reason}"),
        },
        reason => format!("{} {within}", clause(reason)),
    }
}

/// A doubt about a comparison as a clause, with the side that it concerns where it is one: `served by page-cache on fio's side`. `base` and `new`
/// are those sides.
pub(crate) fn on_side(doubt: &SideDoubt, base: &str, new: &str) -> String {
    let what = match &doubt.reason {
        // Its words name both sides.
        Reason::Imbalance(_) => return clause(&doubt.reason),
        Reason::ServedBy { served_by, .. } => format!("served by {served_by}"),
        other => clause(other),
    };
    match doubt.side {
        None => what,
        Some(ComparedSide::Base) => format!("{what} on {base}"),
        Some(ComparedSide::New) => format!("{what} on {new}"),
    }
}

/// Reasons of one kind as clauses, one where only an extent differs: `waiting for a CPU (80 % and 85 %)`. Each extent is written once.
pub(crate) fn of_sides(alike: &[&Reason]) -> Vec<String> {
    let mut clauses: Vec<String> = Vec::new();
    let mut extents: Vec<String> = Vec::new();
    let mut by_others = None;
    for reason in alike {
        let (known, own) = match reason {
            Reason::Disturbed { by, worst } => {
                by_others = Some(*by);
                (&mut extents, disturber::extent(*by, *worst))
            }
            other => (&mut clauses, clause(other)),
        };
        if !known.contains(&own) {
            known.push(own);
        }
    }
    let disturbed =
        by_others.map(|by| format!("{} ({})", disturber::words(by), extents.join(" and ")));
    disturbed.into_iter().chain(clauses).collect()
}

/// Whether its clause gives values of one comparison.
pub(crate) fn has_values(reason: &Reason) -> bool {
    match reason {
        Reason::NotSynced { .. }
        | Reason::Unsynced { .. }
        | Reason::ServedBy { .. }
        | Reason::NeverFlushed { .. }
        | Reason::Disturbed { .. }
        | Reason::Imbalance(_)
        | Reason::ClockResolution { .. }
        | Reason::TwoGroups { .. }
        | Reason::Dependent { .. } => true,
        Reason::Suspended
        | Reason::ReadsAfterWrites
        | Reason::RateNotHeld
        | Reason::EndedByTime
        | Reason::Contradicted => false,
    }
}

/// Writes that are not durable when a request completes, with the name of their group: `nothing makes the writes
/// of log durable (log.sync=none)`.
fn not_synced(sync: SyncPolicy, group: Option<&str>) -> String {
    let (of, setting) = match group {
        None => (String::new(), "sync".to_owned()),
        Some(group) => (format!(" of {group}"), format!("{group}.sync")),
    };
    match sync {
        SyncPolicy::End => format!(
            "the writes{of} are made durable only at the end of a trial ({setting}=end), which the times of requests do not include"
        ),
        sync => format!("nothing makes the writes{of} durable ({setting}={sync})"),
    }
}

/// A reason against one side of a comparison, as a clause.
pub fn clause(reason: &Reason) -> String {
    match reason {
        Reason::NotSynced { sync, group } => not_synced(*sync, group.as_deref()),
        Reason::Unsynced { share } => format!(
            "no sync followed up to {} of a trial's writes",
            format_percent(*share)
        ),
        Reason::NeverFlushed { syncs } => {
            format!("none of {syncs} syncs flushed the write cache of the device")
        }
        Reason::Disturbed { by, worst } => {
            let extent = disturber::extent(*by, *worst);
            format!("{} ({extent})", disturber::words(*by))
        }
        Reason::Suspended => "the machine or iolab was suspended during a trial".to_owned(),
        Reason::ServedBy {
            served_by: ServedBy::Unknown,
            ..
        } => "the source of the bytes of one side is unknown".to_owned(),
        Reason::ServedBy { served_by, .. } => format!("one side was served by: {served_by}"),
        Reason::Imbalance(found) => of_both(found, "on the base's side", "on the new one"),
        Reason::ReadsAfterWrites => {
            "the drive may still have written for other cells during the reads".to_owned()
        }
        Reason::RateNotHeld => {
            "a requested rate was not held, so that response times grow with the length of a trial"
                .to_owned()
        }
        Reason::EndedByTime => "a time limit ended trials".to_owned(),
        Reason::ClockResolution { step_ns, share } => format!(
            "the clock resolves {}, {} of the value",
            format_ns(*step_ns),
            format_percent(*share)
        ),
        Reason::Contradicted => "another run of the same settings shows otherwise".to_owned(),
        Reason::TwoGroups { low, high } => format!(
            "the trials form two groups, between which the ratio varies from {} to {}",
            significant(*low),
            significant(*high)
        ),
        Reason::Dependent { independence } => format!(
            "each trial may depend on the one before: autocorrelation leaves them the weight of {} as many independent trials",
            format_percent(*independence)
        ),
    }
}

/// The doubt as sentences: what it is, its consequence, and a remedy.
pub fn sentences(doubt: &Doubt, all: &Doubts) -> String {
    let reason = &doubt.reason;
    let turns = |direction| reason.turns(direction);
    let follows = match (turns(Direction::AtLeast), turns(Direction::AtMost)) {
        (true, false) => "; the storage itself may be slower than measured",
        (false, true) => "; the storage itself may be faster than measured",
        _ => "",
    };
    let remedy = remedy(reason).map_or_else(String::new, |remedy| format!(" {remedy}."));
    format!("{}{follows}.{remedy}", words(doubt, all))
}

/// The remedy as a sentence without its full stop; `None` where nothing is known to help.
pub(crate) fn remedy(reason: &Reason) -> Option<String> {
    let text = match reason {
        Reason::Disturbed { by, .. } => without(*by),
        Reason::Suspended => "keep the machine awake (systemd-inhibit), then repeat the run",
        Reason::ServedBy {
            served_by: ServedBy::Unknown,
            ..
        } => "'iolab doctor TARGET' shows what iolab can see of the target",
        Reason::Imbalance(found) => without(found.what),
        Reason::ReadsAfterWrites => {
            "measure again with this version, which writes out between trials what others left"
        }
        Reason::RateNotHeld => "lower the rate (--rate) until it is held",
        Reason::EndedByTime => {
            "compare throughput or IOPS, or end trials by their bytes (--set bytes=SIZE --set time=none)"
        }
        Reason::Unsynced { .. } => {
            "lower sync_every, so that a trial has many syncs, or make trials longer"
        }
        Reason::Contradicted => {
            "repeat both experiments; 'iolab history' shows how runs differ over time"
        }
        Reason::NotSynced { .. }
        | Reason::ServedBy { .. }
        | Reason::NeverFlushed { .. }
        | Reason::ClockResolution { .. }
        | Reason::TwoGroups { .. }
        | Reason::Dependent { .. } => return None,
    };
    let mut letters = text.chars();
    let first = letters.next()?.to_uppercase();
    Some(first.chain(letters).collect())
}

/// Advice on a disturber.
pub(crate) fn without(disturber: Disturber) -> &'static str {
    match disturber {
        Disturber::Steal => "repeat the run while the host is less busy, or on a dedicated host",
        Disturber::CpuPressure | Disturber::WorkerWait | Disturber::Preempted => {
            "stop the processes that use the CPUs ('top -b -n 1 -o %CPU' lists them), then repeat the run"
        }
        Disturber::MemoryPressure => "free memory, then repeat the run",
        Disturber::OtherTraffic => {
            "stop what else uses the device ('iolab doctor TARGET' names it where it can), then repeat the run"
        }
        Disturber::Quota => {
            "raise the CPU quota of the control group (cpu.max), then repeat the run"
        }
        Disturber::Splitting => {
            "repeat the run with --set buffer_memory=contiguous, which keeps the buffers in one piece"
        }
        Disturber::Fragmentation => {
            "free memory, so that the kernel has huge pages again ('echo 1 > /proc/sys/vm/compact_memory' as root), then repeat the run"
        }
    }
}

/// The remedy for a limit of control groups.
pub const RAISE_LIMIT: &str = "raise the limit: another disk does not help";

/// The limit as a clause with its consequence.
pub fn limit(limit: &ReachedLimit) -> String {
    format!(
        "this container is limited to {} (I/O limit of its control group), and the load reached that; {RAISE_LIMIT}",
        limit.what.format(limit.per_second)
    )
}
