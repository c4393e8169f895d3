//! The claims that an observation supports.

use super::{Asked, Bounds, Evidence, NOTEWORTHY, OtherCommand, OtherUse, Reading, Unknown, kinds};
use crate::observed::{ObservedDevice, Subject, TracedProgram};
use iolab_analysis::carried_below::Transfer;
use iolab_analysis::claim::kind::Kind;
use iolab_analysis::claim::{Claim, Point, Quantity, Standing};
use iolab_record::{ServedBy, ServedVerdict};
use iolab_workload::region_state::Medium;
use iolab_workload::response::{Response, iops, mb_s};

/// A length of time, ns.
const TIME: Quantity = Quantity::Of(Response::Elapsed);
/// Throughput, MB/s.
const MB_S: Quantity = Quantity::Of(Response::Throughput);

/// A claim with names for its sentence.
fn claim(
    kind: &'static Kind,
    names: &[(&str, &str)],
    points: impl IntoIterator<Item = Point>,
) -> Claim {
    let held = names
        .iter()
        .map(|(name, is)| ((*name).into(), (*is).into()));
    let mut claim = Claim::new(kind, Vec::new()).with_points(points);
    claim.held = held.collect();
    claim
}

fn bytes(standing: Standing, bytes: Bounds) -> Point {
    Point {
        interval: Some((bytes.least as f64, bytes.most as f64)),
        ..Point::new(standing, Quantity::Bytes, bytes.most as f64)
    }
}

/// A number of bytes, unless there are none.
fn some_bytes(standing: Standing, most: u64) -> Option<Point> {
    (most > 0).then(|| Point::new(standing, Quantity::Bytes, most as f64))
}

/// `vda and vdb`: names of devices.
fn joined(devices: &[String]) -> String {
    match devices {
        [] => "storage".to_owned(),
        devices => devices.join(" and "),
    }
}

/// Load of a device over an observation, by all processes, as `iostat -x` shows it.
pub fn device_load(device: &ObservedDevice, elapsed_ns: u64) -> Claim {
    let names = [("device", device.name.as_str())];
    let Some(stat) = device.traffic else {
        return claim(&kinds::UNKNOWN_LOAD, &names, []);
    };
    let seconds = elapsed_ns.max(1) as f64 / 1e9;
    let of = |standing, requests: u64, bytes: u64, waits_ms: Option<u64>| {
        // The kernel counts whole milliseconds of each request.
        let time = waits_ms.map(|ms| Point {
            interval: (ms == 0).then_some((0.0, 1e6)),
            ..Point::new(standing, TIME, ms as f64 * 1e6 / requests as f64)
        });
        let rate = Point::new(standing, Quantity::Rate, iops(requests, elapsed_ns));
        let mb_s = Point::new(standing, MB_S, mb_s(bytes, elapsed_ns));
        let all = [Some(rate), Some(mb_s), time].into_iter().flatten();
        all.filter(move |_| requests > 0)
    };
    let waits = device.waits.as_ref();
    let (read_ms, write_ms) = (waits.map(|one| one.read_ms), waits.map(|one| one.write_ms));
    let reads = of(Standing::Read, stat.read_ios, stat.read_bytes, read_ms);
    let writes = of(
        Standing::Written,
        stat.write_ios,
        stat.write_bytes,
        write_ms,
    );
    let in_flight = stat.queue_ms.map(|ms| {
        let request = Quantity::Count("request");
        Point::new(Standing::InFlight, request, ms as f64 / 1e3 / seconds)
    });
    // A device may have completed requests although none was in flight at a tick of the kernel's clock.
    let is_seen = stat.busy_ms > 0 || stat.read_ios.saturating_add(stat.write_ios) == 0;
    let busy = (stat.busy_ms as f64 / 1e3 / seconds).min(1.0);
    let busy = is_seen.then(|| Point::new(Standing::Busy, Quantity::Share, busy));
    let span = Point::main(TIME, elapsed_ns as f64);
    let points = std::iter::once(span).chain(reads).chain(writes);
    claim(
        &kinds::DEVICE_LOAD,
        &names,
        points.chain(in_flight).chain(busy),
    )
}

