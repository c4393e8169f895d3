//! The command line's words. Nothing here does work.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};
use iolab_figure::{Center, FigureKind, Reference, Spread, parse_length};
use iolab_plan::experiment::REFINE_MAX;
use iolab_report::formats::ExportFormat;
use iolab_run::peer::PEERS;
use iolab_serve::Speed;
use iolab_spec::foreign::unknown_option;
use iolab_spec::response::Response;
use iolab_spec::units::{parse_duration, parse_share, parse_size};

const EXAMPLES: &str = "\
Examples:
  iolab study                     six micro-benchmarks here, in two minutes
  iolab study /mnt/disk --suite micro
                                  the full grids on another disk, 40 minutes
  iolab doctor /mnt/disk          what this disk is, and what to trust on it
  iolab run read-random --set bs=4k,64k,1M --threads 4
                                  one question, with your own settings
  iolab run read-size /dev/sdb    a block device, opened for reading only
  iolab run read-random --peer fio
                                  the same cells with fio, in the same blocks
  iolab run load-latency --slo 'p99<1ms'
                                  the highest rate with 99 % below 1 ms
  iolab fit etcd /mnt/disk        good enough for etcd: yes, no, cannot tell
  iolab table iolab-results/*.iolab
                                  the tables and findings of run files
  iolab plot FILE -o figure.pdf   the figure of a run, for a paper
  iolab report iolab-results/*.iolab -o report.html
                                  one page: findings, tables, evidence, data
  iolab export FILE --format csv  one row per sample, for pandas, R or DuckDB
  iolab compare --base a*.iolab --new b*.iolab
                                  several runs of each side, cell by cell
  iolab gate --history runs NEW.iolab
                                  for CI: fails when NEW is slower than the
                                  earlier runs predict

TARGET is a directory, a file or a block device; the current directory by default. \
In a directory iolab makes a scratch file and removes it at the end. Files and devices \
are only read unless --destroy-data is given. model:NAME is a simulated disk: it reads \
and writes nothing, and minutes of its time take seconds. Run files go to \
iolab-results/ and are never overwritten.

Sizes are binary: 4k, 4K and 4KiB are 4096 bytes. Throughput is decimal: MB/s is 10^6 \
bytes per second. A time without a unit is in seconds.

Exit codes: 0 done, or yes; 1 a measurement failed; 2 wrong usage; 3 refused for \
safety; 4 slower (compare, gate) or no (fit, --slo); 5 cannot tell; 130 interrupted.";

const FIT_HELP: &str = "\
WHAT is a set of workloads, each with the levels it requires. 'iolab show etcd' prints \
one with the source and the wording of each level. To use your own levels, copy it, \
change it, and name your file as WHAT.

A level holds when the 95 % interval of the measured quantity is on the good side of \
the limit, 5 % away from it. The interval includes the differences between trials of \
1 s. If the quantity changes for good during the load, the level must hold before and \
after the change.

The answer is 'cannot tell', with the reason, when the requests did not reach storage \
(tmpfs, the page cache), or when writes may not be durable.

Exit codes: 0 yes; 4 no; 5 cannot tell; 1, 2, 3 and 130 as for the other commands.";

const COMPLETIONS_HELP: &str = "\
Examples:
  iolab completions bash > ~/.local/share/bash-completion/completions/iolab
  iolab completions zsh > DIR/_iolab  # DIR: a directory in $fpath
  iolab completions fish > ~/.config/fish/completions/iolab.fish";

const COMPARE_HELP: &str = "\
The form of the command decides what one observation is:
  --base FILE... --new FILE...  a run; differences are judged by the spread
                                between runs; needs 3 runs on each side
  BASE NEW (run files)          one run each: equivalent or not. Slower and
                                faster need several runs of each side
  BASE NEW --within-run         a trial within these two runs
  RUN --by FACTOR               a block of trials of one run, in which both
                                levels were measured
  BASE NEW (text)               a number

Verdicts: slower or faster when a difference is shown (p below 0.05 after Holm's \
correction over all cells) and the ratio is outside the margin; equivalent when two \
one-sided tests show the ratio within the margin; cannot tell (disturbed) when the \
sides differ in other traffic, steal, CPU pressure, CPU quota or split requests; \
identical when both files hold the same run; otherwise cannot tell.

Exit codes: 4 a cell is slower; otherwise 5 a cell cannot be judged; otherwise 0.";

const GATE_HELP: &str = "\
Earlier runs are the finished runs in FOLDER that began before NEW and have the same \
experiment, settings, budget, machine and target. At least 5 are needed.

Verdicts: slower (the alarm) or faster when the median of a cell, or of all cells \
together, is outside the range that the earlier runs predict for one new run (false \
alarm rate: 5 % over all cells); cannot tell (disturbed) when NEW differs from all \
earlier runs in other traffic, steal, CPU pressure, CPU quota or split requests; \
otherwise no change shown. With --strict: equivalent, or cannot tell. The output names \
the change that the gate would have found with a chance of 90 %.

Exit codes: 4 alarm; otherwise 5 when there are too few earlier runs, a cell is missing \
in NEW, or a cell cannot be judged; otherwise 0.";

const HISTORY_HELP: &str = "\
Runs form one line when they have the same experiment, settings, budget, machine and \
target. A level shift is a lasting change of the median of a cell, or of all cells \
together, that the spread between runs does not explain; at most 5 % of unchanged lines \
show one. Changes of the environment between two runs are listed with their date.";

const DOCTOR_HELP: &str = "\
Each finding is 'fine', 'worth knowing' (it affects results) or 'must fix' (results \
would be wrong or mislabelled). Direct I/O and the backends are tried: in a directory \
with a small scratch file, on files and devices by reading only. The exit code is 0 \
whatever is found, unless the target cannot be used. For scripts:

  iolab doctor --format json | jq -e '.must_fix == 0'";

const PLOT_HELP_END: &str = "\
Hollow marks: not all bytes came from the device. The width is the width on paper: \
241pt is a column of many journals. The same files and options give the same bytes.";

/// The kinds of figures, and what holds for all of them.
fn plot_help() -> String {
    let kinds = FigureKind::ALL.iter();
    let lines = kinds.map(|kind| format!("  {kind:<12} {}\n", kind.words()));
    format!("Kinds:\n{}\n{PLOT_HELP_END}", lines.collect::<String>())
}

const MODEL_CHECK_HELP: &str = "\
A line of TRACE holds: R or W, what the drive's buffer did (any word), first block, \
number of blocks, measured service time in us, time from the end of this request to the \
start of the next in us. One request is outstanding at a time.

rms is the root mean square distance between the distributions of measured and modelled \
service times, at the quantiles 0.0001 to 0.9999 (Ruemmler and Wilkes 1994). Median and \
p95 are of the absolute error per request. Hits and misses are those of the model. All \
times are in ms.";

const SERVE_HELP: &str = "\
Measure MOUNTPOINT/disk with any tool, as the user who serves it; for example:

  iolab serve model:hp-97560 /mnt/model
  fio --name=t --filename=/mnt/model/disk --direct=1 --rw=randread --bs=4k \\
\x20     --runtime=30 --time_based

Ctrl-C, SIGTERM or umount ends it. The report then shows whether the model kept time: \
the 99th percentile of lateness (real end minus due end of a request) is at most 2 % of \
the median service time, or 50 us. If it did not, serve it slower (--speed 0.1) and \
scale the tool's results.

The file behaves as a block device: its length is fixed, writes beyond its end fail, \
the page cache is bypassed, fsync is a flush, punching a hole is a TRIM. The kernel \
splits requests above 1 MiB. The path through the kernel adds a time to each request, \
which is measured and printed at the start.

Exit codes: 0 the model kept time, or no request came; 1 it did not, or it could not be \
served; 2 wrong usage; 3 the directory is not empty or already serves a model.";

/// Run files hold signed integers; the experiments of a suite count upwards from the seed.
const SEED_MAX: u64 = (1 << 63) - 1_000;

/// A laboratory for storage I/O: measures how storage behaves, repeats until the result is precise,
/// and shows where every byte came from.
#[derive(Debug, Parser)]
#[command(name = "iolab", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Reads the command line. What is wrong with it clap prints, and ends the program.
    ///
    /// # Errors
    /// Of kind usage: an option that other tools have, with iolab's way.
    pub(crate) fn read() -> iolab_spec::Result<Self> {
        Self::try_parse().or_else(|error| {
            let known_elsewhere = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(option))
                    if error.kind() == ErrorKind::UnknownArgument =>
                {
                    unknown_option(option)
                }
                _ => None,
            };
            known_elsewhere.map_or_else(|| error.exit(), Err)
        })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a suite of experiments and report the findings: start here
    Study(Study),
    /// Run one experiment
    Run(Run),
    /// Check whether storage is good enough for a purpose: yes, no, or cannot tell
    #[command(after_help = FIT_HELP)]
    Fit(Fit),
    /// List experiments, suites, requirements and settings
    List(List),
    /// Print the TOML of an experiment, suite or requirement, to copy and change
    Show(Show),
    /// Show the tables and findings of run files
    Table(Table),
    /// Convert results of fio or IOzone to a run file
    Import(Import),
    /// Draw run files as a figure: SVG, PDF or PNG
    Plot(Plot),
    /// Finish an interrupted run
    Resume(Resume),
    /// Compare two runs cell by cell: ratio, interval, p, verdict; exit code for CI
    Compare(Compare),
    /// Judge a new run by earlier runs of the same experiment; exit code for CI
    Gate(Gate),
    /// Show experiments over time: level shifts, and what changed between runs
    History(History),
    /// Summarise numbers, one per line: intervals, drift, a histogram
    Stats(Stats),
    /// Check a target and this machine: what to trust, what to set
    Doctor(Doctor),
    /// Write run files as one document: findings, tables, evidence, method, data
    Report(Report),
    /// Write every sample, interval or latency bucket, for other programs
    Export(Export),
    /// List disk models, print one, or compare one with a measured drive
    Model(Model),
    /// Serve a disk model as a file in real time, for any tool to measure
    Serve(Serve),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(Completions),
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}

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
    /// Replay the measured requests of a drive on a model, and print how much the times differ
    #[command(after_help = MODEL_CHECK_HELP)]
    Check {
        /// Name from 'iolab model list', or a TOML file
        definition: String,
        /// Measured requests, one per line
        trace: PathBuf,
        /// Output format
        #[arg(long, value_enum, default_value_t = ModelFormat::Text)]
        format: ModelFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelFormat {
    /// Text to read
    Text,
    /// An object, or an array of them
    Json,
}

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

fn speed(text: &str) -> Result<Speed, String> {
    let factor = text.trim().parse().ok().and_then(Speed::new);
    factor.ok_or_else(|| "write a number from 0.001 to 1000".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// What changes an experiment. Each short form is the same as a --set.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Set or sweep a setting: bs=4k,64k,1M ('iolab list --settings' shows all)
    #[arg(long = "set", value_name = "NAME=VALUE[,VALUE]")]
    pub(crate) sets: Vec<String>,
    /// Bypass the page cache with O_DIRECT (sets cache=direct only)
    #[arg(long, conflicts_with = "buffered")]
    pub(crate) direct: bool,
    /// Use the page cache, and drop it before each trial (cache=cold)
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Bytes of the target to use (region)
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Workers (threads)
    #[arg(long, value_name = "N[,N]")]
    pub(crate) threads: Option<String>,
    /// Requests in flight per worker (depth); above 1 needs --set backend=io_uring or libaio
    #[arg(long, value_name = "N[,N]")]
    pub(crate) depth: Option<String>,
    /// Issue this many requests per second in total (rate), whether or not earlier ones have
    /// completed (open loop); response time counts from the scheduled start
    #[arg(long, value_name = "N[,N]")]
    pub(crate) rate: Option<String>,
    /// Use a new file for each trial that only writes (fresh=true)
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Maximum duration of one trial (time)
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Repeat until the median is known to within this share: 5%
    #[arg(long, value_name = "SHARE")]
    pub(crate) precision: Option<String>,
    /// Time for all trials together
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<String>,
    /// Write to the target first: seq:1+rand:2 (passes over the region), or steady (until the
    /// rate of random writes is steady); not part of the budget
    #[arg(long, value_name = "PLAN")]
    pub(crate) precondition: Option<String>,
    /// Pause before each block of trials; not part of the budget
    #[arg(long, value_name = "TIME")]
    pub(crate) settle: Option<String>,
    /// Also measure the same cells with your fio or IOzone, in the same blocks (tool=iolab,...)
    #[arg(long = "peer", value_name = "TOOL", value_parser = peer_names())]
    pub(crate) peers: Vec<String>,
    /// Print the plan (cells, trials, time, bytes written, free space) and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seed of the order of trials, the offsets and the data; random by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) consent: ConsentOption,
}

/// The peers that there are, with what each is.
fn peer_names() -> PossibleValuesParser {
    let names = PEERS
        .iter()
        .map(|peer| PossibleValue::new(peer.name()).help(peer.about()));
    PossibleValuesParser::new(names)
}

#[derive(Debug, Args)]
pub(crate) struct ConsentOption {
    /// Allow writing to an existing file or device: its data is LOST. If it holds a file system
    /// or partition table, name that too: --destroy-data=ext4
    #[arg(
        long,
        value_name = "SIGNATURE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub(crate) destroy_data: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Study {
    /// Directory, file, block device, or model:NAME ('iolab model list', or a TOML file)
    #[arg(default_value = ".")]
    pub(crate) target: PathBuf,
    /// Name of a built-in suite (quick, glance, micro) or a TOML file
    #[arg(long, value_name = "NAME", default_value = "quick")]
    pub(crate) suite: String,
    /// Folder for the run files
    #[arg(short, long, value_name = "FOLDER", default_value = "iolab-results")]
    pub(crate) output: PathBuf,
    /// Print every table and every finding
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Name of a built-in experiment ('iolab list'), a TOML file, or a job file of fio (NAME.fio)
    pub(crate) experiment: String,
    /// Directory, file, block device, or model:NAME ('iolab model list', or a TOML file); default:
    /// the target in the job file, or the current directory. Several are levels of the factor
    /// target, measured in the same blocks: 'iolab compare FILE --by target' compares them
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Run file to write; default: a new name in iolab-results/
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print every chart and every finding
    #[arg(long)]
    pub(crate) full: bool,
    /// Ceilings to compare the results with: read=510MB/s,write=485MB/s,iops=95000, or measure
    /// to find them with short probes before the run
    #[arg(long, value_name = "LIST")]
    pub(crate) peak: Option<String>,
    /// Find the highest rate (open loop) at which response times hold these levels: p99<1ms, or
    /// several: p50<200us,p99.9<5ms,syncs.max<50ms. With --rate: check whether they hold at that
    /// rate (exit code 0 yes, 4 no, 5 cannot tell)
    #[arg(long, value_name = "LEVELS", conflicts_with = "refine")]
    pub(crate) slo: Option<String>,
    /// After the run, add N finer sizes around each bend and each best size, and measure all sizes
    /// again with a second budget; only these trials count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REFINE_MAX)))]
    pub(crate) refine: Option<u32>,
    /// Write blocks with offset, generation and checksum, and check them after each trial: finds
    /// corrupted, misplaced, stale, torn and lost blocks (verify=true)
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

#[derive(Debug, Args)]
pub(crate) struct Fit {
    /// Name of a built-in requirement ('iolab list'), or a TOML file
    #[arg(value_name = "WHAT")]
    pub(crate) requirement: String,
    /// Directory, file or block device
    #[arg(default_value = ".")]
    pub(crate) target: PathBuf,
    /// Duration of the load, per workload; a long load exhausts burst credits and write caches
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) hold: Option<String>,
    /// Folder for the run files
    #[arg(short, long, value_name = "FOLDER", default_value = "iolab-results")]
    pub(crate) output: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = ModelFormat::Text)]
    pub(crate) format: ModelFormat,
    /// Seed of offsets and data; random by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) consent: ConsentOption,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Output of fio --output-format=json (or json+), or of iozone
    pub(crate) file: PathBuf,
    /// Run file to write; default: a new name in iolab-results/
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List every setting with its default
    #[arg(long)]
    pub(crate) settings: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name of an experiment, suite or requirement, a TOML file, or a job file of fio (NAME.fio)
    pub(crate) name: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = ShowFormat::Toml)]
    pub(crate) format: ShowFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// The definition, to copy and change
    Toml,
    /// An experiment's cells as a job file for fio
    Fio,
}

#[derive(Debug, Args)]
pub(crate) struct Table {
    /// Run files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Quantity to show: p50, p90, p99, p99.9, max, cpu (time per request), throughput, iops or
    /// elapsed; default: the response of each experiment
    #[arg(long, value_name = "METRIC", value_parser = Response::from_str)]
    pub(crate) metric: Option<Response>,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub(crate) format: TableFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// A table, a chart and the findings
    Text,
    /// One row per cell
    Csv,
    /// One object per cell
    Json,
    /// A Markdown table
    Markdown,
    /// A LaTeX tabular
    Latex,
}

#[derive(Debug, Args)]
#[command(after_help = plot_help())]
pub(crate) struct Plot {
    /// Run files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Figure to write: .svg, .pdf or .png; '-' for SVG to stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Kind of figure, see below; default: chosen from the data
    #[arg(long, value_parser = FigureKind::from_str)]
    pub(crate) kind: Option<FigureKind>,
    /// Factor on the x axis; 'run' for the files
    #[arg(long, value_name = "FACTOR")]
    pub(crate) x: Option<String>,
    /// Quantity on the y axis: throughput, iops, latency (p50), p90, p99, p99.9, max, elapsed or cpu
    /// (time per request)
    #[arg(long, value_name = "QUANTITY", value_parser = Response::from_str)]
    pub(crate) y: Option<Response>,
    /// Factor with one line per level; 'none' for no such factor
    #[arg(long, value_name = "FACTOR")]
    pub(crate) series: Option<String>,
    /// Factor with one panel per level
    #[arg(long, value_name = "FACTOR")]
    pub(crate) facet: Option<String>,
    /// Logarithmic x axis
    #[arg(long, conflicts_with = "linear_x")]
    pub(crate) log_x: bool,
    /// Linear x axis
    #[arg(long)]
    pub(crate) linear_x: bool,
    /// Logarithmic y axis
    #[arg(long, conflicts_with = "linear_y")]
    pub(crate) log_y: bool,
    /// Linear y axis
    #[arg(long)]
    pub(crate) linear_y: bool,
    /// Centre of the trials of a cell
    #[arg(long, value_enum, default_value_t = CenterName::Median)]
    pub(crate) center: CenterName,
    /// Bars around the centre
    #[arg(long, value_enum, default_value_t = IntervalName::Ci)]
    pub(crate) interval: IntervalName,
    /// Also draw every trial as a dot
    #[arg(long)]
    pub(crate) points: bool,
    /// Two levels of a factor to compare, for --kind ratio and p-values; optional when only one
    /// factor has two levels
    #[arg(long, value_name = "FACTOR[=LEVEL,LEVEL]")]
    pub(crate) by: Option<String>,
    /// Smallest change that matters, shaded in --kind ratio
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub(crate) margin: f64,
    /// Draw a horizontal line at a value in the unit of the axis (MB/s, requests/s), or at a time:
    /// 510=SATA, 1ms=goal
    #[arg(long, value_name = "VALUE[=NAME]", value_parser = reference)]
    pub(crate) line: Vec<Reference>,
    /// Title above the figure
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Width on paper: 241pt, 85mm, 8.5cm, 3.35in
    #[arg(long, value_name = "LENGTH", default_value = "241pt", value_parser = parse_length)]
    pub(crate) width: f64,
    /// Height on paper; default: from the width
    #[arg(long, value_name = "LENGTH", value_parser = parse_length)]
    pub(crate) height: Option<f64>,
    /// Replace an existing figure
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CenterName {
    /// Median
    Median,
    /// Mean
    Mean,
}

impl From<CenterName> for Center {
    fn from(name: CenterName) -> Self {
        match name {
            CenterName::Median => Center::Median,
            CenterName::Mean => Center::Mean,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IntervalName {
    /// 95 % interval, and the quartiles as a band if there is room
    Ci,
    /// Quartiles
    Iqr,
    /// One standard deviation on each side
    Sd,
    /// No bars
    None,
}

impl From<IntervalName> for Spread {
    fn from(name: IntervalName) -> Self {
        match name {
            IntervalName::Ci => Spread::Interval,
            IntervalName::Iqr => Spread::Quartiles,
            IntervalName::Sd => Spread::Deviation,
            IntervalName::None => Spread::None,
        }
    }
}

/// Reads a line to draw: a value, or a time, and perhaps its name.
fn reference(text: &str) -> Result<Reference, String> {
    let (value, label) = text.split_once('=').unwrap_or((text, ""));
    let number = value.trim().parse::<f64>().ok();
    let time = || {
        parse_duration(value)
            .ok()
            .map(|time| time.as_nanos() as f64)
    };
    number
        .or_else(time)
        .filter(|value| value.is_finite())
        .map(|value| Reference {
            value,
            label: label.trim().to_owned(),
        })
        .ok_or_else(|| "write a number or a time, then = and a name: 510=SATA, 1ms=goal".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) consent: ConsentOption,
}

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
    /// Quantity to compare: p50, p90, p99, p99.9, max, cpu (time per request), throughput, iops or
    /// elapsed; default: the response of the experiment
    #[arg(long, value_name = "METRIC", value_parser = Response::from_str)]
    pub(crate) metric: Option<Response>,
    /// Judge two runs by the spread of their trials, ignoring the spread between runs
    #[arg(long)]
    pub(crate) within_run: bool,
    /// Tests to show p values of; the first one decides
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
    /// Output format
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub(crate) format: CompareFormat,
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
    /// Smallest change that matters, for --strict
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub(crate) margin: f64,
    /// Quantity to judge: p50, p90, p99, p99.9, max, cpu (time per request), throughput, iops or
    /// elapsed; default: the response of the experiment
    #[arg(long, value_name = "METRIC", value_parser = Response::from_str)]
    pub(crate) metric: Option<Response>,
    /// Also use runs of other hosts with the same hardware: for CI runners and containers, whose
    /// names change
    #[arg(long)]
    pub(crate) any_host: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = GateFormat::Text)]
    pub(crate) format: GateFormat,
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
}

#[derive(Debug, Args)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct History {
    /// Folder with run files
    pub(crate) folder: PathBuf,
    /// Quantity to show: p50, p90, p99, p99.9, max, cpu (time per request), throughput, iops or
    /// elapsed; default: the response of each experiment
    #[arg(long, value_name = "METRIC", value_parser = Response::from_str)]
    pub(crate) metric: Option<Response>,
    /// Combine hosts with the same hardware in one line
    #[arg(long)]
    pub(crate) any_host: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = HistoryFormat::Text)]
    pub(crate) format: HistoryFormat,
    /// New file to write instead of stdout
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
    /// The same as Apache Parquet
    Parquet,
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
    /// The Go benchmark format, one line per trial, for benchstat -col run
    Benchstat,
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Text files with one number per line ('-': standard input)
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = StatsFormat::Text)]
    pub(crate) format: StatsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// A summary and a histogram
    Text,
    /// An array with one object per file
    Json,
}

/// Reads a share: `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    parse_share(text).map_err(|error| error.to_string())
}

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct Doctor {
    /// Directory, file or block device
    #[arg(default_value = ".")]
    pub(crate) target: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = DoctorFormat::Text)]
    pub(crate) format: DoctorFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// Findings by topic, each with the command that helps
    Text,
    /// One object
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Run files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// File to write, or a folder for it; default: report.html, report.md or report.tex
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// One page that needs no other file and no network
    Html,
    /// Text, and the figure of each experiment as an SVG file
    Markdown,
    /// An article in two columns, and the figure of each experiment as a PDF file
    Latex,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Run files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_parser = export_formats())]
    pub(crate) format: ExportFormat,
    /// Write latency buckets: one row per bucket of each sample
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Write trials over time: one row per interval of each sample, 100 ms or longer
    #[arg(long, conflicts_with = "histogram")]
    pub(crate) series: bool,
    /// New file to write instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The formats of `iolab export`, each with its line of help.
fn export_formats() -> impl TypedValueParser<Value = ExportFormat> {
    let all = ExportFormat::ALL.iter();
    let values = all.map(|format| PossibleValue::new(format.name()).help(format.words()));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}
