//! Modelled disks as files in real time, through FUSE, so that any tool can be graded on a disk whose truth is known.
//!
//! A request is computed in the model's virtual time when it arrives, and answered when the clock reaches the time of its
//! completion. [`Playback`] is that computation, without a clock; a timer thread carries it out. [`ServeStatistics`] says how late
//! the answers were.
//!
//! Files to begin with: `disk.rs` takes requests and answers on time, `one_file.rs` is the file system, and the command is here.

mod disk;
pub mod one_file;
mod serving;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::Args;
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output::note;
use iolab_command::output_format::TextOrJson;
use iolab_command::signals::signals_to;
use iolab_report::layout::{self, Column};
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::units::{exact_size, format_bytes, format_ns, parse_size, significant};
use iolab_workload::{Error, Result};
use serde_json::{Map, Value, json};

use crate::catalogue::{parsed, text_of};
use disk::Wake;
pub use disk::{Content, Due, PAGE, Playback, Speed};
use one_file::MountFolder;
pub use serving::{OpTally, Punctuality, ServeStatistics};
use serving::{ServeReport, Serving};

const SERVE_HELP: &str = "\
Measure MOUNTPOINT/disk with any tool, as the user who serves it; for example:

  iolab serve model:hp-97560 /mnt/model
  fio --name=t --filename=/mnt/model/disk --direct=1 --rw=randread --bs=4k \\
\x20     --runtime=30 --time_based

Ctrl-C, SIGTERM or umount ends it. The report then shows whether the model kept time: \
the 99th percentile of lateness (real end minus due end of a request) is at most 2 % of \
the median service time, or 50 µs. If it did not, serve it slower (--speed 0.1) and \
scale the tool's results.

The file behaves as a block device: its length is fixed, writes beyond its end fail, \
the page cache is bypassed, fsync is a flush, punching a hole is a TRIM. The kernel \
splits requests above 1 MiB. The path through the kernel adds time to each request; \
serve measures that time and prints it at the start.

Exit codes: 0 the model kept time, or no request came; 1 it did not, or it could not be \
served; 2 wrong usage; 3 the directory is not empty or already serves a model.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct Arguments {
    /// model:NAME with a name from 'iolab model list', or with a TOML file
    model: String,
    /// Empty directory; the disk is the file 'disk' in it
    mountpoint: PathBuf,
    /// Model time per real time: 0.1 makes everything ten times slower
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: Speed,
    /// Memory for written data; data beyond it reads as zeros
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    memory: u64,
    /// Keep no written data: all reads return zeros
    #[arg(long, conflicts_with = "memory")]
    no_data: bool,
    /// Write one line per request to a new CSV file
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Seed of the model's random choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Output format of the report at the end
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    format: TextOrJson,
}

fn speed(text: &str) -> std::result::Result<Speed, String> {
    let factor = text.trim().parse().ok().and_then(Speed::new);
    factor.ok_or_else(|| "write a number from 0.001 to 1000".to_owned())
}

/// Serves until a signal or until an unmount, then writes the report to stdout.
pub(crate) fn serve(options: &Arguments) -> Outcome {
    let name = options.model.strip_prefix("model:");
    let name = name.unwrap_or(&options.model);
    let definition = parsed(name, &text_of(name)?)?;
    let disk =
        crate::build(&definition, options.seed).map_err(|why| Error::usage(why).within(name))?;
    // Before anything is mounted: from then on a signal must not leave the mount.
    let (bell, mut wakes) = UnixStream::pair().map_err(cannot_wait)?;
    signals_to(&bell)?;
    let place = MountFolder::new(&options.mountpoint)?;
    if place.had_leftover {
        note("note: unmounted the model that a killed iolab serve left there");
    }
    let memory = (!options.no_data).then_some(options.memory);
    let ledger = options.ledger.as_deref().map(output::create).transpose()?;
    let serving = Serving::begin(disk, place, options.speed, memory, ledger, &bell)?;
    note(format_args!(
        "{}: {}, {}",
        serving.file.display(),
        definition.title,
        format_bytes(serving.bytes as f64)
    ));
    note(format_args!(
        "The path through the kernel adds about {} to each request. Ctrl-C ends.",
        format_ns(serving.path_ns as f64)
    ));
    if let Some(words) = dilation(options.speed) {
        note(words);
    }
    wait(&mut wakes, options.memory)?;
    let report = serving.end()?;
    let mut to = output::open(None)?;
    match options.format {
        TextOrJson::Text => write!(to, "{}", text(&report, output::style().width))?,
        TextOrJson::Json => writeln!(to, "{:#}", json(&report))?,
    }
    to.flush()?;
    match report.tally.punctuality() {
        Some(punctuality) if !punctuality.kept() => Err(Error::failed(format!(
            "{name} did not keep time: {}",
            reason(&punctuality)
        ))
        .hint(format!(
            "results of this run do not show the model; serve it slower (--speed {}) or on an idle machine",
            report.speed.factor() / 10.0
        ))
        .into()),
        _ => Ok(()),
    }
}

