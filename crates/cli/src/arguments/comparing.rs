//! The arguments of the commands that compare runs: compare, gate and history.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use iolab_workload::response::Metric;

use super::share;

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
hold for all cells simultaneously, with 95 % confidence. Cannot tell (disturbed) when a disturbance of one side \
(other traffic, steal, CPU or memory pressure, CPU quota, split requests) could explain \
the result; cannot tell (other source) when the bytes came from different sources; cannot tell with \
another reason (suspended, earlier writes, rate not held, coarse clock, two groups, drift) \
when that could reverse the result; identical when both files hold the same run; otherwise cannot tell \
with what is missing (wide interval, few trials, few runs, no value, no ratio).

Exit codes: 4 a cell is slower; otherwise 5 a cell cannot be judged; otherwise 0.";

const GATE_HELP: &str = "\
Earlier runs are the finished runs in FOLDER that began before NEW and have the same \
experiment, settings, budget, machine and target. At least 5 are needed.

Verdicts: slower (the alarm) or faster when the median of a cell, or of all cells \
together, is outside the range that the earlier runs predict for one new run (false \
alarm rate: 5 % over all cells); cannot tell (disturbed) when NEW differs from all \
earlier runs in a disturbance that could explain the change; cannot tell (other source) \
when its bytes came from another source; cannot tell with another reason (suspended, rate \
not held, coarse clock) when that could reverse the result; otherwise no change shown. With --strict: \
equivalent, or cannot tell. The output names the change that the gate would have found \
with a probability of 90 %.

Exit codes: 4 alarm; otherwise 5 when there are too few earlier runs, a cell is missing \
in NEW, or a cell cannot be judged; otherwise 0.";

const HISTORY_HELP: &str = "\
Runs form one line when they have the same experiment, settings, budget, machine and \
target. A level shift is a lasting change of the median of a cell, or of all cells \
together, that the spread between runs does not explain; at most 5 % of unchanged lines \
show one. Changes of the environment between two runs are listed with their date.";

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
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
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

#[derive(Debug, Args)]
#[command(after_help = GATE_HELP)]
pub(crate) struct Gate {
    /// The new run file
    pub(crate) new: PathBuf,
    /// Folder with the run files of earlier runs
    #[arg(long, value_name = "FOLDER")]
    pub(crate) history: PathBuf,
    /// Use at most the last N earlier runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    pub(crate) last: u32,
    /// Require that each cell is shown equivalent to the earlier runs within the margin; otherwise
    /// exit code 5
    #[arg(long)]
    pub(crate) strict: bool,
    /// Require that a change of this size would have been found in each cell (with a
    /// probability of 90 %); otherwise exit code 5
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) must_find: Option<f64>,
    /// Smallest change that matters, for --strict
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub(crate) margin: f64,
    /// Quantity to judge: p50, p90, p99, p99.9, p99.99, p99.999, max, cpu (time per request), throughput, iops or
    /// elapsed; of a group: reader.p99; default: the response of the experiment
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str)]
    pub(crate) metric: Option<Metric>,
    /// Also use runs of other hosts with the same hardware: for CI runners and containers, whose
    /// names change
    #[arg(long)]
    pub(crate) any_host: bool,
    /// File to write; the extension chooses the format (.csv, .json, .md, .prom, .txt); default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Output format; default: by the extension of -o, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<GateFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateFormat {
    /// A table and its findings
    Text,
    /// Everything at full precision, with the median of each run
    Json,
    /// One row per cell
    Csv,
    /// A Markdown table
    Markdown,
    /// The conclusion in the text format of Prometheus
    Prometheus,
}

#[derive(Debug, Args)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct History {
    /// Folder with run files
    pub(crate) folder: PathBuf,
    /// Quantity to show: p50, p90, p99, p99.9, p99.99, p99.999, max, cpu (time per request), throughput, iops or
    /// elapsed; of a group: reader.p99; default: the response of each experiment
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str)]
    pub(crate) metric: Option<Metric>,
    /// Combine hosts with the same hardware in one line
    #[arg(long)]
    pub(crate) any_host: bool,
    /// Output format; default: by the extension of FILE, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<HistoryFormat>,
    /// New file to write instead of stdout: .txt, .html, .svg, .json or .csv
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// A table per line, its level shifts and changes
    Text,
    /// A page with a figure per line
    Html,
    /// A figure, if the folder holds one line
    Svg,
    /// Everything at full precision
    Json,
    /// One row per run and cell
    Csv,
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
