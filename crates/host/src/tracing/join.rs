//! Join of a trial's requests with the requests of devices, by the sectors that both cover.

use std::collections::BTreeMap;

use super::device_requests::{Activity, DeviceRequest, of_events};
use super::event::{Event, ThreadMoment, TraceEventKind, Transfer};
use super::syncs::{Background, JoinedSyncs, Span, TracedSync, join_syncs};
use iolab_storage::sectors::Sectors;
use iolab_workload::stages::{PerStage, TraceCounts};

/// A request of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRequest {
    /// Stamp at which the request was issued.
    pub start: u64,
    /// Stamp at which its completion was seen.
    pub end: u64,
    /// Whether it writes.
    pub writes: bool,
    /// Thread that issued the request and waited for it.
    pub thread: u32,
    /// Kernel's number of the disk.
    pub disk: u32,
    /// Sectors of the disk that the request covers; none where they are unknown.
    pub sectors: Vec<Sectors>,
}

/// Result of joining a trial's requests and syncs with trace events.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// Ticks of each stage, per request in order; `None` where a request was not found in full.
    pub stages: Vec<Option<PerStage<u64>>>,
    /// Result for the syncs.
    pub syncs: JoinedSyncs,
    /// Whether each request was split into several at the device.
    is_split: Vec<bool>,
    carried: u64,
    others: u64,
    flushes: u64,
    flush_waits: u64,
}

impl Joined {
    /// Counts for the requests and syncs of these numbers, and for the device. The device's own requests and
    /// flushes are not divided among them.
    pub fn counts(
        &self,
        requests: impl IntoIterator<Item = usize>,
        syncs: impl IntoIterator<Item = usize>,
    ) -> TraceCounts {
        let mut counts = TraceCounts {
            carried: self.carried,
            others: self.others,
            flushes: self.flushes,
            flush_waits: self.flush_waits,
            syncs: self.syncs.counts(syncs),
            ..TraceCounts::default()
        };
        for number in requests {
            match self.stages[number] {
                Some(_) => counts.joined += 1,
                None => counts.unjoined += 1,
            }
            counts.split += u64::from(self.stages[number].is_some() && self.is_split[number]);
        }
        counts
    }
}

/// Part of a request found so far.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    sectors: u64,
    parts: u32,
    /// Part that was completed last.
    last: Option<DeviceRequest>,
}

/// Requests in flight, by disk, direction, first sector and number. A value holds the sectors, and how many of
/// them were found.
type OnTheWay = BTreeMap<(u32, bool, u64, usize), (Sectors, u64)>;

/// A moment in the sweep over time; moments with the same stamp are handled in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Start,
    Complete,
    End,
}

/// Joins requests and syncs with events in time order. A part of a device's request belongs to the trial's
/// first request that was in flight from the part's start to its completion. That request must cover the part's
/// sectors, and must not have found them yet. Without such a request, the part belongs to one that covers it
/// and was issued after the part's start. A request has the stages of the part completed last, so that they add
/// up to the request's time.
pub fn join(requests: &[TracedRequest], syncs: &[TracedSync], events: &[Event]) -> Joined {
    let activity = of_events(events);
    let parts = &activity.parts;
    let mut moments: Vec<(u64, Moment, usize)> =
        Vec::with_capacity(2 * requests.len() + parts.len());
    for (number, request) in requests.iter().enumerate() {
        moments.push((request.start, Moment::Start, number));
        moments.push((request.end, Moment::End, number));
    }
    let completed = parts.iter().enumerate();
    moments.extend(completed.map(|(number, part)| (part.complete, Moment::Complete, number)));
    moments.sort_unstable();
    let longest = requests.iter().flat_map(|request| &request.sectors);
    let longest = longest
        .map(|sectors| u64::from(sectors.count))
        .max()
        .unwrap_or(0);
    let mut found = vec![Found::default(); requests.len()];
    let mut on_the_way = OnTheWay::new();
    let mut is_own = vec![false; parts.len()];
    for (_, moment, number) in moments {
        match moment {
            Moment::Start => {
                let request = &requests[number];
                for sectors in &request.sectors {
                    let key = (request.disk, request.writes, sectors.first, number);
                    on_the_way.insert(key, (*sectors, 0));
                }
            }
            Moment::End => {
                let request = &requests[number];
                for sectors in &request.sectors {
                    on_the_way.remove(&(request.disk, request.writes, sectors.first, number));
                }
            }
            Moment::Complete => {
                is_own[number] = give_out(
                    &parts[number], requests, longest, &mut on_the_way, &mut found,
                );
            }
        }
    }
    let threads = Threads::of(events);
    let stages = requests.iter().zip(&found).map(|(request, found)| {
        let sectors = request.sectors.iter();
        let all: u64 = sectors.map(|sectors| u64::from(sectors.count)).sum();
        let last = found.last.filter(|_| all > 0 && found.sectors == all)?;
        Some(stages_of(request, &last, &threads))
    });
    let mut carries = vec![false; activity.requests];
    for (part, is_own) in parts.iter().zip(&is_own) {
        carries[part.number] |= is_own;
    }
    let carried = carries.iter().filter(|carries| **carries).count() as u64;
    Joined {
        stages: stages.collect(),
        is_split: found.iter().map(|found| found.parts > 1).collect(),
        carried,
        others: activity.requests as u64 - carried + activity.begun_before,
        flushes: activity.flushes.len() as u64,
        flush_waits: activity.flush_waits,
        syncs: join_syncs(syncs, events, background(activity, &is_own)),
    }
}

