//! The arguments of `iolab witness`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

const WITNESS_HELP: &str = "\
Examples:
  iolab witness -- dd if=data of=/dev/null bs=1M
  iolab witness --on data -o evidence.json -- fio job.fio < /dev/null

The program runs as it would alone, with its own output; the evidence goes to stderr, \
or to FILE. --on lets iolab see the page cache and the holes of a file before the program \
starts. Descendants are observed until all have ended; Ctrl-C ends that, and they go on.

Run it as root to see what other users' processes do with the disk.

The exit code is that of the program, and iolab ends by the signal that ended it. 2: it \
could not be started.";

#[derive(Debug, Args)]
#[command(after_help = WITNESS_HELP)]
pub(crate) struct Witness {
    /// File, device or directory that the program works on
    #[arg(long, value_name = "TARGET")]
    pub(crate) on: Option<PathBuf>,
    /// New file for the evidence: .json (iolab schema witness describes it) or .txt
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Program to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
