//! Rounds on the way to a steady state, with the tracked series over them.

use iolab_analysis::analysis::{SteadyAnalysis, Tracked, TrackedOf};
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::cell_label;
use iolab_workload::units::{format_percent, significant};
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::data::verdict;
use super::super::model::{FigureModel, Look, Mark, Origin, Series, all_marks};
use super::super::options::Options;
use super::axis;

/// Most lines: each has a colour of its own.
const TRACKED_MAX: usize = 12;

/// Makes the model: a line for each tracked cell or target, over its mean in the last window.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) where no run has rounds, or several runs are too many.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let steady = || runs.iter().filter_map(|run| run.analysis().steady.as_ref());
    let of_run = |run: &FigureRun<'_>| {
        let steady = run.analysis().steady.as_ref()?;
        let tracked = shown(steady).into_iter().enumerate();
        let own = tracked.filter_map(|(place, one)| series(run, steady, one, place));
        Some(own.collect())
    };
    let mut panels = super::panels_of_runs(runs, of_run)?;
    let values: Vec<f64> = all_marks(&panels).map(|point| point.y).collect();
    let most = all_marks(&panels).map(|point| point.x).fold(0.0, f64::max);
    if values.is_empty() {
        return Err(Error::usage("there are no rounds to draw").hint(
            "repeat rounds until they are steady: --precondition steady:round=cells, or iolab run pts-iops",
        ));
    }
    let limits = steady().flat_map(|steady| {
        let half = steady.asked.range / 2.0;
        [1.0 - half, 1.0 + half]
    });
    let shown: Vec<f64> = values.iter().copied().chain(limits).collect();
    let label = "Value / mean of the last window".to_owned();
    let y = axis::of_ratio(label, &values, &shown, options);
    for (panel, steady) in panels.iter_mut().zip(steady()) {
        panel.x = axis::counts("Round", most);
        panel.y = y.clone();
        let half = steady.asked.range / 2.0;
        let text = format_percent(half);
        panel.lines = vec![
            super::line_across(1.0, ""),
            super::line_across(1.0 + half, &format!("+{text}")),
            super::line_across(1.0 - half, &format!("-{text}")),
        ];
    }
    Ok(FigureModel {
        description: match runs {
            [only] => format!(
                "{}: tracked values, round by round",
                escape_control(&only.analysis().experiment)
            ),
            _ => "Tracked values, round by round".to_owned(),
        },
        note: note(runs),
        ..FigureModel::of(panels)
    })
}

/// Series that are drawn of a run: the least steady if there is no room for all.
fn shown(steady: &SteadyAnalysis) -> Vec<&Tracked> {
    let mut all: Vec<&Tracked> = steady.tracked.iter().collect();
    if all.len() > TRACKED_MAX {
        all.sort_by(|a, b| b.by_unsteadiness(a));
        all.truncate(TRACKED_MAX);
    }
    all
}

fn note(runs: &[FigureRun<'_>]) -> String {
    let steady = || runs.iter().filter_map(|run| run.analysis().steady.as_ref());
    let mut ranges: Vec<String> = steady()
        .map(|steady| format!("\u{b1}{}", format_percent(steady.asked.range / 2.0)))
        .collect();
    ranges.dedup();
    let lines = match ranges.as_slice() {
        [range] => format!("{range} of that mean"),
        _ => "half of the range that is allowed, on each side of that mean".to_owned(),
    };
    let (all, drawn) = steady().fold((0, 0), |(all, drawn), steady| {
        (all + steady.tracked.len(), drawn + shown(steady).len())
    });
    let hidden = match drawn < all {
        true => format!(" {drawn} of {all} shown, the least steady ones."),
        false => String::new(),
    };
    format!("Tracked cells over the mean of their last window; lines: {lines}.{hidden}")
}

/// The line of a tracked series; `None` without a value.
fn series(
    run: &FigureRun<'_>,
    steady: &SteadyAnalysis,
    tracked: &Tracked,
    place: usize,
) -> Option<Series> {
    let mean = tracked.window_mean(&steady.asked)?;
    let analysis = run.analysis();
    let (cell, name) = match &tracked.of {
        TrackedOf::Cell(id) => (
            analysis.cell(*id),
            cell_label(&analysis.factors, analysis.levels_of(*id)),
        ),
        TrackedOf::Target(target) => (
            None,
            target.clone().unwrap_or_else(|| "random writes".to_owned()),
        ),
    };
    let name = escape_control(&name).into_owned();
    let point = |(round, value): (usize, &f64)| Mark {
        x: round as f64,
        y: value / mean,
        interval: None,
        hollow: cell.is_some_and(|cell| !cell.is_target()),
        origin: Origin {
            cell: cell.map(|cell| cell.cell.id),
            n: None,
            verdict: cell.map(verdict).unwrap_or_default(),
            x: round.to_string(),
            text: format!(
                "round {round}, {name}: {} times the mean",
                significant(value / mean)
            ),
        },
    };
    let points: Vec<Mark> = (1..).zip(&tracked.values).map(point).collect();
    Some(Series::of_points(
        match steady.tracked.len() {
            1 => String::new(),
            _ => name.clone(),
        },
        place,
        Look::Line,
        points,
    ))
}
