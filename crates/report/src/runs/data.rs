//! Runs against runs, and a gate, as data: the objects of `--format json`, whose cells are the rows of CSV. docs/OUTPUT.md names the
//! parts.

use std::collections::BTreeMap;

use iolab_analysis::gate::Gate;
use iolab_analysis::runs::{Judged, RunName, RunsCell, RunsComparison, ratio};
use iolab_workload::escape_control::escape_control;
use serde::Serialize;

use super::{geometric_mean, known, predicted};
use crate::compare::{Against, Differing};

/// Runs against runs.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OfRuns<'a> {
    #[serde(flatten)]
    compared: Compared<'a>,
    summary: String,
    conclusion: &'static str,
    remarks: Vec<String>,
}

/// A gate.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OfGate<'a> {
    /// Nothing where the earlier runs are too few.
    #[serde(flatten)]
    compared: Option<Compared<'a>>,
    conclusion: &'static str,
    summary: String,
    must_find: Option<f64>,
    detectable_factor: Option<f64>,
    file: &'a str,
    history: usize,
    missing: usize,
    unused: Vec<Unused<'a>>,
    remarks: Vec<String>,
}

/// A run file that is left out.
#[derive(Debug, Clone, Serialize)]
struct Unused<'a> {
    file: &'a str,
    why: String,
}

/// What both have.
#[derive(Debug, Clone, Serialize)]
struct Compared<'a> {
    experiment: &'a str,
    target: &'a str,
    response: String,
    unit: &'static str,
    margin: f64,
    alpha: f64,
    base: Vec<RunData<'a>>,
    new: Vec<RunData<'a>>,
    differences: Vec<Differing<'a>>,
    only_base: &'a [String],
    only_new: &'a [String],
    overall: Option<JudgedData>,
    cells: Vec<Cell<'a>>,
}

/// Which run it is.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunData<'a> {
    run: &'a str,
    file: &'a str,
    host: Option<&'a str>,
    run_started_utc: &'a str,
}

/// A cell with the medians of its runs.
#[derive(Debug, Clone, Serialize)]
struct Cell<'a> {
    #[serde(flatten)]
    row: Row,
    base_medians: &'a [Option<f64>],
    new_medians: &'a [Option<f64>],
    doubts: Vec<Against>,
}

/// A cell.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// `level_FACTOR`: the level of each factor.
    #[serde(flatten)]
    levels: BTreeMap<String, String>,
    base_runs: usize,
    new_runs: usize,
    base_typical: Option<f64>,
    new_typical: Option<f64>,
    predicted_low: Option<f64>,
    predicted_high: Option<f64>,
    #[serde(flatten)]
    judged: JudgedData,
    /// In what the sides differ that disturbs, by the names of exports.
    disturbed: String,
    base_served_by: Option<&'static str>,
    new_served_by: Option<&'static str>,
}

/// What the runs say.
#[derive(Debug, Clone, Serialize)]
struct JudgedData {
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    run_sd_log: Option<f64>,
    df: Option<f64>,
    p: Option<f64>,
    p_adjusted: Option<f64>,
    detectable_factor: Option<f64>,
    verdict: String,
}

impl<'a> OfRuns<'a> {
    pub(super) fn of(compared: &'a RunsComparison) -> Self {
        Self {
            compared: Compared::of(compared),
            summary: super::conclusion(compared),
            conclusion: compared.conclusion().name(),
            remarks: super::remarks(compared),
        }
    }
}

impl<'a> OfGate<'a> {
    pub(super) fn of(gate: &'a Gate) -> Self {
        let sight = gate.sight().map(|sight| sight.worst);
        let unused = gate.unused.iter().map(|(file, why)| Unused {
            file,
            why: why.to_string(),
        });
        Self {
            compared: gate.compared.as_ref().map(Compared::of),
            conclusion: gate.conclusion().name(),
            summary: super::gate_summary(gate),
            must_find: gate.must_find,
            detectable_factor: sight.filter(|worst| worst.is_finite()),
            file: &gate.file,
            history: gate.history,
            missing: gate.missing().unwrap_or(0),
            unused: unused.collect(),
            remarks: super::gate_remarks(gate),
        }
    }
}

impl<'a> Compared<'a> {
    fn of(compared: &'a RunsComparison) -> Self {
        let cells = compared.cells.iter().map(|cell| Cell {
            row: Row::of(compared, cell),
            base_medians: &cell.base,
            new_medians: &cell.new,
            doubts: cell.judged.doubts.iter().map(Against::of).collect(),
        });
        Self {
            experiment: &compared.experiment,
            target: &compared.target,
            response: compared.response.to_string(),
            unit: compared.response.unit(),
            margin: compared.terms.margin,
            alpha: compared.terms.alpha,
            base: compared.base.iter().map(RunData::of).collect(),
            new: compared.new.iter().map(RunData::of).collect(),
            differences: compared.differences.iter().map(Differing::of).collect(),
            only_base: &compared.only_base,
            only_new: &compared.only_new,
            overall: compared.overall.as_ref().map(JudgedData::of),
            cells: cells.collect(),
        }
    }
}

impl<'a> RunData<'a> {
    pub(crate) fn of(run: &'a RunName) -> Self {
        Self {
            run: &run.id,
            file: &run.file,
            host: run.host.as_deref(),
            run_started_utc: &run.started_utc,
        }
    }
}

impl Row {
    pub(super) fn of(compared: &RunsComparison, cell: &RunsCell) -> Self {
        let levels = compared.factors.iter().zip(&cell.levels);
        let predicted = predicted(cell);
        let disturbed: Vec<&str> = cell.against.imbalances().map(|d| d.what.name()).collect();
        let served = cell.served;
        Self {
            levels: levels
                .map(|(factor, level)| {
                    let name = format!("level_{}", escape_control(factor));
                    (name, escape_control(level).into_owned())
                })
                .collect(),
            base_runs: known(&cell.base),
            new_runs: known(&cell.new),
            base_typical: geometric_mean(&cell.base),
            new_typical: geometric_mean(&cell.new),
            predicted_low: predicted.map(|(low, _)| low),
            predicted_high: predicted.map(|(_, high)| high),
            judged: JudgedData::of(&cell.judged),
            disturbed: disturbed.join(", "),
            base_served_by: served.map(|(base, _)| base.name()),
            new_served_by: served.map(|(_, new)| new.name()),
        }
    }
}

impl JudgedData {
    fn of(judged: &Judged) -> Self {
        let contrast = judged.contrast;
        Self {
            ratio: contrast.as_ref().map(ratio),
            ratio_low: judged.interval.map(|(low, _)| low),
            ratio_high: judged.interval.map(|(_, high)| high),
            run_sd_log: contrast.map(|c| c.sd),
            df: contrast.map(|c| c.df),
            p: judged.p,
            p_adjusted: judged.p_adjusted,
            detectable_factor: judged.detectable.map(|share| 1.0 + share),
            verdict: judged.verdict.to_string(),
        }
    }
}
