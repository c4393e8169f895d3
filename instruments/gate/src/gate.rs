//! `iolab gate`: compares a new run with the last ones.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use iolab_analysis::runs::FiledRun;
use iolab_analysis::runs::comparable_runs::Comparability;
use iolab_command::failure::{Outcome, conclude};
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_command::run_files::{filed, read_run_by, runs_of_folder};
use iolab_record::RunRecord;
use iolab_report::block;
use iolab_workload::response::Metric;
use iolab_workload::units::parse_share;

use crate::judgement::{Gate, GateTerms};
use crate::judgement_text as text;

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
pub(crate) struct Options {
    /// The new run file
    pub(crate) new: PathBuf,
    /// Folder with the run files of earlier runs
    #[arg(long, value_name = "FOLDER")]
    pub(crate) history: PathBuf,
    /// Use at most the last N earlier runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    pub(crate) last: u32,
    /// Require that a change of this size would have been found in each cell (with a
    /// probability of 90 %); otherwise exit code 5
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) must_find: Option<f64>,
    #[arg(long, value_name = "METRIC", value_parser = Metric::from_str,
        help = Metric::help("to judge", "; default: the response of the experiment"))]
    pub(crate) metric: Option<Metric>,
    /// Also use runs of other hosts with the same hardware: for CI runners and containers, whose
    /// names change
    #[arg(long)]
    pub(crate) any_host: bool,
    /// File to write; the extension chooses the format (.json, .md, .prom, .txt); default: standard output
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
    /// A Markdown table
    Markdown,
    /// The conclusion in the text format of Prometheus
    Prometheus,
}

/// Writes the result of the gate to stdout or to a new file; returns pass or fail as the outcome.
pub(crate) fn gate(options: &Options) -> Outcome {
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
