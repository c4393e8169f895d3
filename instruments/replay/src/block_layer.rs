//! The requests of a replay as they reach the block layer, by the kernel's trace events: a view that is the same for every tool.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use iolab_engine::list::ListedRequest;
use iolab_host::clock::Clock;
use iolab_host::tracing::{
    DiskNumber, DiskRequest, Recording, TracedPlaces, Tracer, disk_requests,
};
use iolab_storage::Target;
use iolab_storage::sectors::{SectorMap, Sectors};
use iolab_workload::{Error, Result};

use crate::answer::AtBlockLayer;
use crate::certificate::{Issued, Meter};

const SECTOR: u64 = 512;

/// Result of `during`, and the events of a disk meanwhile. The disk is given with whether it has a request queue.
pub(crate) fn recorded<T>(
    disk: (DiskNumber, bool),
    clock: &Clock,
    during: impl FnOnce() -> T,
) -> Result<(T, Recording)> {
    let places = TracedPlaces {
        disks: vec![disk],
        ..TracedPlaces::default()
    };
    let mut tracer = Tracer::new(&places, clock)?;
    tracer.start()?;
    let done = during();
    tracer.stop();
    Ok((done, tracer.finish(&[])?))
}

/// Places of a target's first bytes on its disk.
///
/// # Errors
/// Of kind usage: its requests cannot be found at a disk.
pub(crate) fn sectors(target: &Target, bytes: u64) -> Result<SectorMap> {
    let direct = target
        .direct_alignment()
        .map_err(|error| error.message().to_owned());
    let found = direct.and_then(|_| Ok(target.sectors(&(0..bytes))?));
    found.map_err(|why| {
        let name = target.named().display();
        Error::usage(format!(
            "--peer: the requests to {name} cannot be found at a device: {why}"
        ))
        .hint("replay on a block device, or on ext4 or XFS; or leave out --peer")
    })
}

/// Carries a replay of these requests out, and judges when they reached the block layer.
///
/// # Errors
/// The replay fails, or its events cannot be recorded.
pub(crate) fn watched<T>(
    asked: &[ListedRequest],
    (map, clock): (&SectorMap, &Clock),
    (meter, depth): (Meter, u32),
    replay: impl FnOnce() -> Result<T>,
) -> Result<(T, AtBlockLayer)> {
    let (done, recording) = recorded((map.disk.number, map.disk.has_requests), clock, replay)?;
    let first = |request: &ListedRequest| map.of_request(request.offset, request.bytes).next();
    let seen = disk_requests(&recording.events);
    let zero = seen.first().map_or(0, |one| one.start);
    let seen = seen.into_iter().map(|one| DiskRequest {
        start: clock.ns_between(zero, one.start),
        complete: clock.ns_between(zero, one.complete),
        ..one
    });
    let seen: Vec<DiskRequest> = seen.collect();
    Ok((done?, judged(asked, &seen, first, meter, depth)))
}

/// Finds requests of a list by their first sectors in the events of a disk (stamps in ns), and judges them from the first found on.
fn judged(
    asked: &[ListedRequest],
    seen: &[DiskRequest],
    first_sectors: impl Fn(&ListedRequest) -> Option<Sectors>,
    mut meter: Meter,
    depth: u32,
) -> AtBlockLayer {
    let mut waiting: BTreeMap<(bool, u64), VecDeque<(u64, u32)>> = BTreeMap::new();
    for request in asked {
        if let Some(Sectors { first, count }) = first_sectors(request) {
            let own = waiting.entry((request.writes, first)).or_default();
            own.push_back((request.at_ns, count));
        }
    }
    let mut found = Vec::new();
    for one in seen {
        let mut at = one.offset / SECTOR;
        // A request of the disk can be several of the list, which were merged.
        while at < (one.offset + one.bytes) / SECTOR {
            let own = waiting.get_mut(&(one.writes, at));
            let Some((due_ns, count)) = own.and_then(VecDeque::pop_front) else {
                break;
            };
            found.push((one, due_ns));
            at += u64::from(count.max(1));
        }
    }
    found.sort_by_key(|(one, due_ns)| (one.start, *due_ns));
    let zero = found
        .first()
        .map_or(0, |(one, due_ns)| one.start.saturating_sub(*due_ns));
    let mut ends = BinaryHeap::new();
    // Last time at which a slot became free after all were taken.
    let mut freed_ns = 0;
    for (one, due_ns) in &found {
        let at_ns = one.start.saturating_sub(zero);
        while let Some(Reverse(end)) = ends.peek().copied().filter(|Reverse(end)| *end <= at_ns) {
            if ends.len() >= depth as usize {
                freed_ns = end;
            }
            ends.pop();
        }
        ends.push(Reverse(one.complete.saturating_sub(zero)));
        meter.note(Issued {
            due_ns: *due_ns,
            at_ns,
            queue_ns: freed_ns.saturating_sub(*due_ns),
            depth_asked: None,
            depth_done: ends.len() as u32,
        });
    }
    AtBlockLayer {
        seen: found.len() as f64 / asked.len().max(1) as f64,
        certificate: meter.certificate(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::Broken;

    const MS: u64 = 1_000_000;

    /// Overlapping requests of 16 KiB each 2 ms, and a program that sends them at these times.
    fn replayed(sent_ns: impl Fn(u64) -> u64, took_ns: u64, depth: u32) -> AtBlockLayer {
        let asked = (0..2000).map(|number| ListedRequest {
            at_ns: number * 2 * MS,
            writes: false,
            offset: number % 16 * 4096,
            bytes: 16_384,
        });
        let asked: Vec<ListedRequest> = asked.collect();
        let seen = (0..2000).map(|number| DiskRequest {
            start: 7 * MS + sent_ns(number),
            complete: 7 * MS + sent_ns(number) + took_ns,
            writes: false,
            // The file begins at this byte of the disk.
            offset: (1 << 20) + number % 16 * 4096,
            bytes: 16_384,
        });
        let seen: Vec<DiskRequest> = seen.collect();
        let first = |request: &ListedRequest| {
            Some(Sectors {
                first: ((1 << 20) + request.offset) / SECTOR,
                count: request.bytes / SECTOR as u32,
            })
        };
        judged(&asked, &seen, first, Meter::new(2 * MS), depth)
    }

    #[test]
    fn requests_are_found_and_judged_from_the_first() {
        let own = replayed(|number| number * 2 * MS, MS, 4);
        assert_eq!((own.seen, own.certificate.lateness.max_ns), (1.0, 0));
        assert!(own.certificate.is_kept());
    }

    #[test]
    fn slow_clients_and_full_queues_are_told_apart() {
        // Twice as slow as the trace.
        let client = replayed(|number| number * 4 * MS, MS, 4).certificate;
        assert_eq!(client.broken, [Broken::LateClient, Broken::Gaps]);
        let queue = replayed(|number| number * 4 * MS, 4 * MS, 1).certificate;
        assert_eq!(queue.broken, [Broken::FullQueue, Broken::Gaps]);
    }
}
