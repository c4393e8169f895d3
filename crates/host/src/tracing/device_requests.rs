//! Requests of a device, built from events.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Event, Step, TraceEventKind, Transfer};
use super::syncs::Span;

/// Size of a sector, as the block layer counts, bytes.
pub const SECTOR: u64 = 512;

/// Sectors that a device completed as one request, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRequest {
    /// Kernel's number of the device.
    pub disk: u32,
    /// First sector.
    pub first: u64,
    /// End of the sectors, exclusive.
    pub end: u64,
    /// Direction of the data.
    pub transfer: Transfer,
    /// Whether the data is metadata of a file system.
    pub metadata: bool,
    /// Number of the device's request that included these sectors, in completion order.
    pub number: usize,
    /// Start of the request, stamp. Sectors that joined a request later have that request's start.
    pub start: u64,
    /// Whether the sectors joined an existing request.
    pub merged: bool,
    /// Last time that the request was issued to the device.
    pub issue: u64,
    /// Completion by the device.
    pub complete: u64,
    /// Thread that submitted the request. Sectors that joined a request later have that request's thread.
    pub thread: u32,
}

/// A request that a disk completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRequest {
    /// Creation of the request, stamp.
    pub start: u64,
    /// Completion by the disk, stamp.
    pub complete: u64,
    /// Whether it writes.
    pub writes: bool,
    /// First byte on the whole disk.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Reads and writes of the only recorded disk, by events in time order; in the order of their creation.
pub fn disk_requests(events: &[Event]) -> Vec<DiskRequest> {
    let mut all: BTreeMap<(usize, bool), DiskRequest> = BTreeMap::new();
    for part in of_events(events).parts {
        let writes = match part.transfer {
            Transfer::Read => false,
            Transfer::Write => true,
            Transfer::Flush | Transfer::Other => continue,
        };
        let (offset, end) = (part.first * SECTOR, part.end * SECTOR);
        let own = all.entry((part.number, writes)).or_insert(DiskRequest {
            start: part.start,
            complete: part.complete,
            writes,
            offset,
            bytes: end - offset,
        });
        // The parts of a request are contiguous.
        let last = end.max(own.offset + own.bytes);
        own.offset = own.offset.min(offset);
        own.bytes = last - own.offset;
        own.start = own.start.min(part.start);
    }
    let mut all: Vec<DiskRequest> = all.into_values().collect();
    all.sort_by_key(|request| request.start);
    all
}

/// Key of a request: disk, whether it writes, first sector, and its number among requests of the same sectors
/// in flight at once.
type Key = (u32, bool, u64, u64);

/// Requests in flight, each with whether it was issued to the device.
#[derive(Debug, Default)]
struct OnTheWay {
    requests: BTreeMap<Key, (DeviceRequest, bool)>,
    begun: u64,
}

/// Activity of devices.
#[derive(Debug, Default)]
pub struct Activity {
    /// Sectors seen from start to completion, in completion order.
    pub parts: Vec<DeviceRequest>,
    /// Number of device requests that carried the parts.
    pub(super) requests: usize,
    /// Completed requests whose start was not seen.
    pub(super) begun_before: u64,
    pub(super) flushes: Vec<Span>,
    /// Requests without data, which wait for a flush.
    pub(super) flush_waits: u64,
}

/// Activity of devices by events in time order.
pub fn of_events(events: &[Event]) -> Activity {
    let mut on_the_way = OnTheWay::default();
    let mut seen = Activity::default();
    // A queue completes flushes in the order in which they were issued.
    let mut flushing: BTreeMap<u32, VecDeque<u64>> = BTreeMap::new();
    for event in events {
        let TraceEventKind::Block {
            step,
            disk,
            first,
            count,
            transfer,
            metadata,
            thread,
        } = event.kind
        else {
            continue;
        };
        if count == 0 {
            let is_flush = transfer == Transfer::Flush;
            match step {
                Step::Start => seen.flush_waits += u64::from(!is_flush),
                Step::Issue if !is_flush => {}
                Step::Issue | Step::BioQueue => {
                    flushing.entry(disk).or_default().push_back(event.at);
                }
                Step::Complete if !is_flush => {}
                Step::Complete | Step::BioComplete => {
                    let start = flushing.entry(disk).or_default().pop_front();
                    seen.flushes.push(Span {
                        device: disk,
                        end: event.at,
                        start: start.unwrap_or(event.at),
                    });
                }
            }
            continue;
        }
        let new = DeviceRequest {
            disk,
            first,
            end: first + u64::from(count),
            transfer,
            metadata,
            number: seen.requests,
            start: event.at,
            merged: false,
            issue: event.at,
            complete: event.at,
            thread,
        };
        match step {
            Step::Start => on_the_way.begin(new, false),
            Step::BioQueue => on_the_way.begin(new, true),
            Step::Issue => on_the_way.issue(&new),
            Step::Complete | Step::BioComplete => on_the_way.complete(&new, &mut seen),
        }
    }
    seen
}

