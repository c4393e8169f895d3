//! Disk requests by the threads of an observed program, and activity during its syncs.

use std::collections::{BTreeMap, BTreeSet};

use crate::observed::{SyncTimes, Times, TracedDisk, TracedRequests, TracedSyncs};
use iolab_host::clock::Clock;
use iolab_host::tracing::join::join;
use iolab_host::tracing::syncs::{TracedSync, calls};
use iolab_host::tracing::{DeviceRequest, SECTOR, of_events};
use iolab_host::tracing::{Event, TraceEventKind, Transfer};
use iolab_workload::stages::{Journal, PerStage};

/// A file system with traced syncs. Device numbers are the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TracedFileSystem {
    /// Device of the file system.
    pub(super) number: u32,
    /// Disk of that device.
    pub(super) disk: u32,
    /// Visibility of its journal in events.
    pub(super) journal: Journal,
    /// Whether the disk has a volatile cache, which a sync has to flush.
    pub(super) has_cache: bool,
}

/// Threads of a program over time.
#[derive(Debug, Default)]
struct Threads {
    /// Times at which a thread of this number belonged to the program, stamps.
    spans: BTreeMap<u32, Vec<(u64, u64)>>,
}

impl Threads {
    /// Threads that `first` and `parent` create, and their descendants; `first` belong from the beginning on.
    /// Numbers of ended threads are reused.
    fn of(events: &[Event], first: &BTreeSet<u32>, parent: Option<u32>) -> Self {
        let mut threads = Self::default();
        for thread in first {
            threads.spans.insert(*thread, vec![(0, u64::MAX)]);
        }
        for event in events {
            let TraceEventKind::Began { thread, by } = event.kind else {
                continue;
            };
            let is_own = parent == Some(by) || threads.has(by, event.at);
            let spans = threads.spans.entry(thread).or_default();
            if let Some((_, to)) = spans.last_mut() {
                *to = event.at.min(*to);
            }
            if is_own {
                spans.push((event.at, u64::MAX));
            }
        }
        threads
    }

    fn has(&self, thread: u32, at: u64) -> bool {
        let spans = self.spans.get(&thread);
        spans.is_some_and(|spans| spans.iter().any(|(from, to)| (*from..*to).contains(&at)))
    }
}

/// Activity of a program by events in time order: per disk, by the kernel's number, and its syncs. `first` are
/// its threads from the beginning on. `parent` is the thread that starts the program, without belonging to it.
pub(super) fn of_program(
    events: &[Event],
    (first, parent): (&BTreeSet<u32>, Option<u32>),
    file_systems: &[TracedFileSystem],
    clock: &Clock,
) -> (BTreeMap<u32, TracedDisk>, TracedSyncs) {
    let threads = Threads::of(events, first, parent);
    (
        disks(events, &threads, clock),
        syncs(events, &threads, file_systems, clock),
    )
}

/// Requests of one direction found so far.
#[derive(Debug, Default)]
struct Found {
    bytes: u64,
    queue: Vec<u64>,
    device: Vec<u64>,
}

impl Found {
    fn add(&mut self, part: &DeviceRequest, clock: &Clock) {
        self.bytes = self.bytes.saturating_add((part.end - part.first) * SECTOR);
        self.queue.push(clock.ns_between(part.start, part.issue));
        self.device
            .push(clock.ns_between(part.issue, part.complete));
    }

    fn told(self) -> TracedRequests {
        TracedRequests {
            requests: self.device.len() as u64,
            bytes: self.bytes,
            queue: times(self.queue),
            device: times(self.device),
        }
    }
}

fn disks(events: &[Event], threads: &Threads, clock: &Clock) -> BTreeMap<u32, TracedDisk> {
    let mut found: BTreeMap<u32, (Found, Found, u64)> = BTreeMap::new();
    for part in &of_events(events).parts {
        let (reads, writes, others) = found.entry(part.disk).or_default();
        match (threads.has(part.thread, part.start), part.transfer) {
            (true, Transfer::Read) => reads.add(part, clock),
            (true, Transfer::Write) => writes.add(part, clock),
            (true, Transfer::Flush | Transfer::Other) => {}
            (false, _) => *others += 1,
        }
    }
    let told = found.into_iter().map(|(disk, (reads, writes, others))| {
        let told = TracedDisk {
            reads: reads.told(),
            writes: writes.told(),
            others,
        };
        (disk, told)
    });
    told.collect()
}

