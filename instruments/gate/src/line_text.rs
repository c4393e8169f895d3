//! Experiments over time as text, page, figure, rows and JSON.

use std::io::{self, Write};

use iolab_analysis::trial_values::distinct;
use iolab_figure::model::{
    Axis, FigureModel, Look, Mark, Panel, ReferenceLine, Row, Ticks, marks_of, panels,
};
use iolab_figure::{Figure, Options, Scale, axis_of_quantity, labels};
use iolab_report::block::{Block, Item, Picture, Table};
use iolab_report::compare::{day, factor};
use iolab_report::data_column::{level_column, run_columns, run_values};
use iolab_report::layout::{Column, none};
use iolab_report::rows::{Format, RowWriter, text as text_value};
use iolab_report::table::bare;
use iolab_report::{block, fact, layout};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, format_percent};
use iolab_workload::{Error, Result};
use serde_json::Value;

use crate::judgement::excluded;
use crate::line::{Change, ExperimentLine, History, RunPoint, Shift, Trajectory};

/// Most runs in the sparkline of the table: the last ones.
const COURSE_MAX: usize = 40;

/// Heading and table of a line, for a terminal of `width` columns.
pub(crate) fn text(line: &ExperimentLine, width: u16, ascii: bool) -> String {
    let heading = layout::wrapped(&heading(line), width);
    format!("{heading}\n{}", layout::text(columns(line, ascii), width))
}

/// Heading of the line: experiment, host, target and time.
fn heading(line: &ExperimentLine) -> String {
    let (first, last) = (line.runs.first(), line.runs.last());
    let host = last
        .and_then(|run| run.host.as_ref())
        .map_or_else(String::new, |host| {
            format!(", host {}", escape_control(host))
        });
    let when = first.zip(last).map_or_else(String::new, |(first, last)| {
        let (first, last) = (day(&first.started_utc), day(&last.started_utc));
        match first == last {
            true => format!(" of {first}"),
            false => format!(" from {first} to {last}"),
        }
    });
    let runs = counted(line.runs.len() as u64, "run");
    format!(
        "{} on {}{host}: {}, median of each run, {runs}{when}",
        escape_control(&line.experiment),
        escape_control(&line.target),
        line.response
    )
}

fn columns(line: &ExperimentLine, ascii: bool) -> Vec<Column> {
    let column = |heading: &str, dispensable, value: &dyn Fn(&Trajectory) -> String| {
        Column::new(heading, dispensable, line.cells.iter().map(value))
    };
    let levels = line.cells.iter().map(|cell| cell.levels.as_slice());
    let mut columns = layout::level_columns(&line.factors, levels);
    let medians = |trajectory: &Trajectory| -> Vec<f64> {
        trajectory
            .points
            .iter()
            .flatten()
            .map(|point| point.median)
            .collect()
    };
    let show = |value: Option<f64>| value.map_or_else(none, |value| bare(line.response, value));
    columns.extend([
        column("runs", 2, &|c| medians(c).len().to_string()),
        column("typical", 0, &|c| show(iolab_stats::median(&medians(c)))),
        column("last", 0, &|c| show(medians(c).last().copied())),
        column("run SD", 1, &|c| {
            c.sd.map_or_else(none, |sd| format_percent(sd.exp_m1()))
        }),
        column("shifts", 1, &|c| c.shifts.len().to_string()),
    ]);
    if !ascii {
        columns.push(column("course", 3, &sparkline).left());
    }
    columns
}

/// The last runs as small bars between the lowest and the highest median.
fn sparkline(trajectory: &Trajectory) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = || trajectory.points.iter().flatten().map(|point| point.median);
    let least = known().fold(f64::INFINITY, f64::min);
    let most = known().fold(0.0, f64::max);
    let first = trajectory.points.len().saturating_sub(COURSE_MAX);
    let bar = |point: &Option<_>| {
        let Some(RunPoint { median, .. }) = point else {
            return ' ';
        };
        let share = if most > least {
            (median - least) / (most - least)
        } else {
            0.5
        };
        BARS[((share * 8.0) as usize).min(7)]
    };
    trajectory.points[first..].iter().map(bar).collect()
}

