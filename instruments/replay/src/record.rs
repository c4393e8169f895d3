//! Requests as they reach the block layer, by the kernel's trace events: `iolab record`, and what a replay looked like there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_engine::list::ListedRequest;
use iolab_host::clock::Clock;
use iolab_host::tracing::{
    self, DiskNumber, DiskRequest, Recording, TracedPlaces, Tracer, disk_requests,
};
use iolab_runner::campaign::Program;
use iolab_storage::Target;
use iolab_storage::sectors::{DiskPart, SectorMap, Sectors, disk_part_under};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, format_ns, parse_positive_duration};
use iolab_workload::{Error, Result};

use crate::answer::AtBlockLayer;
use crate::certificate::{Issued, Meter};
use crate::trace::{Access, format};

const RECORD_HELP: &str = "\
The requests are those of the device, after the page cache and after merging, of all programs; \
a replay of them repeats the device's load, and not the program's. It needs root.";

/// Time between two looks at the command and the stop flag.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Debug, Args)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct Options {
    /// Block device, or a file or directory whose device is recorded
    pub(crate) target: PathBuf,
    /// Time to record; default: until the command ends, or Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration)]
    pub(crate) time: Option<Duration>,
    /// New file to write instead of stdout: .iolog (fio, version 3) or .csv
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format; default: by the extension of FILE, else CSV
    #[arg(long, value_enum)]
    pub(crate) format: Option<RecordFormat>,
    /// Command whose end ends the recording
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    /// iolog of fio, version 3
    Iolog,
    /// A header, and a row for each request with its time in the device
    Csv,
}

/// Records the device of a target, and writes its requests.
pub(crate) fn record(options: &Options, program: Program) -> Outcome {
    let formats = &[
        (RecordFormat::Iolog, &["iolog"][..]),
        (RecordFormat::Csv, &["csv"]),
    ];
    let path = options.output.as_deref();
    let format = format_of(path, options.format, Some(RecordFormat::Csv), formats)?;
    let part = disk_part_under(&options.target)?;
    tracing::check()?;
    let mut to = output::open(path)?;
    let clock = Clock::calibrate();
    let stop = (program.catch)(false)?;
    let began = clock.now();
    let disk = (part.disk.number, part.disk.has_requests);
    let (ended, recording) = recorded(disk, &clock, || wait(options, &stop.now))?;
    let code = ended?;
    let requests = of_part(disk_requests(&recording.events), &part);
    write(&requests, &part, &clock, format, &mut *to)?;
    to.flush()?;
    let time = clock.ns_between(began, clock.now());
    (program.note)(&format!(
        "recorded {} of {}, after the page cache and merging, in {}",
        counted(requests.len() as u64, "request"),
        part.name,
        format_ns(time as f64)
    ));
    if let Some(until) = recording.until {
        (program.note)(&format!(
            "the recording ended after {}: there was no room for more events",
            format_ns(clock.ns_between(began, until) as f64)
        ));
    }
    if recording.lost > 0 {
        (program.note)(&format!(
            "requests are missing: {} were lost",
            counted(recording.lost, "event")
        ));
        return Err(Failure::CannotTell);
    }
    match code {
        0 => Ok(()),
        code => Err(Failure::Code(code)),
    }
}

/// Waits until the command ends, the time is over or the user stops it; the command's exit code.
fn wait(options: &Options, stop: &AtomicBool) -> Result<u8> {
    let began = Instant::now();
    let is_over = || {
        let over = options.time.is_some_and(|time| began.elapsed() >= time);
        over || stop.load(Ordering::Relaxed)
    };
    let Some((name, arguments)) = options.command.split_first() else {
        while !is_over() {
            thread::sleep(LOOK);
        }
        return Ok(0);
    };
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::inherit());
    // What the program prints is not a part of the trace.
    command.stdout(std::io::stderr());
    let failed = |error: std::io::Error| {
        Error::usage(format!("cannot run {}: {error}", escape_control(name)))
            .hint("check the command after --")
    };
    let mut child = command.spawn().map_err(failed)?;
    loop {
        match child.try_wait().map_err(failed)? {
            // An exit code has 8 bits; a signal is reported as shells do.
            Some(status) => return Ok(status.code().map_or(128, |code| code as u8)),
            None if is_over() => return Ok(0),
            None => thread::sleep(LOOK),
        }
    }
}

/// The requests within a part of a disk, with offsets from its first byte.
fn of_part(requests: Vec<DiskRequest>, part: &DiskPart) -> Vec<DiskRequest> {
    let own = requests
        .into_iter()
        .filter(|one| part.range.contains(&one.offset));
    let own = own.map(|one| DiskRequest {
        offset: one.offset - part.range.start,
        ..one
    });
    own.collect()
}

fn write(
    requests: &[DiskRequest],
    part: &DiskPart,
    clock: &Clock,
    format: RecordFormat,
    to: &mut dyn Write,
) -> Outcome {
    let first = requests.first().map_or(0, |request| request.start);
    let since = |one: &DiskRequest| clock.ns_between(first, one.start);
    match format {
        RecordFormat::Csv => {
            writeln!(to, "time_ns,op,offset,bytes,latency_ns")?;
            for one in requests {
                let took = clock.ns_between(one.start, one.complete);
                let kind = if one.writes { "write" } else { "read" };
                let at = since(one);
                writeln!(to, "{at},{kind},{},{},{took}", one.offset, one.bytes)?;
            }
        }
        RecordFormat::Iolog => {
            let rows = requests.iter().map(|one| Access {
                at_ns: since(one),
                writes: one.writes,
                offset: one.offset,
                bytes: u32::try_from(one.bytes).unwrap_or(u32::MAX),
                depth: None,
            });
            format::write_iolog(to, &format!("/dev/{}", part.name), rows)?;
        }
    }
    Ok(())
}

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
