//! `iolab history`: experiments over time.

use std::io::Write;

use iolab_analysis::history::History;
use iolab_analysis::runs::comparable_runs::Comparability;
use iolab_figure::Options;
use iolab_report::history as report;
use iolab_report::rows::Format;
use iolab_workload::{Error, Result};

use crate::arguments::{self, HistoryFormat};
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_command::run_files::{filed, runs_of_folder};

/// Writes the lines of a folder to stdout or to a new file.
pub(crate) fn history(options: &arguments::History) -> Outcome {
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
    // Before the file is created, so that an error leaves no file.
    let figure = match format {
        HistoryFormat::Svg => Some(only_line(&history)?),
        _ => None,
    };
    let mut to = output::open(options.output.as_deref())?;
    match format {
        HistoryFormat::Text => text(&history, &mut to)?,
        HistoryFormat::Html => to.write_all(report::html(&history)?.as_bytes())?,
        HistoryFormat::Svg => to.write_all(figure.unwrap_or_default().as_bytes())?,
        HistoryFormat::Json => report::json(&history, &mut to)?,
        HistoryFormat::Csv => report::rows(&history, Format::Csv, &mut to)?,
    }
    Ok(to.flush()?)
}

/// The figure of the only line.
fn only_line(history: &History) -> Result<String> {
    match history.lines.as_slice() {
        [line] => Ok(report::figure(line, &Options::default())?.svg()),
        lines => Err(
            Error::usage(format!("the folder holds {} lines of runs", lines.len()))
                .hint("draw all of them on a page: --format html"),
        ),
    }
}

fn text(history: &History, to: &mut dyn Write) -> Outcome {
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
