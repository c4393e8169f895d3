//! `iolab record`: the requests of a device, as a trace.

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
use iolab_host::clock::Clock;
use iolab_host::tracing::{self, DiskRequest, disk_requests};
use iolab_runner::campaign::Program;
use iolab_storage::sectors::{DiskPart, disk_part_under};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, format_ns, parse_positive_duration};
use iolab_workload::{Error, Result};

use crate::block_layer::recorded;
use crate::trace::{Access, iolog};

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
            iolog::write(to, &format!("/dev/{}", part.name), rows)?;
        }
    }
    Ok(())
}
