//! Options of commands that measure.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use iolab_storage::Consent;

use crate::output::Log;

/// Largest seed: run files hold signed integers; the experiments of a suite count upwards from the seed.
pub const SEED_MAX: u64 = (1 << 63) - 1_000;

/// A seed from the time of day and the process id: different each time, and short.
pub fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ns = now.map_or(0, |d| d.as_nanos() as u64);
    (ns ^ (u64::from(std::process::id()) << 20)) % (1 << 32)
}

/// Options for the messages on stderr during a run.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// Print a line at the start and the end of each experiment instead of the live view
    #[arg(long, conflicts_with_all = ["log", "quiet"])]
    pub no_live: bool,
    /// Print an object per event on stderr, for machines: start, trial, end, note
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "quiet")]
    pub log: Option<LogFormat>,
    /// Print results and errors only
    #[arg(long)]
    pub quiet: bool,
}

impl LogOptions {
    /// The mode that they request.
    pub fn log(&self) -> Log {
        match (self.log, self.quiet, self.no_live) {
            (Some(LogFormat::Json), ..) => Log::Json,
            (None, true, _) => Log::Quiet,
            (None, false, true) => Log::Lines,
            (None, false, false) => Log::Live,
        }
    }
}

/// Format of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One object per line
    Json,
}

/// Consent to destroy data.
#[derive(Debug, Args)]
pub struct ConsentOption {
    /// Allow writing to an existing file or device: its data is LOST. If it holds a file system
    /// or partition table, name that too: --destroy-data=ext4
    #[arg(
        long,
        value_name = "SIGNATURE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = Consent::to_destroy
    )]
    pub destroy_data: Option<Consent>,
}

impl ConsentOption {
    /// The consent that the user gives.
    pub fn consent(&self) -> Consent {
        self.destroy_data.clone().unwrap_or(Consent::No)
    }
}
