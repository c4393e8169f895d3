//! Every trial in the order of time, so that drift, throttling and groups show.

use std::collections::HashMap;

use iolab_analysis::analysis::Response;
use iolab_workload::settings::cell_label;
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::data::{Values, measured, nothing_measured, verdict};
use super::super::labels;
use super::super::model::{Axis, FigureModel, Look, Mark, Origin, Panel, Series, Ticks};
use super::super::options::Options;
use super::super::scale::Scale;
use iolab_workload::escape_control::escape_control;

/// Most cells that get a colour of their own.
const CELLS_MAX: usize = 12;
/// Number of trials up to which each has a tick, as the beginning has.
const FEW_TRIALS: usize = 4;
/// Most runs: each has a panel.
const RUNS_MAX: usize = 12;

/// Makes the model: the value of each trial over the median of its cell where there are several cells, so that all can
/// be compared.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when there is no trial.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = super::quantity(runs, options);
    if runs.len() > RUNS_MAX {
        return Err(
            Error::usage(format!("{} runs are too many for a figure", runs.len()))
                .hint("name fewer run files"),
        );
    }
    let mut panels = Vec::new();
    let mut hollow = Vec::new();
    for run in runs {
        let mut panel = Panel::new(trials_axis(0), trials_axis(0));
        if runs.len() > 1 {
            panel.title = escape_control(run.name).into_owned();
        }
        panel.series = series(run, quantity, options.y.is_none());
        hollow.extend(run.analysis().cells.iter().filter(|cell| cell.n > 0));
        panels.push(panel);
    }
    let points = || {
        panels
            .iter()
            .flat_map(|panel| &panel.series)
            .flat_map(|s| &s.points)
    };
    if points().next().is_none() {
        return Err(nothing_measured(runs));
    }
    let relative = runs.iter().any(|run| run.analysis().cells.len() > 1);
    let values: Vec<f64> = points().map(|point| point.y).collect();
    let most = points().map(|point| point.x).fold(1.0, f64::max);
    let noun = super::measured(runs, quantity);
    let y = y_axis((quantity, &noun), &values, relative, options);
    for panel in &mut panels {
        panel.x = trials_axis(most as usize);
        panel.y = y.clone();
        if relative {
            panel.lines.push(super::line_across(1.0, ""));
        }
    }
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
        hollow: super::hollow(hollow.into_iter()),
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

fn trials_axis(most: usize) -> Axis {
    Axis {
        label: "Trial, in the order of time".to_owned(),
        scale: Scale::linear([0.0, most as f64].into_iter(), true),
        // Round values between a few numbers would be fractions of a trial.
        ticks: match most {
            1..=FEW_TRIALS => Ticks::Levels((0..=most).map(|trial| trial as f64).collect()),
            _ => Ticks::Number,
        },
    }
}

fn y_axis(
    (quantity, noun): (Response, &str),
    values: &[f64],
    relative: bool,
    options: &Options,
) -> Axis {
    if !relative {
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        // A drift of a few percent would not show on an axis from zero.
        let from_zero = least < most / 2.0;
        return super::axis::named((quantity, noun), values, from_zero, options);
    }
    let is_log = options
        .log_y
        .unwrap_or_else(|| values.iter().any(|v| *v > 10.0));
    Axis {
        label: format!("{} / median of its cell", labels::capital(noun)),
        scale: if is_log {
            Scale::log(values.iter().copied())
        } else {
            Scale::linear(values.iter().copied(), false)
        },
        ticks: Ticks::Ratio,
    }
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
        let point = Mark {
            x: (i + 1) as f64,
            y: value / median,
            interval: None,
            hollow: !cells[at].is_target(),
            origin: Origin {
                cell: Some(sample.cell),
                n: None,
                verdict: verdict(&cells[at]),
                x: (i + 1).to_string(),
                text: format!("trial {}, {name}: {}", i + 1, quantity.format(value)),
            },
        };
        match series.iter_mut().find(|series| series.place == place) {
            Some(series) => series.points.push(point),
            None => series.push(Series::of_points(
                if relative && apart {
                    name.into_owned()
                } else {
                    String::new()
                },
                place,
                Look::Dots,
                vec![point],
            )),
        }
    }
    series.sort_by_key(|series| series.place);
    series
}
