//! Traffic of a program by control groups and the kernel's trace events.

use iolab_analysis::witness::{Evidence, p99_of};
use iolab_workload::units::{counted, format_bytes, format_ns, format_percent_of_whole};
use iolab_workload::witness::{
    GroupHolds, SyncTimes, TracedDisk, TracedProgram, TracedRequests, TracedSyncs,
};

/// The syncs, as a part of a sentence.
pub(super) fn syncs(trace: &TracedProgram) -> String {
    let TracedSyncs {
        syncs,
        timed,
        flushed,
        uncached,
        commits: _,
        times,
    } = trace.syncs;
    let first = trace.until_ns.map_or(String::new(), |until| {
        format!("in the first {} ", format_ns(until as f64))
    });
    let all = counted(syncs, "sync");
    let Some(times) = times else {
        return format!("{first}file systems received {all} from it");
    };
    let is_one = (syncs, timed, trace.lost) == (1, 1, 0);
    let (median, each) = match timed == syncs {
        true if is_one => (String::new(), "it"),
        true => (" (median)".to_owned(), "each"),
        false => (
            format!(" (median of the {timed} whose end was seen)"),
            "each of these",
        ),
    };
    let took = format_ns(times.whole.p50_ns as f64);
    let within = match flushed {
        0 if uncached == timed => {
            "and the disk has no volatile cache that needs a flush".to_owned()
        }
        0 if is_one => "and no disk completed a cache flush within it".to_owned(),
        0 => "and no disk completed a cache flush within them".to_owned(),
        all if all == timed => format!("with a cache flush of the disk within {each}"),
        some => format!("with a cache flush of the disk within {some} of them"),
    };
    let missing = match trace.lost {
        0 => "",
        _ => " (some are missing)",
    };
    let all = match is_one {
        true => "sync".to_owned(),
        false => all,
    };
    format!("{first}its {all}{missing} took {took}{median}, {within}")
}

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
