//! Arguments of `iolab time`, with hyperfine's names.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use iolab_workload::units::parse_positive_duration;

const HELP: &str = "\
Each block runs every command once, in random order, so that what else the machine does \
meets all of them alike. The first command is the base. The run ends after --min-runs and the \
budget, or once every median is known within 0.2 %.

A difference is reported when the 95 % interval of the ratio excludes 1; commands are equal when \
an equivalence test (5 %) shows a difference below 1 %, or below 5 % where no difference was \
found; otherwise the answer is 'cannot tell'.

Examples:
  iolab time 'sleep 0.010' 'sleep 0.011'
  iolab time -N --runs 40 -o new.iolab './old x' './new x'
  iolab time -L seconds 0.1,0.2 'sleep {seconds}'

Exit codes: 0 faster, slower or equal; 5 cannot tell; 4 a command is slower than the base, with \
--fail-if-slower; 1 a command failed.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Commands to time
    #[arg(required = true, value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
    /// Runs of each command before those that count
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) warmup: u32,
    /// Exactly this number of runs of each command
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["min_runs", "max_runs", "budget"])]
    pub(crate) runs: Option<u32>,
    /// Fewest runs of each command
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) min_runs: u32,
    /// Most runs of each command
    #[arg(short = 'M', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: Option<u32>,
    /// Time for all runs [default: 3 s for each command]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub(crate) budget: Option<Duration>,
    /// Command to run before each run, not timed; once for all commands, or once for each
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) prepare: Vec<String>,
    /// Command to run before the first run of each command, not timed
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,
    /// Command to run for each command at the end, not timed
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) cleanup: Option<String>,
    /// Shell that runs the commands; its start-up is measured and subtracted
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "sh", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) shell: String,
    /// Run the commands without a shell
    #[arg(short = 'N', long = "no-shell", conflicts_with = "shell")]
    pub(crate) no_shell: bool,
    /// Count runs that end with an exit code other than 0
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,
    /// Time each command with each of these values in place of {NAME}
    #[arg(short = 'L', long = "parameter-list", value_names = ["NAME", "VALUES"], num_args = 2)]
    pub(crate) parameters: Vec<String>,
    /// Name to show for a command, in the order of the commands
    #[arg(short = 'n', long = "command-name", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) names: Vec<String>,
    /// Exit code 4 if a command is slower than the first
    #[arg(long)]
    pub(crate) fail_if_slower: bool,
    /// Run file to write, for report, compare and gate
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// File to write, as hyperfine's --export-json does; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) export_json: Option<PathBuf>,
    /// Seed of the order of the runs; random by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub(crate) seed: Option<u64>,
}
