//! `iolab history`: experiments over time.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use iolab_analysis::runs::comparable_runs::Comparability;
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_command::run_files::{filed, runs_of_folder};
use iolab_report::rows::Format;
use iolab_workload::response::Metric;
use iolab_workload::{Error, Result};

use crate::figure::figure;
use crate::line::History;
use crate::line_text as report;

const HISTORY_HELP: &str = "\
Runs form one line when they have the same experiment, settings, budget, machine and \
target. A level shift is a lasting change of the median of a cell, or of all cells \
together, that the spread between runs does not explain; at most 5 % of unchanged lines \
show one. Changes of the environment between two runs are listed with their date.";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct Options {
    /// Folder with run files
    pub(crate) folder: PathBuf,
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str,
        help = Metric::help("to show", "; default: the response of each experiment"))]
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

/// Writes the lines of a folder to stdout or to a new file.
pub(crate) fn history(options: &Options) -> Outcome {
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