/// I/O of the processes of one name, which may be the most of all.
pub fn io_of(command: &OtherCommand<'_>, is_most: bool) -> Claim {
    let (first, all) = (command.processes[0], command.processes.len());
    let one = if first.is_kernel {
        "kernel thread"
    } else {
        "process"
    };
    let ended = Point::count(Standing::Ended, one, command.ended()).of(all as f64);
    let bytes = |number| bytes(Standing::Main, Bounds::exact(number));
    let points = [
        Some(Point::count(Standing::Main, one, all)),
        Some(bytes(command.read_bytes())),
        Some(bytes(command.write_bytes())),
        (command.ended() > 0).then_some(ended),
    ];
    let others = if all == 1 { "" } else { " and others" };
    let pid = first.pid.to_string() + others;
    let names = [("program", first.name.as_str()), ("pid", &pid)];
    let kind = &kinds::MOST_IO[usize::from(!is_most)];
    claim(kind, &names, points.into_iter().flatten())
}

impl Evidence {
    /// All claims that the evidence supports, in the order in which they are printed. They hold the names in their sentences.
    pub fn claims(&self) -> Vec<Claim> {
        if self.observed.subject == Subject::Devices {
            return self.of_devices();
        }
        let read = self.reads.verdict.as_ref();
        let read = read.map(|verdict| self.source(verdict));
        let written = self.writes.verdict.as_ref();
        let written = written.map(|verdict| self.destination(verdict));
        let mut claims: Vec<Claim> = read.into_iter().chain(written).collect();
        let has_bytes = !claims.is_empty();
        let trace = self.observed.trace.as_ref();
        match trace.filter(|trace| trace.syncs.syncs > 0) {
            // The disk counts flushes of all processes, so traced syncs take precedence.
            Some(trace) => claims.push(syncs(trace)),
            None if self.writes.verdict.is_some() => {
                let flushes = self.flushes.as_ref();
                let flushes = flushes.filter(|flushes| flushes.completed > 0);
                claims.extend(flushes.map(|flushes| {
                    let number = flushes.completed as usize;
                    let completed = Point::count(Standing::Main, "cache flush", number);
                    let names = [("device", &*joined(&flushes.disks))];
                    claim(&kinds::CACHE_FLUSHES, &names, [completed])
                }));
            }
            None => {}
        }
        if has_bytes && !self.devices.is_empty() {
            claims.push(self.other_use());
        }
        let overstated = self.reported().filter(|(is_overstated, _)| *is_overstated);
        claims.extend(overstated.map(|(_, claim)| claim));
        if claims.is_empty() {
            let most = some_bytes(Standing::Main, NOTEWORTHY);
            claims.push(claim(&kinds::NOTHING_OF_NOTE, &[], most));
        }
        claims
    }

    fn of_devices(&self) -> Vec<Claim> {
        let observed = &self.observed;
        let loads = observed.devices.iter();
        let loads = loads.map(|device| device_load(device, observed.observed_ns));
        let most = OtherCommand::all(&observed.others).into_iter().next();
        let most = most.map(|command| io_of(&command, true));
        loads.chain(most).collect()
    }

