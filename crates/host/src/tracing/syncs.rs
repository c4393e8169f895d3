//! Kernel activity during the syncs of a trial.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::event::{Edge, Event, TraceEventKind};
use iolab_workload::stages::{Journal, PerStage, SyncCounts};

/// A sync of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedSync {
    /// Stamp at which the sync was issued.
    pub start: u64,
    /// Stamp at which its completion was seen.
    pub end: u64,
    /// Thread that issued the sync and waited for it.
    pub thread: u32,
    /// Kernel's number of the disk whose flush the sync waits for.
    pub disk: u32,
    /// Kernel's number of the file system's device; `None` without one.
    pub file_system: Option<u32>,
    /// Inode of the file.
    pub inode: u64,
    /// Visibility of the journal in events.
    pub journal: Journal,
}

/// Period of some activity of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    /// Kernel's number of the device: of a disk, or of a file system for its journal.
    pub(super) device: u32,
    /// End of the period, stamp.
    pub(super) end: u64,
    pub(super) start: u64,
}

/// Disk activity outside the trial's requests.
#[derive(Debug, Default)]
pub(super) struct Background {
    pub(super) flushes: Vec<Span>,
    /// Metadata writes, from their start in the block layer.
    pub(super) metadata: Vec<Span>,
    /// Other writes.
    pub(super) data: Vec<Span>,
}

/// A sync as its file system sees it.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its beginning, stamp.
    pub begin: u64,
    /// End by the file system's event, or by the traced call of the thread that contains it.
    pub end: Option<u64>,
    /// The thread that calls.
    pub thread: u32,
}

/// Result of joining the syncs of a trial with events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JoinedSyncs {
    /// Ticks of each stage, per sync in order.
    pub stages: Vec<PerStage<u64>>,
    /// Whether the file system reported when it got each sync.
    is_entered: Vec<bool>,
    /// Number of the commit that each sync waited for.
    commit: Vec<Option<usize>>,
    /// Numbers of the flushes completed within each sync.
    flushes: Vec<Range<usize>>,
    /// Number of syncs that waited for each commit, and for each flush.
    commit_shares: Vec<u32>,
    flush_shares: Vec<u32>,
}

impl JoinedSyncs {
    /// Counts for the syncs of these numbers.
    pub fn counts(&self, numbers: impl IntoIterator<Item = usize>) -> SyncCounts {
        let (mut commits, mut flushes) = (BTreeSet::new(), BTreeSet::new());
        let mut syncs = 0;
        for number in numbers {
            syncs += 1;
            commits.extend(self.commit[number]);
            flushes.extend(self.flushes[number].clone());
        }
        let shared = |of: &BTreeSet<usize>, shares: &[u32]| {
            of.iter().filter(|number| shares[**number] > 1).count() as u64
        };
        SyncCounts {
            syncs,
            commits: commits.len() as u64,
            shared_commits: shared(&commits, &self.commit_shares),
            flushes: flushes.len() as u64,
            shared_flushes: shared(&flushes, &self.flush_shares),
        }
    }

    /// Number of syncs within which a flush was completed.
    pub fn flushed(&self) -> u64 {
        let flushed = self.flushes.iter().filter(|flushes| !flushes.is_empty());
        flushed.count() as u64
    }

    /// Whether the file system reported when it got each of these syncs.
    pub fn are_entered(&self, numbers: impl IntoIterator<Item = usize>) -> bool {
        numbers.into_iter().all(|number| self.is_entered[number])
    }
}

/// Stamp at which the file system got the sync within each of these writes; `None` for a write without one.
pub fn begun_within(writes: &[TracedSync], events: &[Event]) -> Vec<Option<u64>> {
    let calls = calls_of(writes, events).into_iter();
    calls.map(|call| Some(call?.begin)).collect()
}