fn syncs(
    events: &[Event],
    threads: &Threads,
    file_systems: &[TracedFileSystem],
    clock: &Clock,
) -> TracedSyncs {
    let mut told = TracedSyncs::default();
    let mut timed = Vec::new();
    for ((number, inode), calls) in calls(events) {
        let own = calls.iter().map(|(call, _)| call);
        let own = own.filter(|call| threads.has(call.thread, call.begin));
        let place = file_systems.iter().find(|known| known.number == number);
        for call in own {
            told.syncs += 1;
            let Some((place, end)) = place.zip(call.end) else {
                continue;
            };
            told.uncached += u64::from(!place.has_cache);
            timed.push(TracedSync {
                start: call.begin,
                end,
                thread: call.thread,
                disk: place.disk,
                file_system: Some(number),
                inode,
                journal: place.journal,
            });
        }
    }
    let joined = join(&[], &timed, events).syncs;
    told.timed = timed.len() as u64;
    told.flushed = joined.flushed();
    told.commits = joined.counts(0..timed.len()).commits;
    let whole = timed
        .iter()
        .map(|sync| clock.ns_between(sync.start, sync.end));
    let whole = times(whole.collect());
    let mean = |of: fn(&PerStage<u64>) -> u64| {
        let sum: u64 = joined.stages.iter().map(of).sum();
        clock.ns_between(0, sum) as f64 / timed.len().max(1) as f64
    };
    told.times = whole.map(|whole| SyncTimes {
        whole,
        flush_ns: mean(|stages| stages.sync_flush),
        journal_ns: mean(|stages| stages.sync_journal),
        write_ns: mean(|stages| stages.sync_write),
        host_ns: mean(|stages| stages.sync_admission + stages.sync_host + stages.sync_delivery),
    });
    told
}