    /// Source of the bytes that the program read.
    fn source(&self, verdict: &ServedVerdict) -> Claim {
        let (reads, observed) = (&self.reads, &self.observed);
        let device = joined(&self.devices_of(Transfer::Read));
        // With pipes among its processes, all that its calls read counts, although the pipes served a part.
        let asked = reads.asked.bytes();
        let by_network = self.over_network(Transfer::Read, verdict);
        let is_buffered = !observed.ways.reads.is_direct();
        let is_none = verdict.device_fraction.is_some_and(|share| share < NONE);
        let by_calls = reads.by_calls.filter(|bytes| bytes.least < bytes.most);
        // Page faults may have fetched bytes that storage carried.
        let may_be_faults = by_calls.is_some() && asked.is_some_and(|all| all.least == all.most);
        let kind = match verdict.served_by {
            _ if by_network.is_some() => &kinds::FROM_SERVER_AND_CACHE,
            ServedBy::Device => &kinds::FROM_DEVICE,
            ServedBy::PageCache | ServedBy::Mixed if is_buffered && is_none => &kinds::FROM_CACHE,
            ServedBy::PageCache | ServedBy::Mixed if is_buffered => &kinds::FROM_DEVICE_AND_CACHE,
            ServedBy::Hole => &kinds::FROM_HOLES,
            ServedBy::NotStorage => &kinds::FROM_MEMORY,
            ServedBy::Network => &kinds::FROM_SERVER,
            _ if may_be_faults => &kinds::FROM_DEVICE_PERHAPS,
            _ => &kinds::FROM_UNKNOWN,
        };
        let is_one_of = |some: [&Kind; 3]| some.contains(&kind);
        let both = &kinds::FROM_DEVICE_AND_CACHE;
        let is_shared = is_one_of([both, &kinds::FROM_DEVICE, &kinds::FROM_DEVICE_PERHAPS]);
        let is_cached = is_one_of([both, &kinds::FROM_CACHE, &kinds::FROM_SERVER_AND_CACHE]);
        let elsewhere = self.read_partly_elsewhere().filter(|_| is_shared);
        let share = asked.zip(by_calls).map(|(asked, by_calls)| {
            let of_asked = |bytes: u64| (bytes as f64 / asked.most.max(1) as f64).min(1.0);
            (of_asked(by_calls.least), of_asked(by_calls.most))
        });
        // The disks below may have carried less than the device.
        let share = share.filter(|(least, _)| verdict.device_fraction.is_none_or(|f| f >= *least));
        let part = verdict.device_fraction.or(share.map(|(_, most)| most));
        let part = part.map(|part| Point {
            interval: share,
            ..Point::main(Quantity::Share, part)
        });
        let rest = asked.map_or(0, |all| {
            all.most - reads.by_calls.map_or(0, |by| by.least.min(all.most))
        });
        let piped = asked.filter(|_| observed.ways.inner_pipes);
        let piped = piped.map_or(0, |asked| rest.min(asked.most - asked.least));
        let carried = match reads.asked {
            Asked::Unknown {
                why: Unknown::Missing,
                ..
            } => Standing::CarriedAtLeast,
            _ => Standing::Carried,
        };
        let moved = reads
            .moved
            .map(|moved| Point::new(carried, Quantity::Bytes, moved as f64));
        let points = [
            by_network.or(part.filter(|_| is_shared)),
            asked.and_then(|asked| match kind == &kinds::FROM_CACHE && piped > 0 {
                true => Some(bytes(Standing::Asked, asked)),
                false => some_bytes(Standing::Asked, asked.most),
            }),
            elsewhere.map(|part| bytes(Standing::Own, part)),
            some_bytes(Standing::Holes, rest).filter(|_| is_cached && self.may_read_holes()),
            some_bytes(Standing::Piped, piped).filter(|_| is_cached),
            moved.filter(|_| kind == &kinds::FROM_UNKNOWN),
        ];
        let source = elsewhere.map_or(device.as_str(), |_| "storage");
        let names = [
            ("device", device.as_str()),
            ("source", source),
            ("reason", &verdict.reason),
        ];
        claim(kind, &names, points.into_iter().flatten())
    }

    /// Whether its reads may come from holes: no `--on` names the file, and a file that it read has less space than bytes.
    fn may_read_holes(&self) -> bool {
        let mut read = self.observed.files.iter().filter(|file| file.is_read);
        self.observed.target.is_none()
            && read.any(|file| file.allocated_bytes.is_some_and(|space| space < file.bytes))
    }

    /// The part of its reads that the devices in question carried, if other disks can have served the rest. Read-ahead and
    /// program files, which storage carried as well, do not count and may come from other disks.
    fn read_partly_elsewhere(&self) -> Option<Bounds> {
        let asked = self.reads.asked.bytes();
        let asked = asked.map_or(u64::MAX, |bytes| bytes.most);
        let (carried, moved) = self.reads.carried.zip(self.reads.moved)?;
        let from_storage = moved.min(asked);
        let elsewhere = moved.saturating_sub(carried.least);
        let part = Bounds {
            least: from_storage.saturating_sub(elsewhere),
            most: carried.most.min(from_storage),
        };
        (!part.is_all_of(from_storage)).then_some(part)
    }