fn cannot_wait(error: std::io::Error) -> Error {
    Error::failed(format!("cannot wait for signals: {error}"))
}

/// Waits for a signal, or until the disk is unmounted.
fn wait(wakes: &mut UnixStream, memory: u64) -> Result<()> {
    let mut byte = [0];
    loop {
        wakes.read_exact(&mut byte).map_err(cannot_wait)?;
        if byte[0] != Wake::Full as u8 {
            return Ok(());
        }
        note(format_args!(
            "note: {} of written data are kept; further data is not, and reads as zeros (--memory)",
            exact_size(memory)
        ));
    }
}

/// The effect of virtual time on results; `None` in real time.
fn dilation(speed: Speed) -> Option<String> {
    let factor = speed.factor();
    (speed != Speed::REAL).then(|| {
        format!(
            "Speed {factor}: a second of the model takes {} s. Multiply times that a tool reports by {factor}, and \
             divide rates by it.",
            significant(1.0 / factor)
        )
    })
}

fn reason(punctuality: &Punctuality) -> String {
    let [late, limit, service] = [
        punctuality.lateness_p99, punctuality.limit, punctuality.service_p50,
    ]
    .map(|ns| format_ns(ns as f64));
    format!(
        "the 99th percentile of lateness is {late}, the limit {limit} (median service time {service})"
    )
}

fn text(report: &ServeReport, width: u16) -> String {
    let all = report.tally.all();
    let mut text = format!(
        "Served {} requests in {}, at most {} at a time.\n",
        all.requests,
        format_ns(report.elapsed as f64),
        report.most
    );
    if let Some(punctuality) = report.tally.punctuality() {
        text.push_str(&table(report, width));
        text.push_str("service: arrival to the time of completion; late: from then to the end of the answer\n");
        let kept = if punctuality.kept() {
            "Kept time"
        } else {
            "Did not keep time"
        };
        text.push_str(&format!("{kept}: {}.\n", reason(&punctuality)));
    }
    text.push_str(&format!(
        "The path through the kernel adds about {} to each request.\n",
        format_ns(report.path_ns as f64)
    ));
    if report.lost > 0 {
        text.push_str(&format!(
            "{} of written data did not fit into memory and were discarded.\n",
            format_bytes(report.lost as f64)
        ));
    }
    if let Some(words) = dilation(report.speed) {
        text.push_str(&format!("{words}\n"));
    }
    text
}

fn table(report: &ServeReport, width: u16) -> String {
    let kinds: Vec<(&str, &OpTally)> = report
        .tally
        .kinds()
        .map(|(op, kind)| (op.name(), kind))
        .collect();
    let of = |heading: &str, dispensable: u8, value: &dyn Fn(&OpTally) -> String| {
        Column::new(
            heading,
            dispensable,
            kinds.iter().map(|(_, kind)| value(kind)),
        )
    };
    let service =
        |q: f64| move |kind: &OpTally| format_ns(kind.service.value_at_quantile(q) as f64);
    let late = |q: f64| move |kind: &OpTally| format_ns(kind.lateness.value_at_quantile(q) as f64);
    let columns = vec![
        Column::new("op", 0, kinds.iter().map(|(name, _)| (*name).to_owned())).left(),
        of("requests", 0, &|kind| kind.requests.to_string()),
        of("mean size", 1, &|kind| {
            format_bytes(kind.bytes as f64 / kind.requests as f64)
        }),
        of("service p50", 0, &service(0.5)),
        of("p99", 2, &service(0.99)),
        of("late p50", 0, &late(0.5)),
        of("p99", 0, &late(0.99)),
        of("max", 2, &late(1.0)),
    ];
    layout::text(columns, width)
}

fn json(report: &ServeReport) -> Value {
    let kind = |kind: &OpTally| {
        let quantiles = |histogram: &LatencyHistogram| {
            json!({
                "p50": histogram.value_at_quantile(0.5),
                "p99": histogram.value_at_quantile(0.99),
                "max": histogram.max(),
            })
        };
        json!({
            "requests": kind.requests,
            "bytes": kind.bytes,
            "service_ns": quantiles(&kind.service),
            "lateness_ns": quantiles(&kind.lateness),
        })
    };
    let kinds: Map<String, Value> = report
        .tally
        .kinds()
        .map(|(op, tally)| (op.name().to_owned(), kind(tally)))
        .collect();
    let punctuality = report.tally.punctuality();
    json!({
        "speed": report.speed.factor(),
        "elapsed_ns": report.elapsed,
        "path_ns": report.path_ns,
        "requests_at_most": report.most,
        "bytes_not_kept": report.lost,
        "kept_time": punctuality.map(|p| p.kept()),
        "lateness_limit_ns": punctuality.map(|p| p.limit),
        "all": kind(report.tally.all()),
        "kinds": kinds,
    })
}
