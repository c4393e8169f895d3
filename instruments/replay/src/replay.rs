//! `iolab replay`: a trace on targets and models.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_runner::campaign::Program;
use iolab_storage::Consent;
use iolab_workload::trial::DEPTH_MAX;
use iolab_workload::units::{parse_duration, parse_size};

use crate::answer::{Answer, distinct};
use crate::mapping::Beyond;
use crate::run::{Speed, Terms, carry_out};
use crate::text::text;
use crate::trace_options::TraceOptions;

const REPLAY_HELP: &str = "\
A replay by time has a certificate: p99 of lateness at most a tenth of the median gap (200 us \
to 5 ms), in the whole and in each window of 1000 requests and 1 s; 99 % of the requests in \
order; gaps within 0.05 (Kolmogorov and Smirnov). A replay that does not keep it is no result.

Exit codes: 5 if a certificate is not kept; otherwise 0.";

#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) trace: TraceOptions,
    /// Directories, files, block devices, or model:NAME
    #[arg(value_name = "TARGET", required = true)]
    pub(crate) targets: Vec<PathBuf>,
    /// Speeds, as factors of the trace's own; max: as fast as the depth of the trace allows
    #[arg(
        long,
        value_name = "FACTOR",
        value_delimiter = ',',
        default_value = "1"
    )]
    pub(crate) speed: Vec<Speed>,
    /// Requests that can be in flight
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=i64::from(DEPTH_MAX)))]
    pub(crate) depth: u32,
    /// Requests beyond the end of the target
    #[arg(long, value_enum, default_value = "wrap")]
    pub(crate) beyond: Beyond,
    /// Leave out the writes of the trace
    #[arg(long)]
    pub(crate) reads_only: bool,
    /// Bytes of scratch files; default: what the trace needs, up to 1 GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) size: Option<u64>,
    /// Most replays of each target and speed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) blocks: u32,
    /// Begin no further replays once their time would be more
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = parse_duration)]
    pub(crate) budget: Duration,
    /// Let this program replay the same requests in the same blocks, and judge both at the block layer (root)
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) peer: Option<Peer>,
    /// Seed of the order of replays, the data and models
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Allow writing to an existing file or device: its data is LOST. If it holds a file system or partition table, name
    /// that too: --destroy-data=ext4
    #[arg(
        long,
        value_name = "SIGNATURE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub(crate) destroy_data: Option<String>,
    /// Output format; default: by the extension of FILE, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReplayFormat>,
    /// New file to write instead of stdout: .txt or .json
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// fio 3.31 or newer, as found in PATH
    Fio,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFormat {
    /// A table, and what follows from it
    Text,
    /// Everything at full precision, with every replay and its certificate
    Json,
}

/// Replays a trace and prints the answer.
pub(crate) fn replay(options: &Options, program: Program) -> Outcome {
    let formats = &[
        (ReplayFormat::Text, &["txt"][..]),
        (ReplayFormat::Json, &["json"]),
    ];
    let path = options.output.as_deref();
    let format = format_of(path, options.format, Some(ReplayFormat::Text), formats)?;
    let consent = options.destroy_data.as_deref().map(Consent::to_destroy);
    let terms = Terms {
        targets: options.targets.clone(),
        speeds: distinct(options.speed.iter().copied()),
        depth: options.depth,
        beyond: options.beyond,
        reads_only: options.reads_only,
        size: options.size,
        blocks: options.blocks,
        budget: options.budget,
        has_peer: options.peer.is_some(),
        seed: options.seed,
        consent: consent.transpose()?.unwrap_or(Consent::No),
    };
    let (trace, survey) = options.trace.read()?;
    // Opened first, so that no measurement is lost to a name that is taken.
    let mut to = output::open(path)?;
    let mut trials = Vec::new();
    let ended = carry_out(&trace, &survey, &terms, program, &mut trials);
    if trials.is_empty() {
        ended?;
        return Ok(());
    }
    let file = options.trace.trace.display().to_string();
    let answer = Answer::of(file, &trace, &survey, options.seed, trials);
    match format {
        ReplayFormat::Text => write!(to, "{}", text(&answer, output::style().width))?,
        ReplayFormat::Json => {
            serde_json::to_writer_pretty(&mut to, &answer).map_err(std::io::Error::from)?;
            writeln!(to)?;
        }
    }
    to.flush()?;
    ended?;
    match answer.is_kept() {
        true => Ok(()),
        false => Err(Failure::CannotTell),
    }
}
