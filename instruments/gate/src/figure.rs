//! An experiment over time: the median of each cell in each run, and where the level shifts.

use iolab_figure::model::{
    Along, Axis, FigureModel, Look, Mark, Origin, Panel, ReferenceLine as Reference, Series, Ticks,
};
use iolab_figure::{Figure, Options, Scale, axis_of_quantity, labels};
use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};

use crate::line::{ExperimentLine, RunPoint, Trajectory};

/// Most cells with separate lines; with more, only all of them together have a line.
const CELLS_MAX: usize = 8;
/// Most dates along the axis.
const DATES_MAX: usize = 4;

/// Draws a line of runs. Several cells are each relative to the median of their runs.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when no run has a value.
pub(crate) fn figure(line: &ExperimentLine, options: &Options) -> Result<Figure> {
    let relative = line.cells.len() > 1;
    let shown: Vec<&Trajectory> = match &line.overall {
        Some(overall) if line.cells.len() > CELLS_MAX => vec![overall],
        _ => line.cells.iter().take(CELLS_MAX).collect(),
    };
    let series: Vec<Series> = shown
        .iter()
        .enumerate()
        .filter_map(|(place, trajectory)| series(line, trajectory, place, relative))
        .collect();
    let values: Vec<f64> = series
        .iter()
        .flat_map(|series| series.points.iter().map(|point| point.y))
        .collect();
    if values.is_empty() {
        return Err(Error::usage("no run of the line has a value")
            .hint("choose another quantity with --metric"));
    }
    let mut y = axis_of_quantity(line.response, &values, false, options);
    if relative {
        y = Axis {
            label: format!(
                "{} / median of the runs",
                labels::capital(&labels::of_response(line.response))
            ),
            scale: Scale::linear(values.iter().copied(), false),
            ticks: Ticks::Number,
        };
    }
    let mut panel = Panel::new(dates(line), y);
    panel.free_x = true;
    let held_against = |along, at| Reference {
        along,
        at,
        label: String::new(),
    };
    let shifts = line.shifted_at().into_iter();
    let shifts = shifts.map(|at| held_against(Along::Y, at as f64 + 0.5));
    let level = relative.then(|| held_against(Along::X, 1.0));
    panel.lines.extend(level.into_iter().chain(shifts));
    panel.series = series;
    let shifts = match line.shifted_at().len() {
        0 => String::new(),
        _ => " Upright lines: shifts of a level.".to_owned(),
    };
    let model = FigureModel {
        description: format!(
            "{}: {}, median of each run in the order of time",
            escape_control(&line.experiment),
            labels::of_response(line.response)
        ),
        unit: if relative { "" } else { line.response.unit() }.to_owned(),
        note: format!("Each mark is the median of one run.{shifts}"),
        ..FigureModel::of(vec![panel])
    };
    Figure::of(model, options)
}

fn series(
    line: &ExperimentLine,
    trajectory: &Trajectory,
    place: usize,
    relative: bool,
) -> Option<Series> {
    let medians: Vec<f64> = trajectory
        .points
        .iter()
        .flatten()
        .map(|p| p.median)
        .collect();
    let centre = if relative {
        iolab_stats::median(&medians)?
    } else {
        1.0
    };
    let name = match trajectory.levels.is_empty() {
        true if relative => "all cells".to_owned(),
        _ => escape_control(&line.label(trajectory)).into_owned(),
    };
    let point = |(run, point): (usize, &Option<RunPoint>)| {
        let point = point.as_ref()?;
        let start = line.runs.get(run).map_or("", |run| &run.started_utc);
        Some(Mark {
            x: (run + 1) as f64,
            y: point.median / centre,
            interval: point
                .interval
                .filter(|_| !relative)
                .map(|(low, high)| (low / centre, high / centre)),
            origin: Origin {
                cell: None,
                n: Some(point.trials),
                verdict: String::new(),
                x: escape_control(start).into_owned(),
                text: match trajectory.levels.is_empty() && relative {
                    true => format!("{}, {name}: x{:.3}", escape_control(start), point.median),
                    false => format!(
                        "{}, {name}: {}",
                        escape_control(start),
                        line.response.format(point.median)
                    ),
                },
            },
            ..Mark::default()
        })
    };
    let points: Vec<Mark> = trajectory
        .points
        .iter()
        .enumerate()
        .filter_map(point)
        .collect();
    (!points.is_empty()).then(|| {
        Series::of_points(
            if relative { name } else { String::new() },
            place,
            Look::Line,
            points,
        )
    })
}

/// An axis of the runs side by side, with the dates of some of them.
fn dates(line: &ExperimentLine) -> Axis {
    let runs = line.runs.len();
    let step = runs.div_ceil(DATES_MAX).max(1);
    let start = |run: usize| line.runs.get(run).map_or("", |run| &run.started_utc);
    let day = |run: usize| start(run).get(..10).unwrap_or(start(run));
    // Runs of one day differ only in the time of day.
    let last = runs.saturating_sub(1);
    let one_day = runs > 1 && day(0) == day(last);
    let name = |run: usize| {
        let time = start(run).get(11..19).filter(|_| one_day);
        escape_control(time.unwrap_or(day(run))).into_owned()
    };
    let names = (0..runs).step_by(step);
    Axis {
        label: match one_day {
            true => format!("Run of {}, in the order of time", escape_control(day(0))),
            false => "Run, in the order of time".to_owned(),
        },
        scale: Scale::Linear {
            low: 0.5,
            high: runs as f64 + 0.5,
        },
        ticks: Ticks::Named(names.map(|run| ((run + 1) as f64, name(run))).collect()),
    }
}