/// Conclusions from a line, in sentences: shifts, and changes of the environment.
pub(crate) fn remarks(line: &ExperimentLine) -> Vec<String> {
    let mut all: Vec<String> = line
        .shifted_at()
        .into_iter()
        .map(|at| shifted(line, at))
        .collect();
    if all.is_empty() {
        let known = |cell: &Trajectory| cell.points.iter().flatten().count();
        all.push(match line.cells.iter().map(known).max() {
            Some(n) if n < 4 => {
                format!("{n} of the 4 values of a cell that a search for level shifts needs.")
            }
            _ => "No level shift shown against the spread from run to run.".to_owned(),
        });
    }
    let quiet = quiet_changes(line).into_iter();
    all.extend(quiet.map(|(last, times)| {
        let often = match times {
            1 => String::new(),
            n => format!(", as at {} earlier runs", n - 1),
        };
        format!(
            "{}: {} changed{often}; no level shifted there.",
            start(line, last.at),
            what(last)
        )
    }));
    all
}

/// Changes without a shift of a level: for each kind the last change, and the number of changes.
fn quiet_changes(line: &ExperimentLine) -> Vec<(&Change, usize)> {
    let mut found: Vec<(&Change, usize)> = Vec::new();
    let quiet = line.changes.iter();
    for change in quiet.filter(|change| !near_shift(line, change.at)) {
        match found.iter_mut().find(|(last, _)| last.what == change.what) {
            Some((last, times)) => {
                *last = change;
                *times += 1;
            }
            None => found.push((change, 1)),
        }
    }
    found
}

/// Whether a level shifts at a run or at a neighbour of it. The position of a shift is known to one run.
fn near_shift(line: &ExperimentLine, at: usize) -> bool {
    line.shifted_at()
        .iter()
        .any(|place| place.abs_diff(at) <= 1)
}

fn start(line: &ExperimentLine, run: usize) -> String {
    line.runs.get(run).map_or_else(none, |run| {
        let start = run.started_utc.get(..19).unwrap_or(&run.started_utc);
        format!("{} ({})", escape_control(start), escape_control(&run.file))
    })
}

fn what(change: &Change) -> String {
    let value = |value: &Option<String>| match value {
        Some(text) => fact::value(&change.what, text),
        None => "not known".to_owned(),
    };
    format!(
        "{} ({} -> {})",
        fact::name(&change.what),
        value(&change.before),
        value(&change.now)
    )
}

/// Shifts and changes at a run, in words.
fn shifted(line: &ExperimentLine, at: usize) -> String {
    let here = |trajectory: &Trajectory| {
        trajectory
            .shifts
            .iter()
            .find(|shift| shift.at == at)
            .copied()
    };
    let overall = line.overall.as_ref().and_then(here);
    let mut parts: Vec<String> = Vec::new();
    if let Some(shift) = overall {
        parts.push(format!("all cells together {}", size(&shift)));
    }
    let cells = line.cells.iter();
    parts.extend(cells.filter_map(|trajectory| {
        let shift = here(trajectory)?;
        let label = line.label(trajectory);
        Some(match label.is_empty() {
            true => size(&shift),
            false => format!("{} {}", escape_control(&label), size(&shift)),
        })
    }));
    let near: Vec<String> = line
        .changes
        .iter()
        .filter(|change| change.at.abs_diff(at) <= 1)
        .map(what)
        .collect();
    let changed = match near.as_slice() {
        [] => "No recorded part of the environment changed there".to_owned(),
        some => format!("Changed there: {}", some.join(", ")),
    };
    format!(
        "Level shift at {}: {}. {changed}.",
        start(line, at),
        parts.join("; ")
    )
}

/// A shift as a factor with its interval.
fn size(shift: &Shift) -> String {
    let interval = shift.interval.map_or_else(String::new, |(low, high)| {
        format!(" (95 % interval {} to {})", factor(low), factor(high))
    });
    format!("x{}{interval}", factor(shift.ratio))
}

/// A sentence about runs in no line.
pub(crate) fn left_out(history: &History) -> Option<String> {
    let (first, why) = history.left_out.first()?;
    Some(match history.left_out.len() {
        1 => format!("Left out: {} ({}).", escape_control(first), excluded(why)),
        n => format!(
            "Left out: {n} run files, such as {} ({}).",
            escape_control(first),
            excluded(why)
        ),
    })
}