/// Splits the time of each sync, by events in time order. Activity completed within a sync counts from the
/// sync's start on, each moment once: as a flush, otherwise as the journal, otherwise as a write. Activity
/// still in progress at the end is not what the sync waited for.
pub(super) fn join_syncs(
    syncs: &[TracedSync],
    events: &[Event],
    mut background: Background,
) -> JoinedSyncs {
    if syncs.is_empty() {
        return JoinedSyncs::default();
    }
    background.flushes.sort_unstable();
    background.metadata.sort_unstable();
    background.data.sort_unstable();
    let commits = commits(events);
    let entered = calls_of(syncs, events);
    let mut joined = JoinedSyncs {
        commit_shares: vec![0; commits.len()],
        flush_shares: vec![0; background.flushes.len()],
        ..JoinedSyncs::default()
    };
    for (sync, call) in syncs.iter().zip(entered) {
        let begin = call.map_or(sync.start, |call| call.begin);
        let end = call.and_then(|call| call.end).unwrap_or(sync.end);
        let disk = sync.disk;
        let flushes = completed(&background.flushes, disk, begin, end);
        let commit = sync
            .file_system
            .filter(|_| sync.journal == Journal::Commits)
            .map_or(0..0, |own| completed(&commits, own, begin, end));
        let metadata = &background.metadata[completed(&background.metadata, disk, begin, end)];
        let data = &background.data[completed(&background.data, disk, begin, end)];
        let (journal, writes): (&[Span], [&[Span]; 2]) = match sync.journal {
            Journal::Absent => (&[], [metadata, data]),
            Journal::Commits => (&commits[commit.clone()], [metadata, data]),
            Journal::MetadataWrites => (metadata, [&[], data]),
        };
        let progress = [
            vec![&background.flushes[flushes.clone()]],
            vec![journal],
            writes.to_vec(),
        ];
        joined
            .stages
            .push(stages(sync, (begin, end), call.is_some(), &progress));
        for number in flushes.clone() {
            joined.flush_shares[number] += 1;
        }
        let waited = commit.last();
        if let Some(number) = waited {
            joined.commit_shares[number] += 1;
        }
        joined.is_entered.push(call.is_some());
        joined.commit.push(waited);
        joined.flushes.push(flushes);
    }
    joined
}

/// Numbers of a device's activities completed within a period; all are in ascending order.
fn completed(all: &[Span], device: u32, from: u64, to: u64) -> Range<usize> {
    let first = all.partition_point(|span| (span.device, span.end) <= (device, from));
    let end = all.partition_point(|span| (span.device, span.end) <= (device, to));
    first..end.max(first)
}

/// Stages of a sync that the system handled from `begin` to `end`, by the activity in progress: flushes, the
/// journal, writes.
fn stages(
    sync: &TracedSync,
    (begin, end): (u64, u64),
    is_entered: bool,
    progress: &[Vec<&[Span]>; 3],
) -> PerStage<u64> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    let [flush, journal, write] = progress.each_ref().map(|spans| {
        let before = covered(&mut all);
        let spans = spans.iter().flat_map(|spans| spans.iter());
        all.extend(spans.map(|span| (span.start.max(begin), span.end)));
        covered(&mut all) - before
    });
    let last = all.iter().map(|(_, end)| *end).max();
    // Without anything to wait for, the system had the sync until the last known moment.
    let over = last.unwrap_or(if is_entered { end } else { sync.end });
    PerStage {
        sync_admission: begin - sync.start,
        sync_host: over - begin - flush - journal - write,
        sync_write: write,
        sync_journal: journal,
        sync_flush: flush,
        sync_delivery: sync.end - over,
        ..PerStage::default()
    }
}

/// Time covered by at least one of these periods.
fn covered(all: &mut [(u64, u64)]) -> u64 {
    all.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (start, end) in all {
        sum += end.saturating_sub((*start).max(until));
        until = until.max(*end);
    }
    sum
}

/// Commits of journals in ascending order.
fn commits(events: &[Event]) -> Vec<Span> {
    let mut running: BTreeMap<u32, u64> = BTreeMap::new();
    let mut all = Vec::new();
    for event in events {
        let TraceEventKind::Commit { edge, file_system } = event.kind else {
            continue;
        };
        match edge {
            Edge::Begin => {
                running.insert(file_system, event.at);
            }
            Edge::End => all.extend(running.remove(&file_system).map(|start| Span {
                device: file_system,
                end: event.at,
                start,
            })),
        }
    }
    all.sort_unstable();
    all
}