    /// Destination of the bytes that the program wrote.
    fn destination(&self, verdict: &ServedVerdict) -> Claim {
        let (writes, observed) = (&self.writes, &self.observed);
        let device = joined(&self.devices_of(Transfer::Write));
        let cancelled = observed.processes.cancelled_write_bytes;
        let written = writes.asked.bytes();
        // The owner of pages that were dirty before it started is unknown.
        let discarded = written
            .filter(|_| cancelled >= NOTEWORTHY)
            .map(|written| Bounds {
                least: cancelled.saturating_sub(written.most - written.least),
                most: cancelled,
            });
        // Bounds are omitted if it may have kept nothing, if nothing follows from them, or if they are far apart.
        let asked = written.filter(|written| {
            written.is_known_within(written.most)
                || written.least >= NOTEWORTHY.max(written.most / 2)
                    && verdict.served_by != ServedBy::Unknown
        });
        let by_network = self.over_network(Transfer::Write, verdict);
        let is_buffered = !observed.ways.writes.is_direct();
        let carried = writes.carried.map_or(0.0, |carried| carried.least as f64);
        let in_file = observed.devices.iter().any(|one| one.in_file);
        // A file in between may hold the bytes that only the device counts.
        let is_below = |written: Bounds| {
            let share = verdict.device_fraction.filter(|_| in_file);
            share.is_some_and(|share| carried > (share + 0.05) * written.most as f64)
        };
        let kind = match verdict.served_by {
            _ if by_network.is_some() => &kinds::TO_SERVER_IN_PART,
            ServedBy::Device => &kinds::TO_DEVICE,
            ServedBy::PageCache | ServedBy::Mixed if is_buffered => {
                &kinds::TO_DEVICE_IN_PART[usize::from(written.is_some_and(is_below))]
            }
            ServedBy::NotStorage => &kinds::TO_MEMORY,
            ServedBy::Network => &kinds::TO_SERVER,
            _ => &kinds::TO_UNKNOWN,
        };
        let standing = match verdict.served_by {
            ServedBy::Unknown => Standing::Sent,
            _ => Standing::Asked,
        };
        let owed = self.owed.filter(|owed| *owed > 0);
        let share = |share| Point::main(Quantity::Share, share);
        let part = match (verdict.device_fraction, writes.carried) {
            (None, Some(Bounds { most: 0, .. })) => Some(share(0.0)),
            // How much that is remains unknown.
            (None, _) if verdict.served_by == ServedBy::Device && self.owed == Some(0) => {
                Some(share(1.0))
            }
            (None, carried) => carried.map(|carried| bytes(Standing::Main, carried)),
            // Never all if some bytes are still to be written.
            (Some(all), _) if owed.is_some() => Some(share(all.min(NEARLY_ALL))),
            (Some(all), _) => Some(share(all)),
        };
        let points = [
            by_network.or(part),
            asked.map(|asked| bytes(standing, asked)),
            owed.and_then(|owed| some_bytes(Standing::Owed, owed)),
            discarded.map(|discarded| bytes(Standing::Discarded, discarded)),
        ];
        let names = [("device", device.as_str()), ("reason", &verdict.reason)];
        claim(kind, &names, points.into_iter().flatten())
    }

    /// Bytes of the program that went over the network, if the page cache of this machine served the rest. Bounded by what all
    /// processes used of the mount, and by the program's accounts.
    fn over_network(&self, transfer: Transfer, verdict: &ServedVerdict) -> Option<Point> {
        let observed = &self.observed;
        let is_elsewhere = Reading::of(observed).medium(transfer) == Medium::Elsewhere;
        if verdict.served_by != ServedBy::Mixed || !is_elsewhere {
            return None;
        }
        let (nfs, io) = observed.nfs.zip(observed.processes.io)?;
        let most = match transfer {
            Transfer::Read => nfs.read_bytes.min(io.read_bytes),
            Transfer::Write => nfs.write_bytes.min(io.write_bytes),
        };
        Some(Point::main(Quantity::Bytes, most as f64))
    }

