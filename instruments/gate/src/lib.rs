//! iolab-gate: compares a new run with earlier ones, and shows experiments over time.
//!
//! Files to begin with: `judgement.rs` for the conclusion of a gate, `line.rs` for runs over time, `lib.rs` for the commands.

pub mod judgement;
pub mod line;
pub mod line_text;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use iolab_analysis::runs::FiledRun;
use iolab_analysis::runs::comparable_runs::Comparability;
use iolab_command::failure::{Outcome, conclude};
use iolab_command::output_format::format_of;
use iolab_command::run_files::{filed, read_run_by, runs_of_folder};
use iolab_command::{Command, Lists, output};
use iolab_record::RunRecord;
use iolab_report::block;
use iolab_report::compare::CompareDocument;
use iolab_report::document::Document;
use iolab_report::report::SequenceFigure;
use iolab_report::rows::Format;
use iolab_workload::response::Metric;
use iolab_workload::units::parse_share;
use iolab_workload::{Error, Result};

use judgement as text;
use judgement::{Gate, GateTerms};
use line::History;
use line_text as report;
use line_text::figure;

/// The rows of this instrument.
pub fn lists() -> Lists {
    Lists {
        commands: vec![
            Command::new(
                "gate",
                "Judge a new run by earlier runs of the same experiment; exit code for CI",
                |options, _| gate(options),
            ),
            Command::new(
                "history",
                "Show experiments over time: level shifts, and what changed between runs",
                |options, _| history(options),
            ),
        ],
        documents: vec![Document::of::<CompareDocument<Gate>>(
            "gate", "iolab gate --format json",
        )],
        sequence_figures: vec![SequenceFigure {
            name: "over-time",
            draw: |runs, options| figure(&line::ExperimentLine::of(runs)?, options),
        }],
        ..Lists::default()
    }
}

const GATE_HELP: &str = "\
Earlier runs are the finished runs in FOLDER that began before NEW and have the same \
experiment, settings, budget, machine and target. At least 5 are needed.

Verdicts: slower (the alarm) or faster when the median of a cell, or of all cells \
together, is outside the range that the earlier runs predict for one new run (false \
alarm rate: 5 % over all cells); cannot tell, with the doubt that could reverse the result (other \
traffic, page cache, suspended, rate not held); otherwise no change shown. The output names the change that the gate would have found \
with a probability of 90 %.

Exit codes: 4 alarm; otherwise 5 when there are too few earlier runs, a cell is missing \
in NEW, or a cell cannot be judged; otherwise 0.";

#[derive(Debug, Args)]
#[command(after_help = GATE_HELP)]
struct Options {
    /// The new run file
    new: PathBuf,
    /// Folder with the run files of earlier runs
    #[arg(long, value_name = "FOLDER")]
    history: PathBuf,
    /// Use at most the last N earlier runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    last: u32,
    /// Require that a change of this size would have been found in each cell (with a
    /// probability of 90 %); otherwise exit code 5
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    must_find: Option<f64>,
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str,
        help = Metric::help("to judge", "; default: the response of the experiment"))]
    metric: Option<Metric>,
    /// Also use runs of other hosts with the same hardware: for CI runners and containers, whose
    /// names change
    #[arg(long)]
    any_host: bool,
    /// File to write; the extension chooses the format (.json, .md, .prom, .txt); default: standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format; default: by the extension of -o, else text
    #[arg(long, value_enum)]
    format: Option<GateFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GateFormat {
    /// A table and its findings
    Text,
    /// Everything at full precision, with the median of each run
    Json,
    /// A Markdown table
    Markdown,
    /// The conclusion in the text format of Prometheus
    Prometheus,
}

/// Writes the result of the gate to stdout or to a new file; returns pass or fail as the outcome.
fn gate(options: &Options) -> Outcome {
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(GateFormat::Text),
        &[
            (GateFormat::Text, &["txt"]),
            (GateFormat::Json, &["json"]),
            (GateFormat::Markdown, &["md", "markdown"]),
            (GateFormat::Prometheus, &["prom", "txt"]),
        ],
    )?;
    let run = read_run_by(&options.new, options.metric.as_ref())?;
    let file = options.new.display().to_string();
    let earlier = runs_of_folder(&options.history, options.metric.as_ref())?;
    let terms = GateTerms {
        kinship: Comparability {
            any_host: options.any_host,
        },
        last: options.last as usize,
        must_find: options.must_find,
    };
    let new = FiledRun {
        file: &file,
        run: &run,
    };
    let gate = Gate::of(new, &filed(&earlier), &terms)?;
    let to = output::open(options.output.as_deref())?;
    let written = write(&gate, run.record(), format, to);
    conclude(written, gate.conclusion())
}

