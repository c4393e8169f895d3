//! Choices of a user for a replay.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use iolab_command::options::ConsentOption;
use iolab_workload::trial::DEPTH_MAX;
use iolab_workload::units::{parse_positive_duration, parse_size};
use iolab_workload::{Error, Result};

use crate::mapping::Beyond;
use crate::trace::Reading;

const REPLAY_HELP: &str = "\
A replay by time has a certificate: p99 of lateness at most a tenth of the median gap (200 us \
to 5 ms), in the whole and in each window of 1000 requests and 1 s; 99 % of the requests in \
order; gaps within 0.05 (Kolmogorov and Smirnov). A replay that does not keep it is no result.

Exit codes: 5 if a certificate is not kept; otherwise 0.";

#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) reading: Reading,
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
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = parse_positive_duration)]
    pub(crate) budget: Duration,
    /// Let this program replay the same requests in the same blocks, and judge both at the block layer (root)
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) peer: Option<Peer>,
    /// Seed of the order of replays, the data and models
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) consent: ConsentOption,
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

/// The pace of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    /// By the times of the trace, this many times as fast.
    Times(f64),
    /// As fast as the depth of the trace allows.
    Max,
}

impl FromStr for Speed {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!(
                "the speed {text} is neither a number above 0 nor max"
            ))
            .hint("for example: --speed 1,2,0.5,max")
        };
        match text {
            "max" => Ok(Self::Max),
            _ => {
                let number = text.strip_suffix('x').unwrap_or(text);
                let factor: f64 = number.parse().map_err(|_| wrong())?;
                let is_one = (1e-6..=1e6).contains(&factor);
                is_one.then_some(Self::Times(factor)).ok_or_else(wrong)
            }
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(factor) => write!(f, "{factor}×"),
            Self::Max => f.write_str("max"),
        }
    }
}
