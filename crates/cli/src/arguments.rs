//! The arguments and options of all commands, as clap parses them. Nothing here does work.

mod comparing;
#[cfg(feature = "measure")]
mod measuring;
mod models;
mod plotting;
#[cfg(feature = "measure")]
mod witnessing;

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Command, ValueEnum};
use iolab_command::lists::Lists;
use iolab_workload::response::Metric;

pub(crate) use self::comparing::{BetterName, Compare, CompareFormat, TestName};
#[cfg(feature = "measure")]
pub(crate) use self::measuring::{
    Changes, ConsentOption, Fit, Import, ProgramsOption, Resume, Run, Study, Why,
};
#[cfg(feature = "measure")]
pub(crate) use self::models::Serve;
pub(crate) use self::models::{Model, ModelAction, ModelFormat};
pub(crate) use self::plotting::Plot;
#[cfg(feature = "measure")]
pub(crate) use self::witnessing::Witness;

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
Exit codes: 0 done, or yes; 1 a measurement failed; 2 wrong usage; 3 refused for \
safety; 4 slower (compare, gate, time) or no (fit, --slo); 5 cannot tell; 130 interrupted."
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

#[cfg(feature = "measure")]
const DOCTOR_HELP: &str = "\
Each finding is 'fine', 'worth knowing' (it affects results) or 'must fix' (results \
would be wrong or mislabelled). doctor tries direct I/O and the backends: in a directory \
with a small scratch file, on files and devices by reading only. The exit code is 0 \
for any findings, unless the target cannot be used. For scripts:

  iolab doctor --format json | jq -e '.must_fix == 0'";

/// The command line of these commands.
pub(crate) fn program(lists: &Lists) -> Command {
    let commands = lists.commands.iter();
    let documents = lists.documents.iter();
    let documents =
        documents.map(|document| PossibleValue::new(document.name).help(document.command));
    let documents = PossibleValuesParser::new(documents);
    let formats = lists.formats.iter();
    let formats = formats.map(|format| PossibleValue::new(format.name).help(format.words));
    let formats = PossibleValuesParser::new(formats);
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
            match command.name() {
                "schema" => command
                    .arguments()
                    .mut_arg("output", |output| output.value_parser(documents.clone())),
                // Of all arguments, which keeps their order.
                "export" => command.arguments().mut_args(|argument| match argument.get_id() == "format" {
                    true => argument.value_parser(formats.clone()),
                    false => argument,
                }),
                _ => command.arguments(),
            }
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
    #[arg(long, value_enum, default_value_t = ShowFormat::Toml)]
    pub(crate) format: ShowFormat,
    /// Let a job file of fio include files outside of its folder
    #[arg(long)]
    pub(crate) allow_include: bool,
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
    /// Run files, or a folder of them
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Quantity to show: p50, p90, p99, p99.9, p99.99, p99.999, max, cpu (time per request), throughput, iops or
    /// elapsed; of a group: reader.p99; default: the response of each experiment
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str)]
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

#[cfg(feature = "measure")]
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

#[cfg(feature = "measure")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// Findings by topic, each with the command that helps
    Text,
    /// One object
    Json,
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
    /// One row per service level that a run was asked about (iolab fit, iolab run --slo), with the answer
    #[arg(long, conflicts_with_all = ["histogram", "series", "ranks"])]
    pub(crate) answers: bool,
    /// Add the start of its run to each value; prometheus only. The textfile collector refuses time stamps
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// Replace an existing file atomically, but only a file of gauges; prometheus only
    #[arg(long)]
    pub(crate) force: bool,
    /// New file to write instead of stdout: .csv, .json, .jsonl, .prom, or with --format another
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