fn write(gate: &Gate, record: &RunRecord, format: GateFormat, mut to: Box<dyn Write>) -> Outcome {
    match format {
        GateFormat::Json => text::json(gate, &mut to)?,
        GateFormat::Prometheus => text::gauges(gate, record, &mut to)?,
        GateFormat::Markdown => write!(to, "{}", block::parts_in_markdown(&text::blocks(gate)))?,
        GateFormat::Text => {
            let text = block::in_text(&text::blocks(gate), output::style().width);
            write!(to, "{text}")?;
        }
    }
    Ok(to.flush()?)
}

const HISTORY_HELP: &str = "\
Runs form one line when they have the same experiment, settings, budget, machine and \
target. A level shift is a lasting change of the median of a cell, or of all cells \
together, that the spread between runs does not explain; at most 5 % of unchanged lines \
show one. Changes of the environment between two runs are listed with their date.";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_HELP)]
struct HistoryOptions {
    /// Folder with run files
    folder: PathBuf,
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str,
        help = Metric::help("to show", "; default: the response of each experiment"))]
    metric: Option<Metric>,
    /// Combine hosts with the same hardware in one line
    #[arg(long)]
    any_host: bool,
    /// Output format; default: by the extension of FILE, else text
    #[arg(long, value_enum)]
    format: Option<HistoryFormat>,
    /// New file to write instead of stdout: .txt, .html, .svg, .json or .csv
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HistoryFormat {
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

/// Writes the lines of a folder to stdout or to a new file.
fn history(options: &HistoryOptions) -> Outcome {
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(HistoryFormat::Text),
        &[
            (HistoryFormat::Text, &["txt"]),
            (HistoryFormat::Html, &["html", "htm"]),
            (HistoryFormat::Svg, &["svg"]),
            (HistoryFormat::Json, &["json"]),
            (HistoryFormat::Csv, &["csv"]),
        ],
    )?;
    let runs = runs_of_folder(&options.folder, options.metric.as_ref())?;
    let kinship = Comparability {
        any_host: options.any_host,
    };
    let history = History::of(&filed(&runs), kinship)?;
    if history.lines.is_empty() {
        return Err(
            Error::usage(format!("no finished run in {}", options.folder.display()))
                .hint("keep run files there: iolab run EXPERIMENT -o FOLDER/NAME.iolab")
                .into(),
        );
    }
    // Drawn before the file is created, so that an error leaves no file.
    let only = match format {
        HistoryFormat::Svg => Some(only_line(&history)?),
        _ => None,
    };
    let mut to = output::open(options.output.as_deref())?;
    match format {
        HistoryFormat::Text => write_text(&history, &mut to)?,
        HistoryFormat::Html => to.write_all(report::html(&history).as_bytes())?,
        HistoryFormat::Svg => to.write_all(only.unwrap_or_default().as_bytes())?,
        HistoryFormat::Json => report::json(&history, &mut to)?,
        HistoryFormat::Csv => report::rows(&history, Format::Csv, &mut to)?,
    }
    Ok(to.flush()?)
}

/// The figure of the only line.
fn only_line(history: &History) -> Result<String> {
    match history.lines.as_slice() {
        [line] => Ok(figure(line, &iolab_figure::Options::default())?.svg()),
        lines => Err(
            Error::usage(format!("the folder holds {} lines of runs", lines.len()))
                .hint("draw all of them on a page: --format html"),
        ),
    }
}

fn write_text(history: &History, to: &mut dyn Write) -> Outcome {
    let style = output::style();
    for (place, line) in history.lines.iter().enumerate() {
        if place > 0 {
            writeln!(to)?;
        }
        writeln!(to, "{}", report::text(line, style.width, style.ascii))?;
        output::paragraphs(&report::remarks(line), style, to)?;
    }
    if let Some(left_out) = report::left_out(history) {
        writeln!(to)?;
        output::paragraphs(&[left_out], style, to)?;
    }
    Ok(())
}
