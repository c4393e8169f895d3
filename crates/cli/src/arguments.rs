//! The arguments and options of all commands, as clap parses them. Nothing here does work.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Command, ValueEnum};
use iolab_command::Lists;
use iolab_figure::{Center, FigureKind, parse_length};
use iolab_report::layout::paragraph;
use iolab_workload::response::Metric;
use iolab_workload::units::parse_share;

/// Help about the width of text.
macro_rules! text_width {
    () => {
        "\
Text is as wide as the terminal, else 100 columns; COLUMNS=80 sets the width (40 to \
220). Columns of tables that do not fit are hidden. NO_COLOR turns off colours, TERM=dumb also the live view.
"
    };
}

#[cfg(feature = "measure")]
const EXAMPLES: &str = concat!(
    "\
Examples:
  iolab study                     the numbers of this disk, in 40 seconds
  iolab study /mnt/disk --suite quick
                                  all micro-benchmarks on another disk, in two minutes
  iolab run read-random --bs 4k,64k,1M --depth 32
                                  one question, with your own settings
  iolab run load-latency --slo 'p99<1ms'
                                  the highest rate with 99 % below 1 ms
  iolab fit etcd /mnt/disk        good enough for etcd: yes, no, cannot tell
  iolab report iolab-results/*.iolab -o report.html
                                  one page: findings, tables, evidence, data
  iolab compare --base a*.iolab --new b*.iolab
                                  several runs of each side, cell by cell
  iolab time './old x' './new x'  which command is faster, and is that more than noise
  iolab witness -- dd if=data of=/dev/null bs=1M
                                  the evidence for any program

TARGET is a directory, a file or a block device; the current directory by default. \
In a directory iolab makes a scratch file and removes it at the end; iolab study writes \
at most 4 GiB, and --dry-run says what others write. Files and devices are only read \
unless --destroy-data is given. model:NAME is a simulated disk: it reads and writes nothing.

Sizes are binary: 4k, 4K and 4KiB are 4096 bytes. Throughput is decimal: MB/s is 10^6 \
bytes per second. A time without a unit is in seconds.

",
    text_width!(),
    "
Exit codes: 0 done, or yes; 1 a measurement failed, or a scratch file is left; 2 wrong \
usage; 3 refused for safety; 4 slower (compare, gate, time) or no (fit, --slo); 5 cannot \
tell; 130 interrupted."
);

#[cfg(not(feature = "measure"))]
const EXAMPLES: &str = concat!(
    "\
This build only reads results. The commands study, run, fit, why, doctor, witness, serve, \
resume and import are in the build for Linux.

Examples:
  iolab table iolab-results/*.iolab
                                  the tables and findings of run files
  iolab plot FILE -o figure.pdf   the figure of a run, for a paper
  iolab report iolab-results/*.iolab -o report.html
                                  one page: findings, tables, evidence, data
  iolab export FILE --format csv  one row per sample, for pandas, R or DuckDB
  iolab compare --base a*.iolab --new b*.iolab
                                  several runs of each side, cell by cell

",
    text_width!(),
    "
Exit codes: 0 done, or yes; 1 the output cannot be written; 2 wrong usage; 3 refused for \
safety; 4 slower (compare, gate); 5 cannot tell."
);

const COMPLETIONS_HELP: &str = "\
Examples:
  iolab completions bash > ~/.local/share/bash-completion/completions/iolab
  iolab completions zsh > DIR/_iolab  # DIR: a directory in $fpath
  iolab completions fish > ~/.config/fish/completions/iolab.fish";

const SHOW_HELP: &str = "\
Examples:
  iolab show read-random > mine.toml      an experiment, to copy and change
  iolab show FILE.iolab > again.toml      the experiment of a run; the first line
                                          has its seed
  iolab run again.toml TARGET --seed 7    the same run again";

/// The command line of these commands.
pub(crate) fn program(lists: &Lists) -> Command {
    let commands = lists.commands.iter();
    let value = |(name, words): (&'static str, &'static str)| PossibleValue::new(name).help(words);
    let documents = lists.documents.iter().map(|one| (one.name, one.command));
    let documents = PossibleValuesParser::new(documents.map(value));
    let formats = lists.formats.iter().map(|one| (one.name, one.words));
    let formats = PossibleValuesParser::new(formats.map(value));
    let definitions = lists.definitions.iter().map(|one| (one.name, one.words));
    let toml = ("toml", "The definition, to copy and change");
    let definitions = PossibleValuesParser::new([toml].into_iter().chain(definitions).map(value));
    Command::new("iolab")
        .version(env!("CARGO_PKG_VERSION"))
        .about(
            "A laboratory for storage I/O: measures how storage behaves, repeats until the result is precise, and shows where \
             every byte came from",
        )
        .after_help(EXAMPLES)
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(commands.map(|command| {
            // Not by its name later, which would put it after the others.
            let (name, values) = match command.name() {
                "schema" => ("output", &documents),
                "export" => ("format", &formats),
                "show" => ("format", &definitions),
                _ => return command.arguments(),
            };
            // A visit to all arguments keeps their order.
            let arguments = command.arguments();
            arguments.mut_args(|argument| match argument.get_id() == name {
                true => argument.value_parser(values.clone()),
                false => argument,
            })
        }))
}

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct Completions {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Document to describe
    pub(crate) output: String,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List the settings that most experiments need, with their defaults
    #[arg(long)]
    pub(crate) settings: bool,
    /// List every setting
    #[arg(long, requires = "settings")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct Show {
    /// Name of an experiment, suite or requirement, a TOML file, a job file of fio (NAME.fio), or a
    /// run file, whose experiment is printed ('iolab table' prints its results)
    pub(crate) name: String,
    /// Output format
    #[arg(long, default_value = "toml")]
    pub(crate) format: String,
    /// Let a job file of fio include files outside of its folder
    #[arg(long)]
    pub(crate) allow_include: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Table {
    /// Run files, or a folder of them
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str,
        help = Metric::help("to show", "; default: the response of each experiment"))]
    pub(crate) metric: Option<Metric>,
    /// File to write; the extension chooses the format (.csv, .json, .md, .tex, .txt); default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Output format; default: by the extension of -o, else text
    #[arg(long, value_enum)]
    pub(crate) format: Option<TableFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// A table, a chart and the findings
    Text,
    /// One row per cell
    Csv,
    /// One object: the cells, and what they show (iolab schema table describes it)
    Json,
    /// A Markdown table
    Markdown,
    /// A LaTeX tabular
    Latex,
}

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// Run files, or a folder of them
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Call a target of the runs by a name: /mnt/a=WD-Red
    #[arg(long = "name", value_name = "TARGET=NAME")]
    pub(crate) names: Vec<String>,
    /// File to write (.html, .md or .tex), or a folder for it; default: report.html
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Output format; default: by the extension of FILE, else html
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// One page that needs no other file and no network
    Html,
    /// Text, and the figure of each experiment as an SVG file
    Markdown,
    /// An article in two columns, and the figure of each experiment as a PDF file
    Latex,
    /// Plain text for a terminal, without figures
    Text,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Run files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format; default: by the extension of FILE
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// Write latency buckets: one row per bucket of each sample
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Write trials over time: one row per interval of each sample, 100 ms or longer
    #[arg(long, conflicts_with = "histogram")]
    pub(crate) series: bool,
    /// One row per trial and rank, of runs by several processes
    #[arg(long, conflicts_with_all = ["histogram", "series"])]
    pub(crate) ranks: bool,
    /// Replace an existing file atomically, but only a file of gauges; prometheus only
    #[arg(long)]
    pub(crate) force: bool,
    /// New file to write instead of stdout: .csv, .json, .jsonl, .prom, or with --format another
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

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
          conflicts_with_all = ["base", "new", "by", "test", "within_run"])]
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
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str,
        help = Metric::help("to compare", "; default: the response of the experiment"))]
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
    /// File to write; the extension chooses the format (.json, .md, .txt); default: standard output
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
pub(crate) enum CompareFormat {
    /// A table and its findings
    Text,
    /// Everything at full precision, with the raw values
    Json,
    /// A Markdown table
    Markdown,
}

const PLOT_HELP_END: &str = "\
Hollow marks: not all bytes came from the device. Options that a kind does not use are refused. The width is the width on paper: \
241pt is a column of many journals. The same files and options give the same bytes.";

/// Columns of the list of kinds: lines that clap does not break on a terminal.
const KINDS_WIDTH: u16 = 80;

/// The kinds of figures, and what holds for all of them.
fn plot_help() -> String {
    let kinds = FigureKind::ALL.iter();
    let lines = kinds.map(|kind| paragraph(kind.words(), &format!("  {kind:<12} "), KINDS_WIDTH));
    format!("Kinds:\n{}\n{PLOT_HELP_END}", lines.collect::<String>())
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
    #[arg(long, value_name = "QUANTITY", value_parser = Metric::from_str,
        help = Metric::help("on the y axis", ""))]
    pub(crate) y: Option<Metric>,
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
    /// Centre and bar of the trials of a cell: median or mean with a 95 % interval, quartiles, or sd (mean and standard deviation)
    #[arg(long, value_parser = Center::from_str, default_value = "median")]
    pub(crate) center: Center,
    /// Also draw every trial as a dot
    #[arg(long)]
    pub(crate) points: bool,
    /// Two levels of a factor to compare, for --kind ratio and p-values; optional when only one
    /// factor has two levels
    #[arg(long, value_name = "FACTOR[=LEVEL,LEVEL]")]
    pub(crate) by: Option<String>,
    /// Smallest change that matters, shaded in --kind ratio
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share)]
    pub(crate) margin: f64,
    /// Title above the figure
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Width on paper: 241pt, 85mm, 8.5cm, 3.35in
    #[arg(long, value_name = "LENGTH", default_value = "241pt", value_parser = parse_length)]
    pub(crate) width: f64,
    /// Height on paper; default: from the width
    #[arg(long, value_name = "LENGTH", value_parser = parse_length)]
    pub(crate) height: Option<f64>,
    /// Replace an existing figure, and nothing else
    #[arg(long)]
    pub(crate) force: bool,
}
