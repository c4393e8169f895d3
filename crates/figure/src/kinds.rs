//! One file per kind of figure: what becomes of the data.

mod annotate;
mod axis;
pub(super) mod compare;
pub(super) mod course;
pub(super) mod heat;
pub(super) mod history;
pub(super) mod latency;
pub(super) mod load;
pub(super) mod order;
pub(super) mod response;

use iolab_analysis::analysis::{CellAnalysis, Response};

use super::Run;
use super::data::{Data, Row, verdict};
use super::model::{Along, Line};
use super::options::Options;
use super::words;
use iolab_spec::plain::plain;

/// What is shown: as asked, else the response of the first run.
fn quantity(runs: &[Run<'_>], options: &Options) -> Response {
    let response = || runs.first().map(|run| run.analysis().response);
    options.y.or_else(response).unwrap_or(Response::Throughput)
}

/// The title of a panel: the levels of the facets.
fn panel_title(data: &Data<'_>, facets: &[usize], key: &[&str]) -> String {
    let levels = facets.iter().zip(key);
    let named: Vec<String> = levels
        .filter(|(_, level)| !level.is_empty())
        .map(|(factor, level)| words::level(data.factors[*factor], level))
        .collect();
    named.join(", ")
}

/// What heads a legend: the factor, where its levels do not say it themselves.
fn legend(data: &Data<'_>, factor: usize) -> String {
    match data.factors[factor] {
        "bs" | "region" | "buffer_init" | "cache" | "content" | "pattern" => {
            words::noun(data.factors[factor])
        }
        _ => String::new(),
    }
}

/// What a hollow mark means; empty where all cells were served by the device.
fn hollow<'a>(cells: impl Iterator<Item = &'a CellAnalysis>) -> String {
    let mut verdicts: Vec<String> = Vec::new();
    for cell in cells.filter(|cell| !cell.is_target()) {
        let verdict = verdict(cell);
        if !verdicts.contains(&verdict) {
            verdicts.push(verdict);
        }
    }
    match verdicts.as_slice() {
        [] => String::new(),
        [only] => format!("not served by the device: {only}"),
        _ => "not, or not only, served by the device".to_owned(),
    }
}

/// A cell in words: `64 KiB, 4 threads`.
fn cell_name(row: &Row<'_>) -> String {
    let levels: Vec<&str> = row
        .levels
        .iter()
        .copied()
        .filter(|level| !level.is_empty())
        .collect();
    if levels.is_empty() {
        "all trials".to_owned()
    } else {
        levels.join(", ")
    }
}

/// What a figure is about: `read-size: throughput`.
fn subject(runs: &[Run<'_>], quantity: Response) -> String {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.analysis().experiment.as_str()) {
            names.push(&run.analysis().experiment);
        }
    }
    format!("{}: {}", names.join(", "), words::of_response(quantity))
}

/// Which models have computed the runs; `None` where only devices were measured.
pub(super) fn computed(runs: &[Run<'_>]) -> Option<String> {
    let mut models: Vec<&str> = Vec::new();
    for analysis in runs.iter().map(Run::analysis) {
        if analysis.model.is_some() && !models.contains(&&*analysis.target) {
            models.push(&analysis.target);
        }
    }
    let names = plain(&models.join(", ")).into_owned();
    (!models.is_empty()).then(|| format!("Computed by {names}"))
}

/// A line across a panel.
fn line_across(at: f64, label: &str) -> Line {
    Line {
        along: Along::X,
        at,
        label: plain(label).into_owned(),
    }
}