/// The file system's call for each sync, if any: the call of the same thread within the sync. If none of the
/// trial's threads makes one, the first call for its file within it that belongs to no earlier sync.
fn calls_of(syncs: &[TracedSync], events: &[Event]) -> Vec<Option<Call>> {
    let mut of_files = calls(events);
    let own: BTreeSet<u32> = syncs.iter().map(|sync| sync.thread).collect();
    let mut by_end: Vec<usize> = (0..syncs.len()).collect();
    by_end.sort_unstable_by_key(|number| syncs[*number].end);
    let mut found = vec![None; syncs.len()];
    for number in by_end {
        let sync = &syncs[number];
        let file = sync.file_system.map(|own| (own, sync.inode));
        let Some(calls) = file.and_then(|file| of_files.get_mut(&file)) else {
            continue;
        };
        let first = calls.partition_point(|(call, _)| call.begin < sync.start);
        let within = |(_, (call, is_taken)): &(usize, &(Call, bool))| {
            !is_taken && call.end.is_none_or(|end| end <= sync.end)
        };
        let candidates = calls[first..]
            .iter()
            .enumerate()
            .take_while(|(_, (call, _))| call.begin <= sync.end)
            .filter(within);
        let mut other = None;
        let mut same = None;
        for (place, (call, _)) in candidates {
            if call.thread == sync.thread {
                same = Some(place);
                break;
            }
            if other.is_none() && !own.contains(&call.thread) {
                other = Some(place);
            }
        }
        if let Some(place) = same.or(other) {
            let (call, is_taken) = &mut calls[first + place];
            *is_taken = true;
            found[number] = Some(*call);
        }
    }
    found
}

/// File system and inode of a file.
type FileKey = (u32, u64);

/// Calls for each file by beginning, none of them assigned.
pub fn calls(events: &[Event]) -> BTreeMap<FileKey, Vec<(Call, bool)>> {
    let mut files: BTreeMap<FileKey, Vec<(Call, bool)>> = BTreeMap::new();
    // Index of the call that a thread is in.
    let mut open: BTreeMap<(u32, u64, u32), usize> = BTreeMap::new();
    // Threads inside fsync or fdatasync, each with its file and the index of the file system's call.
    let mut inside: BTreeMap<u32, Option<(FileKey, usize)>> = BTreeMap::new();
    for event in events {
        let (edge, file_system, inode, thread) = match event.kind {
            TraceEventKind::Sync {
                edge,
                file_system,
                inode,
                thread,
            } => (edge, file_system, inode, thread),
            TraceEventKind::SyncCall { edge, thread } => {
                match edge {
                    Edge::Begin => {
                        inside.insert(thread, None);
                    }
                    Edge::End => {
                        let own = inside.remove(&thread).flatten();
                        let own =
                            own.and_then(|(file, place)| files.get_mut(&file)?.get_mut(place));
                        if let Some((call, _)) = own {
                            call.end = call.end.or(Some(event.at));
                        }
                    }
                }
                continue;
            }
            TraceEventKind::Block { .. }
            | TraceEventKind::Began { .. }
            | TraceEventKind::Commit { .. }
            | TraceEventKind::Scheduled(..) => continue,
        };
        let calls = files.entry((file_system, inode)).or_default();
        let by = (file_system, inode, thread);
        match edge {
            Edge::Begin => {
                open.insert(by, calls.len());
                if let Some(of_call) = inside.get_mut(&thread) {
                    *of_call = Some(((file_system, inode), calls.len()));
                }
                let call = Call {
                    begin: event.at,
                    end: None,
                    thread,
                };
                calls.push((call, false));
            }
            Edge::End => {
                if let Some(place) = open.remove(&by) {
                    calls[place].0.end = Some(event.at);
                }
            }
        }
    }
    files
}

#[cfg(test)]
mod tests;