impl OnTheWay {
    fn begin(&mut self, request: DeviceRequest, is_issued: bool) {
        let (disk, writes, first) = place(&request);
        let key = (disk, writes, first, self.begun);
        self.begun += 1;
        self.requests.insert(key, (request, is_issued));
    }

    /// Keys of requests that begin within the sectors of `whole`, in ascending order. For requests of the same
    /// sectors, the earliest with this `is_issued` state; in any state if none has it.
    fn within(&self, whole: &DeviceRequest, is_issued: bool) -> Vec<Key> {
        let (disk, writes, first) = place(whole);
        let range = (disk, writes, first, 0)..(disk, writes, whole.end, 0);
        let all = self.requests.range(range);
        let has_any = all.clone().any(|(_, (_, issued))| *issued == is_issued);
        let mut keys = Vec::new();
        let mut covered = first;
        for (key, (request, issued)) in all {
            if request.first >= covered && (*issued == is_issued || !has_any) {
                covered = request.end;
                keys.push(*key);
            }
        }
        keys
    }

    /// Marks sectors as issued: requests that started, and sectors that joined them without a start of their
    /// own. Requests that were already issued are requeued.
    fn issue(&mut self, issued: &DeviceRequest) {
        let parts = self.within(issued, false);
        let first = parts.iter().map(|key| self.requests[key].0);
        let Some(first) = first.min_by_key(|part| part.start) else {
            // The request started before tracing did.
            return;
        };
        let (start, thread) = (first.start, first.thread);
        let mut covered = issued.first;
        let mut joined = Vec::new();
        for key in parts {
            let (part, is_issued) = self.requests.get_mut(&key).expect("it was found there");
            part.issue = issued.issue;
            *is_issued = true;
            if part.first > covered {
                joined.push((covered, part.first));
            }
            covered = covered.max(part.end);
        }
        if issued.end > covered {
            joined.push((covered, issued.end));
        }
        for (first, end) in joined {
            let part = DeviceRequest {
                first,
                end,
                start,
                thread,
                merged: true,
                ..*issued
            };
            self.begin(part, true);
        }
    }

    /// Completes these sectors, which may be a part of a request.
    fn complete(&mut self, whole: &DeviceRequest, seen: &mut Activity) {
        let (disk, writes, first) = place(whole);
        // A request completed in parts began before this part.
        let before = self
            .requests
            .range((disk, writes, 0, 0)..(disk, writes, first, 0))
            .next_back()
            .filter(|(_, (request, _))| request.end > first)
            .map(|(key, _)| *key);
        let within = self.within(whole, true);
        let parts: Vec<Key> = before.into_iter().chain(within).collect();
        if parts.is_empty() {
            seen.begun_before += 1;
            return;
        }
        let done_before = seen.parts.len();
        for key in parts {
            if self.requests[&key].0.end <= whole.end {
                let (request, _) = self.requests.remove(&key).expect("it was found there");
                seen.parts.push(DeviceRequest {
                    complete: whole.complete,
                    number: whole.number,
                    ..request
                });
            }
        }
        seen.requests += usize::from(seen.parts.len() > done_before);
    }
}

