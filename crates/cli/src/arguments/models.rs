//! The arguments of the commands for modelled disks: model and serve.

#[cfg(feature = "measure")]
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
#[cfg(feature = "measure")]
use iolab_serve::Speed;
#[cfg(feature = "measure")]
use iolab_workload::units::parse_size;

#[cfg(feature = "measure")]
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
pub(crate) struct Model {
    #[command(subcommand)]
    pub(crate) action: ModelAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelAction {
    /// List the built-in models, each with the sources of its values
    List {
        /// Output format
        #[arg(long, value_enum, default_value_t = ModelFormat::Text)]
        format: ModelFormat,
    },
    /// Print the definition (TOML) of a model, to copy and change
    Show {
        /// Name from 'iolab model list', or a TOML file
        #[arg(value_name = "DEFINITION")]
        definition: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelFormat {
    /// Text to read
    Text,
    /// An object, or an array of them
    Json,
}

#[cfg(feature = "measure")]
#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct Serve {
    /// model:NAME with a name from 'iolab model list', or with a TOML file
    pub(crate) model: String,
    /// Empty directory; the disk is the file 'disk' in it
    pub(crate) mountpoint: PathBuf,
    /// Model time per real time: 0.1 makes everything ten times slower
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    pub(crate) speed: Speed,
    /// Memory for written data; data beyond it reads as zeros
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) memory: u64,
    /// Keep no written data: all reads return zeros
    #[arg(long, conflicts_with = "memory")]
    pub(crate) no_data: bool,
    /// Write one line per request to a new CSV file
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,
    /// Seed of the model's random choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Output format of the report at the end
    #[arg(long, value_enum, default_value_t = ModelFormat::Text)]
    pub(crate) format: ModelFormat,
}

#[cfg(feature = "measure")]
fn speed(text: &str) -> Result<Speed, String> {
    let factor = text.trim().parse().ok().and_then(Speed::new);
    factor.ok_or_else(|| "write a number from 0.001 to 1000".to_owned())
}

#[cfg(feature = "measure")]
fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}
