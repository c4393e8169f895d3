//! Tables of evidence on a program: its traffic, its own numbers, loaded devices, and other processes.

use iolab_analysis::witness::{Bounds, Evidence, OtherCommand, Transfer, p99_of};
use iolab_record::witness::Claimed;
use iolab_workload::units::{
    counted, format_bytes, format_ns, format_percent_of_whole, significant,
};
use iolab_workload::witness::{GroupHolds, SyncTimes, TracedDisk, TracedProgram, TracedRequests};

/// One row for each traced quantity.
pub(super) fn rows(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let observed = &evidence.observed;
    let mut rows = Vec::new();
    if let Some(holds) = observed.group {
        let whose = match holds {
            GroupHolds::Program => "the control group that was made for it",
            GroupHolds::ProgramAndObserver => "its control group, which holds nothing else",
            GroupHolds::Others => "its control group, which holds other processes too",
        };
        let carried = observed.disks.iter().filter_map(|disk| {
            let group = disk.of_group?;
            let is_used = group.read_bytes.max(group.write_bytes) > 0;
            is_used.then(|| {
                format!(
                    "{} read {} and wrote {}",
                    disk.name,
                    format_bytes(group.read_bytes as f64),
                    format_bytes(group.write_bytes as f64)
                )
            })
        });
        let carried: Vec<String> = carried.collect();
        let carried = match carried.is_empty() {
            true => "no disk carried anything".to_owned(),
            false => carried.join(", "),
        };
        rows.push(("group", format!("for {whose}: {carried}")));
    }
    let Some(trace) = &observed.trace else {
        return rows;
    };
    for disk in &observed.disks {
        let told = disk.traced.as_ref().and_then(disk_row);
        rows.extend(told.map(|told| ("traced", format!("{}: {told}", disk.name))));
    }
    rows.extend(
        trace
            .syncs
            .times
            .map(|times| ("syncs", parts(trace, times))),
    );
    if let Some(until) = trace.until_ns {
        let until = format_ns(until as f64);
        rows.push((
            "traced",
            format!("only the first {until}: there is no room for more"),
        ));
    }
    if trace.lost > 0 {
        let lost = counted(trace.lost, "event");
        rows.push((
            "traced",
            format!("the kernel had no room for {lost}: requests and syncs are missing"),
        ));
    }
    rows
}

/// The requests of a disk; `None` if the program sent none.
fn disk_row(disk: &TracedDisk) -> Option<String> {
    let TracedDisk {
        reads,
        writes,
        others,
    } = disk;
    let own: Vec<String> = [("read", reads), ("write", writes)]
        .into_iter()
        .filter_map(|(what, requests)| requests_of(what, requests))
        .collect();
    let others = format!(
        "{} by other threads, the kernel's among them",
        counted(*others, "request")
    );
    (!own.is_empty()).then(|| format!("{}; {others}", own.join("; ")))
}

/// `1600 reads by it (100 MiB), median 2 µs in the queue and 340 µs in the device (99th percentiles 5 µs and 1.2 ms)`.
fn requests_of(what: &str, requests: &TracedRequests) -> Option<String> {
    let TracedRequests {
        requests,
        bytes,
        queue,
        device,
    } = requests;
    let ns = |ns: u64| format_ns(ns as f64);
    let (queue, device) = queue.zip(*device)?;
    let tails = p99_of(queue, *requests).zip(p99_of(device, *requests));
    let tail = tails.map_or(String::new(), |(queue, device)| {
        format!(" (99th percentiles {} and {})", ns(queue), ns(device))
    });
    Some(format!(
        "{} by it ({}), median {} in the queue and {} in the device{tail}",
        counted(*requests, what),
        format_bytes(*bytes as f64),
        ns(queue.p50_ns),
        ns(device.p50_ns),
    ))
}

