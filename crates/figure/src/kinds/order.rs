//! Trials in the order of time, and rounds on the way to a steady state.

use super::super::data::{hollow, measured, nothing_measured};
use super::super::model::{self, FigureModel, Look, Panel, ReferenceLine, Row, reach};
use super::super::options::Options;
use super::super::{FigureRun, labels};
use super::{axis, most_x};
use iolab_analysis::analysis::{
    Analysis, CellAnalysis, Response, SteadyAnalysis, Tracked, TrackedOf,
};
use iolab_record::Sample;
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
    let named = runs.iter().zip(super::panels_of_runs(runs)?);
    let rows = named.flat_map(|(run, panel)| trials(run, panel, quantity, options.y.is_none()));
    let rows: Vec<Row> = rows.collect();
    let values = reach(&rows);
    if values.is_empty() {
        return Err(nothing_measured(runs));
    }
    let relative = runs.iter().any(|run| run.analysis().cells.len() > 1);
    let noun = super::measured(runs, quantity);
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
    let x = axis::counts("Trial, in the order of time", most_x(&rows));
    let lines = relative.then(|| super::line_across(1.0, ""));
    let like = Panel {
        lines: lines.into_iter().collect(),
        ..Panel::new(x, y, Look::Dots(1))
    };
    let panels = model::panels(rows, &like);
    let cells = runs.iter().flat_map(|run| &run.analysis().cells);
    let coloured = panels.iter().all(|panel| panel.series.len() > 1);
    Ok(FigureModel {
        description: format!(
            "{}, every trial in the order of time",
            super::subject(runs, quantity)
        ),
        unit: match relative {
            true => String::new(),
            false => quantity.unit().to_owned(),
        },
        hollow: hollow(cells.filter(|cell| cell.n > 0)),
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
fn trials(
    run: &FigureRun<'_>,
    panel: (usize, String),
    quantity: Response,
    is_response: bool,
) -> Vec<Row> {
    let cells = &run.analysis().cells;
    let relative = cells.len() > 1;
    let apart = relative && cells.len() <= CELLS_MAX;
    let median = |cell: &CellAnalysis| match (relative, is_response) {
        (false, _) => Some(1.0),
        (true, true) => cell.response.map(|response| response.median),
        (true, false) => cell.median(quantity),
    };
    let numbered = (1..).zip(measured(run));
    let row = |(number, sample): (usize, &Sample)| {
        let at = cells.iter().position(|cell| cell.cell.id == sample.cell)?;
        let value = sample.value(quantity, run.analysis().timed)?;
        let name = cell_label(&run.analysis().factors, &cells[at].cell.levels);
        let name = escape_control(&name).into_owned();
        let text = format!("trial {number}, {name}: {}", quantity.format(value));
        let point = (number as f64, value / median(&cells[at])?);
        let mark = super::mark(&cells[at], None, point, number.to_string(), &text);
        let series = match apart {
            true => (at, name),
            false => (0, String::new()),
        };
        Some(Row::new(panel.clone(), series, vec![mark]))
    };
    // The panel is there even without a trial.
    let mut rows = vec![Row::new(panel.clone(), Default::default(), Vec::new())];
    rows.extend(numbered.filter_map(row));
    rows
}

/// Most lines: each has a colour of its own.
const TRACKED_MAX: usize = 12;

/// Makes the model: a line for each tracked cell or target, over its mean in the last window.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) where no run has rounds, or several runs are too many.
pub(crate) fn model_of_rounds(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let named = runs.iter().zip(super::panels_of_runs(runs)?);
    let all = named.filter_map(|(run, panel)| {
        let steady = run.analysis().steady.as_ref()?;
        let half = steady.asked.range / 2.0;
        let text = format_percent(half);
        let lines = vec![
            super::line_across(1.0, ""),
            super::line_across(1.0 + half, &format!("+{text}")),
            super::line_across(1.0 - half, &format!("-{text}")),
        ];
        Some((lines, rounds(run.analysis(), panel, steady)))
    });
    let all: Vec<(Vec<ReferenceLine>, Vec<Row>)> = all.collect();
    let values: Vec<f64> = all.iter().flat_map(|(_, rows)| reach(rows)).collect();
    if values.is_empty() {
        return Err(Error::usage("there are no rounds to draw").hint(
            "repeat rounds until they are steady: --precondition steady:round=cells, or iolab run pts-iops",
        ));
    }
    let lines = all.iter().flat_map(|(lines, _)| lines);
    let limits = lines.map(|line| line.at);
    let shown: Vec<f64> = values.iter().copied().chain(limits).collect();
    let label = "Value / mean of the last window".to_owned();
    let y = axis::of_ratio(label, &values, &shown, options);
    let most = all.iter().map(|(_, rows)| most_x(rows)).fold(0.0, f64::max);
    let x = axis::counts("Round", most);
    let mut panels = Vec::new();
    for (lines, rows) in all {
        let like = Panel {
            lines,
            ..Panel::new(x.clone(), y.clone(), Look::Line)
        };
        panels.extend(model::panels(rows, &like));
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

/// The values of the series that are shown of a run, each over its mean.
fn rounds(analysis: &Analysis, panel: (usize, String), steady: &SteadyAnalysis) -> Vec<Row> {
    let mut rows = vec![Row::new(panel.clone(), Default::default(), Vec::new())];
    for (place, tracked) in shown(steady).into_iter().enumerate() {
        let Some(mean) = tracked.window_mean(&steady.asked) else {
            continue;
        };
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
        let point = |(round, value): (usize, &f64)| {
            let times = value / mean;
            let text = format!(
                "round {round}, {name}: {} times the mean",
                significant(times)
            );
            super::mark(cell, None, (round as f64, times), round.to_string(), &text)
        };
        let marks = (1..).zip(&tracked.values).map(point).collect();
        let series = match steady.tracked.len() {
            1 => (place, String::new()),
            _ => (place, name),
        };
        rows.push(Row::new(panel.clone(), series, marks));
    }
    rows
}