/// Device activity besides the trial's requests.
fn background(activity: Activity, is_own: &[bool]) -> Background {
    let mut seen = Background {
        flushes: activity.flushes,
        ..Background::default()
    };
    let others = activity.parts.iter().zip(is_own);
    for (part, _) in others.filter(|(part, own)| !**own && part.transfer == Transfer::Write) {
        let of_kind = match part.metadata {
            true => &mut seen.metadata,
            false => &mut seen.data,
        };
        of_kind.push(Span {
            device: part.disk,
            end: part.complete,
            start: part.start,
        });
    }
    seen
}

/// Assigns the sectors of a part to the requests in flight that cover them. True if there are any.
fn give_out(
    part: &DeviceRequest,
    requests: &[TracedRequest],
    longest: u64,
    on_the_way: &mut OnTheWay,
    found: &mut [Found],
) -> bool {
    let writes = match part.transfer {
        Transfer::Read => false,
        Transfer::Write => true,
        Transfer::Flush | Transfer::Other => return false,
    };
    let first = (part.first + 1).saturating_sub(longest);
    let from = (part.disk, writes, first, 0);
    let to = (part.disk, writes, part.end, 0);
    let mut give = |may_be_earlier: bool| {
        let mut next = part.first;
        for ((.., number), (sectors, seen)) in on_the_way.range_mut(from..to) {
            let end = (sectors.first + u64::from(sectors.count)).min(part.end);
            let start = sectors.first.max(next);
            let fits = may_be_earlier || part.merged || part.start >= requests[*number].start;
            let is_full = *seen == u64::from(sectors.count);
            if start >= end || is_full || !fits {
                continue;
            }
            *seen += end - start;
            next = end;
            let found = &mut found[*number];
            found.sectors += end - start;
            found.parts += 1;
            found.last = Some(*part);
        }
        next > part.first
    };
    // A thread of the kernel or of a pool may begin before the stamp that follows the hand-over to it.
    give(false) || give(true)
}

/// Stages of a request whose last part is this one, in ticks.
fn stages_of(request: &TracedRequest, last: &DeviceRequest, threads: &Threads) -> PerStage<u64> {
    let start = last.start.max(request.start);
    let issue = last.issue.max(start);
    let (woken, runs) = threads.after(request.thread, last.complete, request.end);
    PerStage {
        admission: start - request.start,
        queue: issue - start,
        device: last.complete - issue,
        delivery: request.end - last.complete,
        completion: woken - last.complete,
        cpu_wait: runs - woken,
        reaping: request.end - runs,
        ..PerStage::default()
    }
}

/// State changes of a trial's threads.
#[derive(Default)]
struct Threads(BTreeMap<u32, Vec<(u64, ThreadMoment)>>);

impl Threads {
    fn of(events: &[Event]) -> Self {
        let mut threads = Self::default();
        for event in events {
            let TraceEventKind::Scheduled(thread, moment) = event.kind else {
                continue;
            };
            threads
                .0
                .entry(thread)
                .or_default()
                .push((event.at, moment));
        }
        threads
    }

    /// Moments between two stamps at which a thread became ready, and at which it last began to run. A thread
    /// that ran at the first stamp and kept its CPU was ready and ran at once.
    fn after(&self, thread: u32, from: u64, to: u64) -> (u64, u64) {
        let moments = self.0.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = moments.partition_point(|(at, _)| *at < from);
        let before = moments[..first].iter().rev();
        // A thread that was woken and has not run since already waits for a CPU.
        let state = before.map(|(_, moment)| *moment).next();
        let span = moments[first..].iter().take_while(|(at, _)| *at <= to);
        let mut woken = (state == Some(ThreadMoment::Woken)).then_some(from);
        let mut runs = None;
        for (at, moment) in span {
            match moment {
                ThreadMoment::Woken if woken.is_none() => woken = Some(*at),
                ThreadMoment::Runs if runs.is_none() => runs = Some(*at),
                _ => {}
            }
            if runs.is_some() {
                break;
            }
        }
        match (woken, runs) {
            (Some(woken), Some(runs)) => (woken, runs.max(woken)),
            // The thread left its CPU without sleeping.
            (None, Some(runs)) => (from, runs),
            // The thread did not sleep: the remaining time is its own.
            (_, None) => (from, from),
        }
    }
}

#[cfg(test)]
mod tests;
