//! `iolab gate`: compares a new run with the last ones.

use std::io::Write;

use iolab_analysis::gate::{Gate, GateTerms};
use iolab_analysis::runs::comparable_runs::Comparability;
use iolab_analysis::runs::{FiledRun, HISTORY_MIN, ReportedChanges, RunCriteria};
use iolab_record::RunRecord;
use iolab_report::{compare, gate as report, prometheus};

use crate::arguments::{self, GateFormat};
use crate::command::compare::conclude;
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_command::run_files::{filed, read_run_by, runs_of_folder};

/// Writes the result of the gate to stdout or to a new file; returns pass or fail as the outcome.
pub(crate) fn gate(options: &arguments::Gate) -> Outcome {
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(GateFormat::Text),
        &[
            (GateFormat::Text, &["txt"]),
            (GateFormat::Json, &["json"]),
            (GateFormat::Csv, &["csv"]),
            (GateFormat::Markdown, &["md", "markdown"]),
            (GateFormat::Prometheus, &["prom", "txt"]),
        ],
    )?;
    let run = read_run_by(&options.new, options.metric.as_ref())?;
    let file = options.new.display().to_string();
    let earlier = runs_of_folder(&options.history, options.metric.as_ref())?;
    let terms = GateTerms {
        runs: RunCriteria {
            margin: options.margin,
            looks_for: match options.strict {
                true => ReportedChanges::AnyChangeOrEquivalence,
                false => ReportedChanges::AnyChange,
            },
            base_min: HISTORY_MIN,
        },
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
        GateFormat::Json => report::json(gate, &mut to)?,
        GateFormat::Prometheus => prometheus::gate(gate, record, &mut to)?,
        GateFormat::Csv => match &gate.compared {
            Some(compared) => compare::csv(compared, &mut to)?,
            None => {}
        },
        GateFormat::Markdown => write!(to, "{}", report::markdown(gate))?,
        GateFormat::Text => {
            let style = output::style();
            writeln!(to, "{}", report::text(gate, style.width))?;
            output::paragraphs(&report::remarks(gate), style, &mut to)?;
        }
    }
    Ok(to.flush()?)
}