/// All lines as one self-contained page.
pub fn html(history: &History) -> String {
    let mut blocks = vec![
        Block::heading(1, "", "Runs over time"),
        Block::text(
            "Runs belong to one line when they have the same experiment, settings, budget, machine and target. \
             A level shift is a lasting change of a median against the spread from run to run.",
        ),
    ];
    blocks.extend(left_out(history).map(Block::text));
    for (place, line) in history.lines.iter().enumerate() {
        let id = format!("line{place}");
        let options = Options {
            id: id.clone(),
            width_pt: 480.0,
            text_pt: 9.0,
            ..Options::default()
        };
        blocks.push(Block::heading(2, &format!("history{place}"), heading(line)));
        blocks.extend(figure(line, &options).ok().map(|figure| {
            Block::Figure(Picture {
                name: id,
                class: "",
                figure: Box::new(figure),
            })
        }));
        blocks.push(Block::Table(Table::new(
            "Medians",
            [],
            columns(line, false),
        )));
        blocks.push(Block::list(
            remarks(line).into_iter().map(Item::of).collect(),
        ));
    }
    block::page(&blocks)
}

/// Writes a row for each run and cell.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn rows(history: &History, format: Format, to: &mut dyn Write) -> io::Result<()> {
    let factors = distinct(history.lines.iter().flat_map(|line| &line.factors));
    let before = ["line", "experiment", "target"].map(str::to_owned);
    let behind = [
        "metric", "unit", "n", "median", "median_low", "median_high", "level",
    ];
    let columns = run_columns().chain(before);
    let columns = columns.chain(factors.iter().map(|factor| level_column(factor)));
    let columns: Vec<String> = columns.chain(behind.map(str::to_owned)).collect();
    let mut writer = RowWriter::new(to, format, &columns)?;
    for (place, line) in history.lines.iter().enumerate() {
        for row in rows_of(place, line, &factors) {
            writer.row(row)?;
        }
    }
    writer.finish()
}

fn rows_of(
    place: usize,
    line: &ExperimentLine,
    factors: &[&String],
) -> impl Iterator<Item = Vec<Value>> {
    line.runs.iter().enumerate().flat_map(move |(run, name)| {
        let row = move |trajectory: &Trajectory| {
            let point = trajectory.points[run].as_ref()?;
            let level = |factor: &&String| {
                let own = line.factors.iter().position(|own| own == *factor);
                let level = own.and_then(|place| trajectory.levels.get(place));
                level.map(|level| text_value(level)).into()
            };
            let shifts = trajectory.shifts.iter();
            let before = [
                place.into(),
                text_value(&line.experiment),
                text_value(&line.target),
            ];
            let behind = [
                text_value(line.response.name()),
                text_value(line.response.unit()),
                point.trials.into(),
                point.median.into(),
                point.interval.map(|(low, _)| low).into(),
                point.interval.map(|(_, high)| high).into(),
                shifts.filter(|shift| shift.at <= run).count().into(),
            ];
            let row = run_values(name).chain(before);
            Some(row.chain(factors.iter().map(level)).chain(behind).collect())
        };
        line.cells.iter().filter_map(row)
    })
}

/// Writes everything as one JSON object.
///
/// # Errors
/// When the output cannot be written.
pub fn json(history: &History, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, history)?;
    writeln!(to)
}

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
    let shown = shown.iter().enumerate();
    let rows = shown.filter_map(|(place, trajectory)| row(line, trajectory, place, relative));
    let rows: Vec<Row> = rows.collect();
    let values: Vec<f64> = marks_of(&rows).map(|mark| mark.y).collect();
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
    let held_against = |at| ReferenceLine {
        at,
        ..ReferenceLine::default()
    };
    let shifts = line.shifted_at().into_iter();
    let like = Panel {
        lines: relative.then(|| held_against(1.0)).into_iter().collect(),
        uprights: shifts.map(|at| held_against(at as f64 + 0.5)).collect(),
        ..Panel::new(dates(line), y, Look::Line)
    };
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
        ..FigureModel::of(panels(rows, &like))
    };
    Figure::of(model, options)
}

fn row(
    line: &ExperimentLine,
    trajectory: &Trajectory,
    place: usize,
    relative: bool,
) -> Option<Row> {
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
            n: Some(point.trials),
            written_x: escape_control(start).into_owned(),
            text: match trajectory.levels.is_empty() && relative {
                true => format!("{}, {name}: x{:.3}", escape_control(start), point.median),
                false => format!(
                    "{}, {name}: {}",
                    escape_control(start),
                    line.response.format(point.median)
                ),
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
    let name = if relative { name } else { String::new() };
    (!points.is_empty()).then(|| Row::new((0, String::new()), (place, name), points))
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