    /// Use of the devices by others.
    fn other_use(&self) -> Claim {
        let device = joined(&self.devices);
        let of = |kind, points: Vec<Point>| claim(kind, &[("device", &device)], points);
        let (read, written) = match self.others {
            OtherUse::None => return of(&kinds::NO_OTHER_USE, Vec::new()),
            OtherUse::Little { most } => {
                return of(
                    &kinds::LITTLE_OTHER_USE,
                    vec![bytes(Standing::Main, Bounds::exact(most))],
                );
            }
            OtherUse::Unknown => {
                let [own_part, uncounted] = &kinds::UNKNOWN_USE;
                let is_counted = Reading::of(&self.observed).traffic().is_some();
                return of(if is_counted { own_part } else { uncounted }, Vec::new());
            }
            OtherUse::Some { read, written } => (read, written),
        };
        // File systems write data of their own in addition to the program's.
        let may_be_own = self.writes.asked != Asked::Nothing && written.most > 0;
        let kind = &kinds::OTHER_USE[usize::from(read.least.max(written.least) == 0)];
        let dirty = self.observed.dirty_before_bytes.unwrap_or(0);
        let dirty = dirty.min(written.most);
        let by = match may_be_own {
            true => Standing::WrittenBySystem,
            false => Standing::Written,
        };
        let points = [
            (read.most > 0).then(|| bytes(Standing::Read, read)),
            (written.most > 0).then(|| bytes(by, written)),
            some_bytes(Standing::DirtyBefore, dirty).filter(|_| dirty >= NOTEWORTHY),
        ];
        of(kind, points.into_iter().flatten().collect())
    }

    /// Reports of the program on its bytes, with the most that devices can have carried of them, and whether that is far less.
    pub fn reported(&self) -> impl Iterator<Item = (bool, Claim)> {
        self.claim.iter().flat_map(|report| {
            let [reads, writes] = &kinds::OVERSTATED;
            let both = [
                (Transfer::Read, &self.reads, report.reads, reads),
                (Transfer::Write, &self.writes, report.writes, writes),
            ];
            both.into_iter()
                .filter_map(|(transfer, direction, claimed, kind)| {
                    let claimed = claimed?;
                    let unknown = Bounds::between(0, u64::MAX);
                    let carried = direction.carried.unwrap_or(unknown);
                    let most = carried.within(claimed.bytes).most;
                    let all = [claimed.bytes, most]
                        .map(|bytes| Point::main(Quantity::Bytes, bytes as f64));
                    let rate = claimed.mb_s.filter(|_| direction.carried.is_some());
                    let rate = rate.zip(carried.mb_s_most_of(claimed));
                    let rates = rate.map(|(rate, most)| {
                        let of = |standing, rate| Point::new(standing, MB_S, rate);
                        [of(Standing::Rate, rate), of(Standing::RateAtMost, most)]
                    });
                    let points = all.into_iter().chain(rates.into_iter().flatten());
                    let device = joined(&self.devices_of(transfer));
                    let names = [("tool", report.tool.as_str()), ("device", &device)];
                    Some((carried.is_exceeded_by(claimed), claim(kind, &names, points)))
                })
        })
    }
}

/// Share below which a device carried nothing of note.
const NONE: f64 = 0.0005;
/// Greatest share of writes of which some are still to be written.
const NEARLY_ALL: f64 = 1.0 - NONE;

/// Syncs of a program, as the kernel traced them.
fn syncs(trace: &TracedProgram) -> Claim {
    let found = &trace.syncs;
    let count = |standing, one, number: u64| Point::count(standing, one, number as usize);
    let of_timed = |standing, number| count(standing, "sync", number).of(found.timed as f64);
    let timed = found.times.map(|times| {
        let by_flush = match found.flushed == 0 && found.uncached == found.timed {
            true => of_timed(Standing::Uncached, found.uncached),
            false => of_timed(Standing::Flushed, found.flushed),
        };
        let took = Point::main(TIME, times.whole.p50_ns as f64);
        let median = count(Standing::MedianOf, "sync", found.timed).of(found.syncs as f64);
        [
            Some(took),
            (found.syncs > 1).then_some(median),
            Some(by_flush),
        ]
    });
    let kind = &kinds::TRACED_SYNCS[usize::from(timed.is_none())];
    let span = trace
        .until_ns
        .map(|ns| Point::new(Standing::Traced, TIME, ns as f64));
    let lost = (trace.lost > 0).then(|| count(Standing::Lost, "event", trace.lost));
    let all = std::iter::once(Some(count(Standing::Main, "sync", found.syncs)));
    let points = all.chain(timed.into_iter().flatten()).chain([span, lost]);
    claim(kind, &[], points.flatten())
}