/// Disk, whether it writes, and first sector.
fn place(request: &DeviceRequest) -> (u32, bool, u64) {
    let writes = request.transfer == Transfer::Write;
    (request.disk, writes, request.first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events in words: the moment, the step, and the sectors. A flush has none.
    fn events(text: &str) -> Vec<Event> {
        let event = |words: &str| {
            let mut words = words.split_whitespace();
            let mut next = || words.next().expect("a word");
            let (at, step, sectors) = (next().parse().expect("a number"), next(), next());
            let (step, transfer) = match step {
                "start" => (Step::Start, Transfer::Write),
                "issue" => (Step::Issue, Transfer::Write),
                "complete" => (Step::Complete, Transfer::Write),
                "bio-queue" => (Step::BioQueue, Transfer::Write),
                "bio-complete" => (Step::BioComplete, Transfer::Write),
                "issue-flush" => (Step::Issue, Transfer::Flush),
                "complete-flush" => (Step::Complete, Transfer::Flush),
                other => panic!("{other}"),
            };
            let (first, count) = sectors.split_once('+').expect("FIRST+COUNT");
            let kind = TraceEventKind::Block {
                step,
                disk: 1,
                first: first.parse().expect("a number"),
                count: count.parse().expect("a number"),
                transfer,
                metadata: false,
                thread: 0,
            };
            Event { at, kind }
        };
        text.split(',').map(event).collect()
    }

    /// First sector, end, and the three moments.
    fn seen(text: &str) -> Vec<(u64, u64, u64, u64, u64)> {
        let one = |r: &DeviceRequest| (r.first, r.end, r.start, r.issue, r.complete);
        of_events(&events(text)).parts.iter().map(one).collect()
    }

    #[test]
    fn parts_of_one_request_are_joined() {
        let events = events(
            "1 start 80+8, 2 start 88+8, 3 start 16+1, 4 issue 80+16, 5 issue 16+1,
             7 complete 16+1, 9 complete 80+16",
        );
        let requests = disk_requests(&events).into_iter();
        let places = requests.map(|one| (one.start, one.complete, one.offset, one.bytes));
        let wanted = [(1, 9, 40_960, 8192), (3, 7, 8192, 512)];
        assert_eq!(places.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn each_part_has_the_moments_of_its_request() {
        for (text, expected) in [
            // The last issue counts; requests that began before tracing are left out.
            (
                "1 start 80+8, 2 issue 80+8, 5 issue 80+8, 9 complete 80+8, 10 complete 16+8",
                &[(80, 88, 1, 5, 9)][..],
            ),
            // The same sectors at once, where one pass over all blocks ends and the next one begins.
            (
                "1 start 80+8, 2 issue 80+8, 3 start 80+8, 5 issue 80+8,
                 9 complete 80+8, 11 complete 80+8",
                &[(80, 88, 1, 2, 9), (80, 88, 3, 5, 11)],
            ),
            // Without a queue.
            (
                "1 bio-queue 80+8, 3 bio-queue 80+8, 9 bio-complete 80+8, 11 bio-complete 80+8",
                &[(80, 88, 1, 1, 9), (80, 88, 3, 3, 11)],
            ),
            // Both are issued as parts of a larger request.
            (
                "1 start 80+8, 2 start 88+8, 3 start 80+8, 4 issue 80+16, 5 issue 80+8,
                 9 complete 80+16, 11 complete 80+8",
                &[(80, 88, 1, 4, 9), (88, 96, 2, 4, 9), (80, 88, 3, 5, 11)],
            ),
            // 16 to 24 joined at its end without a start of its own, 24 to 32 was merged as a request.
            (
                "1 start 8+8, 3 start 24+8, 4 issue 8+24, 9 complete 8+24",
                &[(8, 16, 1, 4, 9), (16, 24, 1, 4, 9), (24, 32, 3, 4, 9)],
            ),
            // Completed in parts.
            (
                "1 start 8+16, 2 issue 8+16, 5 complete 8+8, 7 complete 16+8",
                &[(8, 24, 1, 2, 7)],
            ),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }

    #[test]
    fn requests_are_counted_as_the_device_counts_them() {
        let seen = of_events(&events(
            // Begun before tracing; two merged requests, completed as one; a sync waits for a flush; then a second flush is
            // issued, and both complete.
            "1 complete 400+8, 2 start 8+8, 3 start 16+8, 4 issue 8+16, 5 complete 8+16,
             6 start 0+0, 7 issue-flush 0+0, 8 issue-flush 0+0, 9 complete-flush 0+0,
             10 complete 0+0, 12 complete-flush 0+0",
        ));
        assert_eq!(
            (seen.requests, seen.begun_before, seen.flush_waits),
            (1, 1, 1)
        );
        assert!(seen.parts.iter().all(|part| part.number == 0));
        let span = |start, end| Span {
            device: 1,
            end,
            start,
        };
        assert_eq!(seen.flushes, [span(7, 9), span(8, 12)]);
    }
}
