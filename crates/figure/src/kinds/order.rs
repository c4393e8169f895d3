//! Every trial in the order of time, so that drift, throttling and groups show.

use std::collections::HashMap;

use iolab_analysis::analysis::Response;
use iolab_workload::Result;
use iolab_workload::settings::cell_label;

use super::super::FigureRun;
use super::super::data::{Values, measured, nothing_measured};
use super::super::labels;
use super::super::model::{Axis, FigureModel, Look, Series, all_marks};
use super::super::options::Options;
use super::axis;
use iolab_workload::escape_control::escape_control;

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
    let values: Vec<f64> = all_marks(&panels).map(|point| point.y).collect();
    let most = all_marks(&panels).map(|point| point.x).fold(1.0, f64::max);
    let noun = super::measured(runs, quantity);
    let y = y_axis((quantity, &noun), &values, relative, options);
    for panel in &mut panels {
        panel.x = axis::counts("Trial, in the order of time", most);
        panel.y = y.clone();
        if relative {
            panel.lines.push(super::line_across(1.0, ""));
        }
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
        return axis::named((quantity, noun), values, from_zero, options);
    }
    let label = format!("{} / median of its cell", labels::capital(noun));
    axis::of_ratio(label, values, values, options)
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
