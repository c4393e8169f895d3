//! Tables of evidence on a program: its traffic, its own numbers, loaded devices, and other processes.

use crate::evidence::{Evidence, p99_of};
use crate::observed::{GroupHolds, SyncTimes, TracedDisk, TracedProgram, TracedRequests};
use iolab_workload::units::{counted, format_bytes, format_ns, format_percent_of_whole};

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
    let own: Vec<String> = [("read", &disk.reads), ("write", &disk.writes)]
        .into_iter()
        .filter_map(|(what, requests)| requests_of(what, requests))
        .collect();
    let others = format!(
        "{} by other threads, the kernel's among them",
        counted(disk.others, "request")
    );
    (!own.is_empty()).then(|| format!("{}; {others}", own.join("; ")))
}

/// `1600 reads by it (100 MiB), median 2 µs in the queue and 340 µs in the device (99th percentiles 5 µs and 1.2 ms)`.
fn requests_of(what: &str, own: &TracedRequests) -> Option<String> {
    let ns = |ns: u64| format_ns(ns as f64);
    let (queue, device) = own.queue.zip(own.device)?;
    let tails = p99_of(queue, own.requests).zip(p99_of(device, own.requests));
    let tail = tails.map_or(String::new(), |(queue, device)| {
        format!(" (99th percentiles {} and {})", ns(queue), ns(device))
    });
    Some(format!(
        "{} by it ({}), median {} in the queue and {} in the device{tail}",
        counted(own.requests, what),
        format_bytes(own.bytes as f64),
        ns(queue.p50_ns),
        ns(device.p50_ns),
    ))
}

/// Time of syncs by part.
fn parts(trace: &TracedProgram, times: SyncTimes) -> String {
    let sum = times.flush_ns + times.journal_ns + times.write_ns + times.host_ns;
    let share = |ns: f64| format_percent_of_whole(ns / sum.max(1.0));
    let commits = match trace.syncs.commits {
        0 => String::new(),
        commits => format!("; {}", counted(commits, "journal commit")),
    };
    let tail = p99_of(times.whole, trace.syncs.timed).map_or(String::new(), |p99_ns| {
        format!(" (99th percentile {})", format_ns(p99_ns as f64))
    });
    format!(
        "{}, mean {}{tail}: {} flushes of the cache, {} journal, {} other writes of the disk, {} the rest{commits}",
        counted(trace.syncs.timed, "sync"),
        format_ns(times.whole.mean_ns),
        share(times.flush_ns),
        share(times.journal_ns),
        share(times.write_ns),
        share(times.host_ns)
    )
}
