//! Trials in the order of time, and rounds on the way to a steady state.

use std::collections::HashMap;

use super::super::data::{Values, measured, nothing_measured};
use super::super::model::{FigureModel, Look, Series, all_marks};
use super::super::options::Options;
use super::super::{FigureRun, labels};
use super::axis;
use crate::data::verdict;
use crate::model::{Mark, Origin};
use iolab_analysis::analysis::{Response, SteadyAnalysis, Tracked, TrackedOf};
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::cell_label;
use iolab_workload::units::{format_percent, significant};
use iolab_workload::{Error, Result};

/// Most cells that get a colour of their own.
const CELLS_MAX: usize = 12;

/// Makes the model: the value of each trial over the median of its cell where there are several cells, so that all can
/// be compared.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when there is no trial.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = super::quantity(runs, options);
    let of_run = |run: &FigureRun<'_>| Some(series(run, quantity, options.y.is_none()));
    let mut panels = super::panels_of_runs(runs, of_run)?;
    if all_marks(&panels).next().is_none() {
        return Err(nothing_measured(runs));
    }
    let relative = runs.iter().any(|run| run.analysis().cells.len() > 1);
    let noun = super::measured(runs, quantity);
    let values = super::values(&panels);
    let y = if relative {
        let label = format!("{} / median of its cell", labels::capital(&noun));
        axis::of_ratio(label, &values, &values, options)
    } else {
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        // A drift of a few percent would not show on an axis from zero.
        axis::named(
            (quantity, &noun),
            &values,
            least < most / 2.0,
            options.log_y,
        )
    };
    let x = axis::counts("Trial, in the order of time", super::most_x(&panels));
    super::set_axes(&mut panels, &x, &y);
    for panel in panels.iter_mut().filter(|_| relative) {
        panel.lines.push(super::line_across(1.0, ""));
    }
    let cells = runs.iter().flat_map(|run| &run.analysis().cells);
    let coloured = panels.iter().all(|panel| panel.series.len() > 1);
    Ok(FigureModel {
        description: format!(
            "{}, every trial in the order of time",
            super::subject(runs, quantity)
        ),
        unit: if relative {
            String::new()
        } else {
            quantity.unit().to_owned()
        },
        hollow: super::hollow(cells.filter(|cell| cell.n > 0)),
        note: match (relative, coloured) {
            (true, false) => "Each trial over the median of its cell.".to_owned(),
            (true, true) => {
                "Each trial over the median of its cell, in the colour of its cell.".to_owned()
            }
            _ => String::new(),
        },
        ..FigureModel::of(panels)
    })
}

/// The trials of a run: a series per cell if there are few, otherwise one for all.
fn series(run: &FigureRun<'_>, quantity: Response, is_response: bool) -> Vec<Series> {
    let cells = &run.analysis().cells;
    let relative = cells.len() > 1;
    let apart = cells.len() <= CELLS_MAX;
    let all = Values::of(run, quantity);
    let medians: Vec<Option<f64>> = cells
        .iter()
        .map(|cell| match (relative, is_response) {
            (false, _) => Some(1.0),
            (true, true) => cell.response.map(|r| r.median),
            (true, false) => iolab_stats::median(all.of_cell(cell.cell.id)),
        })
        .collect();
    let places = cells.iter().zip(0..).map(|(cell, at)| (cell.cell.id, at));
    let places: HashMap<i64, usize> = places.collect();
    let mut series: Vec<Series> = Vec::new();
    for (i, sample) in measured(run).enumerate() {
        let Some(at) = places.get(&sample.cell).copied() else {
            continue;
        };
        let (Some(value), Some(median)) =
            (sample.value(quantity, run.analysis().timed), medians[at])
        else {
            continue;
        };
        let name = cell_label(&run.analysis().factors, &cells[at].cell.levels);
        let name = escape_control(&name);
        let place = if apart { at } else { 0 };
        let number = (i + 1).to_string();
        let text = format!("trial {number}, {name}: {}", quantity.format(value));
        let point = ((i + 1) as f64, value / median);
        let point = super::mark(&cells[at], None, point, number, &text);
        let name = match relative && apart {
            true => name.into_owned(),
            false => String::new(),
        };
        super::add_mark(&mut series, (place, name), Look::Dots, point);
    }
    series.sort_by_key(|series| series.place);
    series
}

/// Most lines: each has a colour of its own.
const TRACKED_MAX: usize = 12;

/// Makes the model: a line for each tracked cell or target, over its mean in the last window.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) where no run has rounds, or several runs are too many.
pub(crate) fn model_of_rounds(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let steady = || runs.iter().filter_map(|run| run.analysis().steady.as_ref());
    let of_run = |run: &FigureRun<'_>| {
        let steady = run.analysis().steady.as_ref()?;
        let tracked = shown(steady).into_iter().enumerate();
        let own = tracked.filter_map(|(place, one)| series_of_rounds(run, steady, one, place));
        Some(own.collect())
    };
    let mut panels = super::panels_of_runs(runs, of_run)?;
    let values = super::values(&panels);
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
    let x = axis::counts("Round", super::most_x(&panels));
    super::set_axes(&mut panels, &x, &y);
    for (panel, steady) in panels.iter_mut().zip(steady()) {
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
fn series_of_rounds(
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
        ..Mark::default()
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