/// Summary of times; `None` without any.
fn times(mut ns: Vec<u64>) -> Option<Times> {
    ns.sort_unstable();
    // Least value that at least this share of all values does not exceed.
    let quantile = |percent: usize| ns.get((ns.len() * percent).div_ceil(100).checked_sub(1)?);
    Some(Times {
        p50_ns: *quantile(50)?,
        p99_ns: *quantile(99)?,
        mean_ns: ns.iter().map(|one| *one as f64).sum::<f64>() / ns.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_host::tracing::{Edge, Step};

    const DISK: u32 = 7;

    fn block(at: u64, step: Step, first: u64, thread: u32, transfer: Transfer) -> Event {
        let kind = TraceEventKind::Block {
            step,
            disk: DISK,
            first,
            count: if transfer == Transfer::Flush { 0 } else { 8 },
            transfer,
            metadata: false,
            thread,
        };
        Event { at, kind }
    }

    /// A read of 4 KiB: 10 ticks in the queue, 100 in the device.
    fn read(at: u64, first: u64, thread: u32) -> [Event; 3] {
        [
            block(at, Step::Start, first, thread, Transfer::Read),
            // The thread that happens to have the CPU.
            block(at + 10, Step::Issue, first, 1, Transfer::Read),
            block(at + 110, Step::Complete, first, 0, Transfer::Read),
        ]
    }

    fn began(at: u64, thread: u32, by: u32) -> Event {
        let kind = TraceEventKind::Began { thread, by };
        Event { at, kind }
    }

    fn in_order(mut events: Vec<Event>) -> Vec<Event> {
        events.sort_by_key(|event| event.at);
        events
    }

    fn told(
        events: &[Event],
        first: &[u32],
        parent: Option<u32>,
    ) -> (BTreeMap<u32, TracedDisk>, TracedSyncs) {
        let first = first.iter().copied().collect();
        let file_system = TracedFileSystem {
            number: DISK + 1,
            disk: DISK,
            journal: Journal::Commits,
            has_cache: true,
        };
        of_program(
            events,
            (&first, parent),
            &[file_system],
            &Clock::of_rate(1.0),
        )
    }

    /// Thread 5 observes and creates 10, which creates 11; 11 ends, and a stranger gets its number.
    #[test]
    fn requests_belong_to_the_program_that_sent_them() {
        let mut events = vec![began(1, 10, 5), began(2, 11, 10), began(1000, 11, 77)];
        events.extend(read(100, 0, 10));
        events.extend(read(300, 80, 11));
        events.extend(read(500, 160, 77));
        events.extend(read(1100, 240, 11));
        events.extend(read(1300, 320, 5));
        let (disks, syncs) = told(&in_order(events), &[], Some(5));
        let disk = disks[&DISK];
        assert_eq!((disk.reads.requests, disk.reads.bytes), (2, 8192));
        assert_eq!(disk.others, 3);
        let [queue, device] = [disk.reads.queue, disk.reads.device].map(|times| times.unwrap());
        assert_eq!((queue.p50_ns, device.p99_ns), (10, 100));
        assert_eq!(disk.writes, TracedRequests::default());
        assert_eq!(syncs, TracedSyncs::default());
    }

    #[test]
    fn joined_process_has_threads_from_the_beginning() {
        let mut events = vec![began(50, 11, 10)];
        events.extend(read(100, 0, 10));
        events.extend(read(300, 80, 11));
        let (disks, _) = told(&in_order(events), &[10], None);
        assert_eq!(disks[&DISK].reads.requests, 2);
    }

    #[test]
    fn syncs_are_counted_with_their_flushes() {
        let sync = |at, edge, thread, inode| {
            let kind = TraceEventKind::Sync {
                edge,
                file_system: DISK + 1,
                inode,
                thread,
            };
            Event { at, kind }
        };
        let events = in_order(vec![
            sync(100, Edge::Begin, 10, 3),
            block(120, Step::Issue, 0, 1, Transfer::Flush),
            block(160, Step::Complete, 0, 1, Transfer::Flush),
            sync(200, Edge::End, 10, 3),
            // A sync without a flush, and a stranger's sync.
            sync(300, Edge::Begin, 10, 4),
            sync(310, Edge::End, 10, 4),
            sync(400, Edge::Begin, 12, 3),
            sync(500, Edge::End, 12, 3),
            // A sync whose end was not seen.
            sync(600, Edge::Begin, 10, 3),
        ]);
        let (_, syncs) = told(&events, &[10], None);
        assert_eq!((syncs.syncs, syncs.timed, syncs.flushed), (3, 2, 1));
        let times = syncs.times.unwrap();
        assert_eq!(times.whole.p99_ns, 100);
        assert_eq!((times.flush_ns, times.host_ns), (20.0, 35.0));
    }

    /// XFS does not report the end of a sync: the end of its thread's call does.
    #[test]
    fn calls_end_the_syncs_of_xfs() {
        let sync = |at, thread, inode| {
            let kind = TraceEventKind::Sync {
                edge: Edge::Begin,
                file_system: DISK + 1,
                inode,
                thread,
            };
            Event { at, kind }
        };
        let call = |at, edge, thread| {
            let kind = TraceEventKind::SyncCall { edge, thread };
            Event { at, kind }
        };
        let events = in_order(vec![
            call(90, Edge::Begin, 10),
            sync(100, 10, 3),
            call(195, Edge::Begin, 11),
            call(200, Edge::End, 10),
            // A write with O_DSYNC, then an fsync on a file system without sync events.
            sync(300, 10, 3),
            call(310, Edge::Begin, 10),
            call(400, Edge::End, 10),
            // Threads that wait at the same time for the same file.
            sync(500, 11, 3),
            call(510, Edge::Begin, 10),
            sync(520, 10, 3),
            call(530, Edge::End, 11),
            call(560, Edge::End, 10),
        ]);
        let (_, syncs) = told(&events, &[10, 11], None);
        assert_eq!((syncs.syncs, syncs.timed), (4, 3));
        let times = syncs.times.unwrap();
        assert_eq!((times.whole.p50_ns, times.whole.p99_ns), (40, 100));
        assert!((times.whole.mean_ns - 170.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        assert_eq!(times(Vec::new()), None);
        let hundred = times((1..=100).rev().collect()).unwrap();
        assert_eq!((hundred.p50_ns, hundred.p99_ns), (50, 99));
        assert!((hundred.mean_ns - 50.5).abs() < 1e-9);
    }
}
