//! The arguments of `iolab compare`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use iolab_workload::response::Metric;
use iolab_workload::units::parse_share;

const COMPARE_HELP: &str = "\
The form of the command decides what one observation is:
  --base FILE... --new FILE...  a run; differences are judged by the spread
                                between runs; needs 3 runs in all
  BASE NEW (run files)          one run each: equivalent or not. Slower and
                                faster need several runs of each side
  BASE NEW --within-run         a trial within these two runs
  RUN --by FACTOR               a block of trials of one run, in which both
                                levels were measured
  BASE NEW (text)               a number

Verdicts: slower or faster when the interval of the ratio excludes 1 and the ratio is \
outside the margin; equivalent when the interval is within the margin. The intervals \
hold for all cells simultaneously, with 95 % confidence. Cannot tell names the doubt that could reverse the \
result (other traffic, cpu contended, page cache, suspended, two groups), or what is missing (wide interval, \
few trials, few runs, no value, no ratio). Identical when both files hold the same measurements.

Exit codes: 4 a cell is slower; otherwise 5 a cell cannot be judged; otherwise 0.";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct Compare {
    /// Run file, or text with one number per line ('-': standard input)
    #[arg(required_unless_present = "base_runs")]
    pub(crate) base: Option<PathBuf>,
    /// File to compare with it, of the same kind; not with --by
    pub(crate) new: Option<PathBuf>,
    /// Run files of the base side, one per run
    #[arg(long = "base", value_name = "FILE", num_args = 1.., requires = "new_runs",
          conflicts_with_all = ["base", "new", "by", "test", "repeats", "better", "within_run"])]
    pub(crate) base_runs: Vec<PathBuf>,
    /// Run files of the new side, one per run
    #[arg(long = "new", value_name = "FILE", num_args = 1.., requires = "base_runs")]
    pub(crate) new_runs: Vec<PathBuf>,
    /// Compare two levels of a factor within one run; the levels are optional if it has two
    #[arg(long, value_name = "FACTOR[=LEVEL,LEVEL]", conflicts_with = "new")]
    pub(crate) by: Option<String>,
    /// Smallest change that matters
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share)]
    pub(crate) margin: f64,
    /// Quantity to compare: p50, p90, p99, p99.9, p99.99, p99.999, max, cpu (time per request), throughput, iops or
    /// elapsed; of a group: reader.p99; default: the response of the experiment
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str)]
    pub(crate) metric: Option<Metric>,
    /// Judge two runs by the spread of their trials; ignores the spread between runs
    #[arg(long)]
    pub(crate) within_run: bool,
    /// Tests to show p values of; p values of the first one are also adjusted over all cells (Holm)
    #[arg(
        long,
        value_enum,
        value_name = "TEST[,TEST]",
        value_delimiter = ',',
        default_value = "welch"
    )]
    pub(crate) test: Vec<TestName>,
    /// Also show the p value of the first N trials of each side
    #[arg(long, value_name = "N[,N]", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(crate) repeats: Vec<u32>,
    /// Whether higher or lower numbers are better; for text only
    #[arg(long, value_enum)]
    pub(crate) better: Option<BetterName>,
    /// File to write; the extension chooses the format (.csv, .json, .md, .txt); default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Output format; default: by the extension of -o, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<CompareFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestName {
    /// Welch's t test
    Welch,
    /// Student's t test
    Student,
    /// Mann-Whitney U test
    MannWhitney,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BetterName {
    /// Higher is better
    Higher,
    /// Lower is better
    Lower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// A table and its findings
    Text,
    /// Everything at full precision, with the raw values
    Json,
    /// One row per cell
    Csv,
    /// A Markdown table
    Markdown,
}
