//! Runs against runs, and what a gate says, as data: the objects of `--format json`, whose cells are the rows of CSV.

use iolab_analysis::doubt::SideDoubt;
use iolab_analysis::gate::Gate;
use iolab_analysis::runs::{Judged, RunName, RunsCell, RunsComparison, ratio};
use iolab_figure::result_names;
use schemars::JsonSchema;
use serde::Serialize;

use super::{conclusion, gate_remarks, gate_summary, geometric_mean, predicted, remarks};
use crate::compare::Differing;
use crate::document_header::{IOLAB_VERSION, Levels, SCHEMA};
use crate::exclusion::excluded;
use crate::ratio_data::Ratio;

/// What `iolab compare --base FILE... --new FILE... --format json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunsDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The answer in one line.
    summary: String,
    /// `settled` (exit code 0), `slower` (4), `cannot tell` (5).
    conclusion: &'static str,
    /// Conclusions, in sentences.
    remarks: Vec<String>,
    #[serde(flatten)]
    compared: Compared<'a>,
}

/// What `iolab gate --format json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GateDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The verdict and the change that would have been found, in one line.
    summary: String,
    /// `settled` (exit code 0), `slower` (4), `cannot tell` (5).
    conclusion: &'static str,
    /// The new run file.
    file: &'a str,
    /// Earlier runs that it is held against.
    history: usize,
    /// Earlier runs that are missing for a verdict.
    missing: usize,
    /// The change that was asked for with `--must-find`, a share; `null` without.
    must_find: Option<f64>,
    /// The change that would have been found in every cell with a chance of 90 %, a factor; `null` where that is not known.
    detectable_factor: Option<f64>,
    /// Run files that are left out.
    unused: Vec<Unused<'a>>,
    /// Conclusions, in sentences.
    remarks: Vec<String>,
    /// With too few earlier runs none of these.
    #[serde(flatten)]
    compared: Option<Compared<'a>>,
}

/// A run file that is left out.
#[derive(Serialize, JsonSchema)]
struct Unused<'a> {
    /// The file.
    file: &'a str,
    /// Why the run is left out.
    why: String,
}

/// Runs of a base, and new ones.
#[derive(Serialize, JsonSchema)]
struct Compared<'a> {
    /// Experiment of the last new run.
    experiment: &'a str,
    /// Target of the last new run.
    target: &'a str,
    /// Quantity that all runs measured.
    response: String,
    /// Its unit: `MB/s`, `IOPS` or `ns`.
    unit: &'static str,
    /// The smallest change that matters to `compare` and `--strict`, a share.
    margin: f64,
    /// The family-wise level, a share.
    alpha: f64,
    /// Runs of the base.
    base: Vec<RunData<'a>>,
    /// New runs.
    new: Vec<RunData<'a>>,
    /// Targets of the runs of the base, each once.
    base_targets: &'a [String],
    /// Targets of the new runs, each once.
    new_targets: &'a [String],
    /// In what the last run of the base and the first new one differ.
    differences: Vec<Differing<'a>>,
    /// Cells that the new runs lack, in words.
    only_base: &'a [String],
    /// Cells that the base lacks, in words.
    only_new: &'a [String],
    /// Cells, in words, that are not compared, because neither side makes requests there that are asked about.
    without_requests: &'a [String],
    /// All undisturbed cells together; `null` for fewer than two cells.
    overall: Option<JudgedData>,
    /// The cells that both have.
    cells: Vec<Cell<'a>>,
}

/// A run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub(crate) struct RunData<'a> {
    /// The run: 16 hexadecimal digits, the same in every copy of its file.
    run: &'a str,
    /// Its file, as it was named.
    file: &'a str,
    /// The host that planned it, where that is known.
    host: Option<&'a str>,
    /// When it began: RFC 3339, UTC.
    run_started_utc: &'a str,
}

/// A cell with the medians of its runs.
#[derive(Serialize, JsonSchema)]
struct Cell<'a> {
    #[serde(flatten)]
    row: RunsRow,
    /// Median of each run of the base in their order, in `unit`; `null` where a run has none.
    base_medians: &'a [Option<f64>],
    /// Median of each new run in their order, in `unit`; `null` where a run has none.
    new_medians: &'a [Option<f64>],
    /// What in the evidence could turn the verdict round.
    doubts: &'a [SideDoubt],
}

/// A cell with every figure.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunsRow {
    #[serde(flatten)]
    levels: Levels,
    /// Runs of the base that have a median of the cell.
    base_runs: usize,
    /// New runs that have a median of the cell.
    new_runs: usize,
    /// Geometric mean of the medians of the base, in `unit`.
    base_typical: Option<f64>,
    /// Geometric mean of the medians of the new runs, in `unit`.
    new_typical: Option<f64>,
    /// Low end of where the base predicts one new run to lie, in `unit`.
    predicted_low: Option<f64>,
    /// High end of where the base predicts one new run to lie, in `unit`.
    predicted_high: Option<f64>,
    #[serde(flatten)]
    judged: JudgedData,
    /// In what the sides differ that disturbs, separated by `, `: `steal`, `cpu_stall`, `worker_wait`, `memory_stall`, `other_traffic`,
    /// `cpu_quota_wait`, `device_ios_per_request`, `buffer_pieces_per_request`.
    disturbed: String,
    /// Where the bytes of the base came from.
    base_served_by: Option<String>,
    /// Where the bytes of the new runs came from.
    new_served_by: Option<String>,
}

