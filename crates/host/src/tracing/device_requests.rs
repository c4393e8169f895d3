//! From events to requests of a device.

use std::collections::BTreeMap;

use super::event::{Event, Kind, Step, Transfer};

/// Sectors that a device carried out as one request, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceRequest {
    /// The disk, as the kernel numbers it.
    pub(super) disk: u32,
    /// First sector.
    pub(super) first: u64,
    /// The sector behind the last one.
    pub(super) end: u64,
    pub(super) transfer: Transfer,
    /// When it came into being; of sectors that joined a request later, when that did.
    pub(super) start: u64,
    /// Whether its sectors joined a request that was there before.
    pub(super) merged: bool,
    /// When it was given to the device for the last time.
    pub(super) issue: u64,
    /// When the device had carried it out.
    pub(super) complete: u64,
}

/// Requests that are on their way, by disk, transfer and first sector.
type OnTheWay = BTreeMap<(u32, bool, u64), DeviceRequest>;

/// The requests of devices that events in the order of time show from their start to their completion, in the order of
/// completion; and the number of flushes that were completed.
pub(super) fn of_events(events: &[Event]) -> (Vec<DeviceRequest>, u64) {
    let mut on_the_way = OnTheWay::new();
    let (mut done, mut flushes) = (Vec::new(), 0);
    for event in events {
        let Kind::Block {
            step,
            disk,
            first,
            count,
            transfer,
        } = event.kind
        else {
            continue;
        };
        if count == 0 {
            let is_over = matches!(step, Step::Complete | Step::BioComplete);
            flushes += u64::from(transfer == Transfer::Flush && is_over);
            continue;
        }
        let new = DeviceRequest {
            disk,
            first,
            end: first + u64::from(count),
            transfer,
            start: event.at,
            merged: false,
            issue: event.at,
            complete: event.at,
        };
        match step {
            Step::Start | Step::BioQueue => {
                on_the_way.insert(key(&new), new);
            }
            Step::Issue => issue(&mut on_the_way, &new),
            Step::Complete | Step::BioComplete => complete(&mut on_the_way, &new, &mut done),
        }
    }
    (done, flushes)
}

fn key(request: &DeviceRequest) -> (u32, bool, u64) {
    let writes = request.transfer == Transfer::Write;
    (request.disk, writes, request.first)
}

/// The keys of requests that begin within the sectors of another one.
fn within(on_the_way: &OnTheWay, whole: &DeviceRequest) -> Vec<(u32, bool, u64)> {
    let (disk, writes, first) = key(whole);
    let range = (disk, writes, first)..(disk, writes, whole.end);
    on_the_way.range(range).map(|(key, _)| *key).collect()
}

/// The device was given these sectors: those that started, and those that joined them without a start of their own.
fn issue(on_the_way: &mut OnTheWay, issued: &DeviceRequest) {
    let parts = within(on_the_way, issued);
    let Some(start) = parts.iter().map(|key| on_the_way[key].start).min() else {
        // It started before tracing did.
        return;
    };
    let mut covered = issued.first;
    let mut joined = Vec::new();
    for key in parts {
        let part = on_the_way.get_mut(&key).expect("it was found there");
        part.issue = issued.issue;
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
            merged: true,
            ..*issued
        };
        on_the_way.insert(key(&part), part);
    }
}

/// The device has carried these sectors out, which may be a part of a request.
fn complete(on_the_way: &mut OnTheWay, whole: &DeviceRequest, done: &mut Vec<DeviceRequest>) {
    let (disk, writes, _) = key(whole);
    // What was completed in parts began before this part.
    let before = on_the_way
        .range((disk, writes, 0)..(disk, writes, whole.first))
        .next_back()
        .filter(|(_, request)| request.end > whole.first)
        .map(|(key, _)| *key);
    for key in before.into_iter().chain(within(on_the_way, whole)) {
        if on_the_way[&key].end <= whole.end {
            let request = on_the_way.remove(&key).expect("it was found there");
            done.push(DeviceRequest {
                complete: whole.complete,
                ..request
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(at: u64, step: Step, first: u64, count: u32) -> Event {
        Event {
            at,
            kind: Kind::Block {
                step,
                disk: 1,
                first,
                count,
                transfer: Transfer::Write,
            },
        }
    }

    /// First sector, its end, and the three moments.
    fn seen(events: &[Event]) -> Vec<(u64, u64, u64, u64, u64)> {
        let (requests, _) = of_events(events);
        let one = |r: &DeviceRequest| (r.first, r.end, r.start, r.issue, r.complete);
        requests.iter().map(one).collect()
    }

    #[test]
    fn the_last_issue_counts() {
        let events = [
            block(1, Step::Start, 80, 8),
            block(2, Step::Issue, 80, 8),
            block(5, Step::Issue, 80, 8),
            block(9, Step::Complete, 80, 8),
            // What began before tracing did is left out.
            block(10, Step::Complete, 16, 8),
        ];
        assert_eq!(seen(&events), [(80, 88, 1, 5, 9)]);
    }

    #[test]
    fn sectors_that_joined_a_request_have_its_moments() {
        let events = [
            block(1, Step::Start, 8, 8),
            // 16..24 joined behind it without a start of its own, 24..32 was merged as a request.
            block(3, Step::Start, 24, 8),
            block(4, Step::Issue, 8, 24),
            block(9, Step::Complete, 8, 24),
        ];
        assert_eq!(
            seen(&events),
            [(8, 16, 1, 4, 9), (16, 24, 1, 4, 9), (24, 32, 3, 4, 9)]
        );
    }

    #[test]
    fn a_request_that_is_completed_in_parts_is_over_with_the_last_one() {
        let events = [
            block(1, Step::Start, 8, 16),
            block(2, Step::Issue, 8, 16),
            block(5, Step::Complete, 8, 8),
            block(7, Step::Complete, 16, 8),
        ];
        assert_eq!(seen(&events), [(8, 24, 1, 2, 7)]);
    }
}
