//! Arguments of `iolab witness`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use iolab_workload::units::parse_positive_duration;

const HELP: &str = "\
Examples:
  iolab witness -- dd if=data of=/dev/null bs=1M
  iolab witness --on data -o evidence.json -- fio job.fio < /dev/null
  iolab witness -o course.svg -- dd if=data of=/dev/null bs=1M
  iolab witness -o evidence.iolab -- dd if=data of=/dev/null bs=1M
  iolab witness --trace -- dd if=/dev/zero of=new bs=64k count=100 oflag=dsync
  iolab witness -p 4711 --for 10s
  iolab witness --device vda --for 5s

The program runs as it would without iolab, with its own output; the evidence goes to \
stderr, or to FILE. --on records the page cache and the holes of a file before the program \
starts. iolab observes the program and its descendants until all have ended. Signals reach \
the program: Ctrl-C ends it as without iolab. After its end, Ctrl-C ends the observation of \
descendants, and they continue. With -p and --device, iolab observes until Ctrl-C or for \
--for; with -p also until the process ends.

iolab compares a report that the program writes (fio --output=FILE with \
--output-format=json; other files with --claim) with the counters of the devices.

-o FILE.iolab stores all evidence; table, report, plot and show read it.

As root, iolab also sees the I/O of other users' processes and of processes that have \
ended. --trace needs root: it counts syncs, and measures how long requests of the program \
were in the queue and in the device.

The exit code is that of the program; if a signal ended it, iolab ends by that signal. 2: \
the program could not be started. With -p and --device it is 0.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[command(group = ArgGroup::new("subject").required(true).args(["command", "pid", "device"]))]
pub(crate) struct Options {
    /// File, device or directory that the program works on
    #[arg(long, value_name = "TARGET", conflicts_with = "device")]
    pub(crate) on: Option<PathBuf>,
    /// Observe a running process and its descendants
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Observe a block device: vda, or its path; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Vec<PathBuf>,
    /// End the observation of a process or device after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration, conflicts_with = "command")]
    pub(crate) time: Option<Duration>,
    /// Record the kernel's trace events (root): the program's syncs, and the time of its requests in queue and device
    #[arg(long, conflicts_with = "device")]
    pub(crate) trace: bool,
    /// Report that the program writes, of fio (JSON) or IOzone, to compare with the devices
    #[arg(long, value_name = "REPORT", requires = "command")]
    pub(crate) claim: Option<PathBuf>,
    /// New file for the evidence: .iolab, .json (iolab schema witness describes it) or .txt; over time: .svg, .png or .pdf
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Program to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