/// What the spread between runs says of a ratio.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Judged")]
struct JudgedData {
    /// `new_typical` over `base_typical`; `null` with fewer than three runs.
    #[serde(flatten)]
    ratio: Ratio,
    /// Standard deviation from run to run, of logarithms.
    run_sd_log: Option<f64>,
    /// Its degrees of freedom.
    df: Option<f64>,
    /// p of the ratio, two-sided.
    p: Option<f64>,
    /// `p` adjusted for the comparisons of all cells and of all cells together (weighted Bonferroni).
    p_adjusted: Option<f64>,
    /// The change that would have been found with a chance of 90 %, a factor.
    detectable_factor: Option<f64>,
    /// `slower`, `faster`, `equivalent`, `no change shown`, or `cannot tell`, with the reason in brackets: `(wide interval)`,
    /// `(few runs)`, `(no value)`, `(other source)`, `(suspended)`, `(disturbed)`, `(rate not held)`, `(time limit)`, `(coarse clock)`.
    verdict: String,
}

impl<'a> RunsDocument<'a> {
    pub(super) fn of(compared: &'a RunsComparison) -> Self {
        Self {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            summary: conclusion(compared),
            conclusion: compared.conclusion().name(),
            remarks: remarks(compared),
            compared: Compared::of(compared),
        }
    }
}

impl<'a> GateDocument<'a> {
    pub(super) fn of(gate: &'a Gate) -> Self {
        let unused = gate.unused.iter().map(|(file, why)| Unused {
            file,
            why: excluded(why),
        });
        let sight = gate.detectable_changes().map(|sight| sight.worst);
        Self {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            summary: gate_summary(gate),
            conclusion: gate.conclusion().name(),
            file: &gate.file,
            history: gate.history,
            missing: gate.missing().unwrap_or(0),
            must_find: gate.must_find,
            detectable_factor: sight.filter(|worst| worst.is_finite()),
            unused: unused.collect(),
            remarks: gate_remarks(gate),
            compared: gate.compared.as_ref().map(Compared::of),
        }
    }
}

impl<'a> Compared<'a> {
    fn of(compared: &'a RunsComparison) -> Self {
        let cells = compared.cells.iter().map(|cell| Cell {
            row: RunsRow::of(compared, cell),
            base_medians: &cell.base,
            new_medians: &cell.new,
            doubts: &cell.judged.doubts,
        });
        Self {
            experiment: &compared.experiment,
            target: &compared.target,
            response: compared.response.to_string(),
            unit: compared.response.unit(),
            margin: compared.terms.margin,
            alpha: compared.terms.alpha,
            base: run_objects(&compared.base),
            new: run_objects(&compared.new),
            base_targets: &compared.base_targets,
            new_targets: &compared.new_targets,
            differences: compared.differences.iter().map(Differing::of).collect(),
            only_base: &compared.only_base,
            only_new: &compared.only_new,
            without_requests: &compared.without_requests,
            overall: compared.overall.as_ref().map(JudgedData::of),
            cells: cells.collect(),
        }
    }
}

/// Which runs they are.
pub(crate) fn run_objects(runs: &[RunName]) -> Vec<RunData<'_>> {
    let each = runs.iter().map(|run| RunData {
        run: &run.id,
        file: &run.file,
        host: run.host.as_deref(),
        run_started_utc: &run.started_utc,
    });
    each.collect()
}

impl RunsRow {
    pub(super) fn of(compared: &RunsComparison, cell: &RunsCell) -> Self {
        let known = |side: &[Option<f64>]| side.iter().flatten().count();
        let predicted = predicted(cell);
        let disturbed: Vec<&str> = cell.against.imbalances().map(|d| d.what.name()).collect();
        Self {
            levels: Levels::of(&compared.factors, &cell.levels),
            base_runs: known(&cell.base),
            new_runs: known(&cell.new),
            base_typical: geometric_mean(&cell.base),
            new_typical: geometric_mean(&cell.new),
            predicted_low: predicted.map(|(low, _)| low),
            predicted_high: predicted.map(|(_, high)| high),
            judged: JudgedData::of(&cell.judged),
            disturbed: disturbed.join(", "),
            base_served_by: cell.served.map(|(base, _)| base.to_string()),
            new_served_by: cell.served.map(|(_, new)| new.to_string()),
        }
    }
}

impl JudgedData {
    fn of(judged: &Judged) -> Self {
        let contrast = judged.contrast.as_ref();
        Self {
            ratio: Ratio::new(contrast.map(ratio), judged.interval, judged.bound),
            run_sd_log: contrast.map(|c| c.sd),
            df: contrast.map(|c| c.df),
            p: judged.p,
            p_adjusted: judged.p_adjusted,
            detectable_factor: judged.detectable.map(|share| 1.0 + share),
            verdict: result_names::verdict(judged.verdict).into_owned(),
        }
    }
}