/// Time of syncs by part.
fn parts(trace: &TracedProgram, times: SyncTimes) -> String {
    let SyncTimes {
        whole,
        flush_ns,
        journal_ns,
        write_ns,
        host_ns,
    } = times;
    let sum = flush_ns + journal_ns + write_ns + host_ns;
    let share = |ns: f64| format_percent_of_whole(ns / sum.max(1.0));
    let commits = match trace.syncs.commits {
        0 => String::new(),
        commits => format!("; {}", counted(commits, "journal commit")),
    };
    let tail = p99_of(whole, trace.syncs.timed).map_or(String::new(), |p99_ns| {
        format!(" (99th percentile {})", format_ns(p99_ns as f64))
    });
    format!(
        "{}, mean {}{tail}: {} flushes of the cache, {} journal, {} other writes of the disk, {} the rest{commits}",
        counted(trace.syncs.timed, "sync"),
        format_ns(whole.mean_ns),
        share(flush_ns),
        share(journal_ns),
        share(write_ns),
        share(host_ns)
    )
}

/// Clause for a device that completed requests although the kernel saw none in flight at a tick of its clock.
/// Any number of short requests can lie between two ticks.
pub(super) const BUSY_UNSEEN: &str =
    "busy time unknown (requests shorter than a clock tick of the kernel)";

/// Processes of one name, with their I/O.
pub(super) fn in_words(command: &OtherCommand<'_>) -> String {
    let whose = match command.first.is_kernel {
        true => " on behalf of processes",
        false => "",
    };
    format!(
        "{} read {}, wrote {}{whose}",
        name(command),
        format_bytes(command.read_bytes() as f64),
        format_bytes(command.write_bytes() as f64)
    )
}

/// `dd (PID 7, ended)`, `python3 (12 processes, 5 ended)`, `jbd2/vda1-8 (PID 281, thread of the kernel)`.
fn name(command: &OtherCommand<'_>) -> String {
    let (first, count) = (command.first, command.count());
    let mut parts = vec![match (count, first.is_kernel) {
        (1, _) => format!("PID {}", first.pid),
        (n, true) => counted(n as u64, "thread") + " of the kernel",
        (n, false) => counted(n as u64, "process"),
    }];
    parts.extend(match (command.ended(), first.is_kernel) {
        (0, false) => None,
        (_, true) => (count == 1).then(|| "thread of the kernel".to_owned()),
        (ended, false) if ended == count => Some("ended".to_owned()),
        (ended, false) => Some(format!("{ended} ended")),
    });
    format!("{} ({})", first.name, parts.join(", "))
}

/// Sentences on all that the program reports.
pub(super) fn told(evidence: &Evidence) -> Vec<String> {
    let Some(claim) = &evidence.claim else {
        return Vec::new();
    };
    let told = |(transfer, claimed, carried): (Transfer, Claimed, Option<Bounds>)| {
        let rate = claimed.rate.map_or(String::new(), |(rate, _)| {
            format!(" at {} MB/s", significant(rate))
        });
        let says = format!(
            "{} says that it {} {}{rate}",
            claim.tool,
            verb(transfer),
            format_bytes(claimed.bytes as f64)
        );
        let Some(carried) = carried else {
            return format!("{says}; what devices carried of it is unknown");
        };
        let most = format_bytes(carried.most_of(claimed) as f64);
        match (
            carried.is_exceeded_by(claimed),
            carried.mb_s_most_of(claimed),
        ) {
            (true, Some(mb_s)) => format!(
                "{says}; devices carried at most {most} of it, {} MB/s in the same time",
                significant(mb_s)
            ),
            (true, None) => format!("{says}; devices carried at most {most} of it"),
            (false, _) if carried.is_all_of(claimed.bytes) => {
                format!("{says}; devices carried all of it")
            }
            (false, _) => format!("{says}; devices can have carried all of it"),
        }
    };
    let reads = claim.reads.into_iter();
    let reads = reads.map(|claimed| (Transfer::Read, claimed, evidence.reads.carried));
    let writes = claim.writes.into_iter();
    let writes = writes.map(|claimed| (Transfer::Write, claimed, evidence.writes.carried));
    reads.chain(writes).map(told).collect()
}

fn verb(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::Read => "read",
        Transfer::Write => "wrote",
    }
}
