//! Shares of a whole: the time of traced requests by layer, and what remains of a difference without each suspect.

use super::super::FigureRun;
use super::super::data::hollow;
use super::super::model::{self, Axis, FigureModel, Look, Mark, Panel, Row, Scale, Ticks};
use super::super::options::Options;
use super::axis;
use iolab_analysis::analysis::{CellAnalysis, CellStages, Response, StageNumbers, Timed};
use iolab_analysis::claim::{Point, Standing, remainders};
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::cell_label;
use iolab_workload::units::{format_ns, format_percent, significant};
use iolab_workload::{Error, Result};

/// A traced cell, by the name that it has in the figure.
struct TracedCell<'a> {
    name: String,
    cell: &'a CellAnalysis,
    stages: &'a CellStages,
}

/// Makes the model.
///
/// # Errors
/// Of kind usage: no cell was traced.
pub(in super::super) fn model(runs: &[FigureRun<'_>], _options: &Options) -> Result<FigureModel> {
    let cells = runs.iter().flat_map(|run| traced(run, runs.len() > 1));
    let cells: Vec<TracedCell<'_>> = cells.collect();
    if cells.is_empty() {
        let mut all = runs.iter().flat_map(|run| &run.analysis().cells);
        let why = all.find_map(|cell| cell.stages.as_ref()?.note.as_deref());
        // It comes from the run file.
        let hint = why.map_or_else(
            || "measure with --set trace=true, as root".to_owned(),
            |why| format!("trials were traced: {}", escape_control(why)),
        );
        return Err(Error::usage("no cell has requests that were split by layer").hint(hint));
    }
    let names = cells.iter().map(|cell| cell.name.as_str()).collect();
    let written = |name: &str| escape_control(name).into_owned();
    let x = axis::names(names, written, String::new(), true).axis;
    let time = |timed: Timed, of: &str| {
        let sums = cells.iter().filter_map(|cell| cell.stages.mean_ns(timed));
        let sums: Vec<f64> = sums.collect();
        axis::named((Response::Mean, of), &sums, true, Some(false))
    };
    let whole = Scale::linear([100.0].into_iter(), true);
    let share = Axis::new("Share (%)", whole, Ticks::Number);
    let mut panels = Vec::new();
    let mut panel = |title: &str, y: Axis, timed, is_slowest| {
        let like = Panel::new(x.clone(), y, Look::Bars(1));
        let panel = (0, title.to_owned());
        let rows = cells.iter().enumerate();
        let rows = rows.flat_map(|cell| parts(cell, &panel, timed, is_slowest));
        let mut made = model::panels(rows, &like);
        // Each bar covers all but the own part of the one before.
        made.iter_mut().for_each(|panel| panel.series.reverse());
        panels.append(&mut made);
    };
    let of_request = time(Timed::Requests, "Mean time of a request");
    panel("all requests", of_request, Timed::Requests, false);
    panel("slowest 1 %", share, Timed::Requests, true);
    if cells.iter().any(|cell| cell.stages.least(Timed::Syncs) > 0) {
        let of_sync = time(Timed::Syncs, "Mean time of a sync");
        panel("syncs", of_sync, Timed::Syncs, false);
    }
    Ok(FigureModel {
        description: format!("{}: mean time of requests by layer", super::experiments(runs)),
        legend: "stage".to_owned(),
        unit: Response::Latency.unit().to_owned(),
        hollow: hollow(cells.iter().map(|cell| cell.cell)),
        note: "Bars: median over the trials of the mean time; their parts: mean over the trials of the share of each layer, in the order in which a request passes the layers.".to_owned(),
        ..FigureModel::of(panels)
    })
}

/// The cells of a run whose stages are known.
fn traced<'a>(run: &FigureRun<'a>, several: bool) -> Vec<TracedCell<'a>> {
    let analysis = run.analysis();
    let cells = analysis.cells.iter().filter_map(|cell| {
        let stages = cell.stages.as_ref().filter(|stages| stages.known > 0)?;
        let levels = cell_label(&analysis.factors, &cell.cell.levels);
        let name = match several {
            true => format!("{} {levels}", run.name),
            false => levels,
        };
        Some(TracedCell { name, cell, stages })
    });
    cells.collect()
}

/// A bar for each stage of a cell, up to the stages before it, in ns or % of the time of the slowest.
fn parts(
    (at, of): (usize, &TracedCell<'_>),
    panel: &(usize, String),
    timed: Timed,
    is_slowest: bool,
) -> Vec<Row> {
    let shares: [fn(&StageNumbers) -> Option<f64>; 2] = match is_slowest {
        false => [StageNumbers::mean_share, StageNumbers::share],
        true => [StageNumbers::mean_tail_share, StageNumbers::tail_share],
    };
    let whole = match is_slowest {
        false => of.stages.mean_ns(timed).unwrap_or(0.0),
        true => 100.0,
    };
    // Each stage has a name of its own in the legend.
    let before = match timed {
        Timed::Requests => 0,
        Timed::Syncs => Timed::Requests.parts().len(),
    };
    let mut top = 0.0;
    let stages = timed.parts().iter().zip(before..);
    let parts = stages.map(|(stage, place)| {
        let numbers = of.stages.stages[*stage].as_ref();
        let shares = shares.map(|share| numbers.and_then(share).unwrap_or(0.0));
        let own = whole * shares[0];
        top += own;
        let time = match is_slowest {
            false => format!("{}, ", format_ns(own)),
            true => String::new(),
        };
        let [mean, median] = shares.map(format_percent);
        let median = match mean == median {
            true => String::new(),
            false => format!(" (median share {median})"),
        };
        let text = format!("{}: {stage} {time}{mean}{median}", of.name);
        let known = Some(of.stages.known);
        let mark = super::mark(of.cell, known, (at as f64, top), &*of.name, &text);
        let series = (place, stage.name().to_owned());
        Row::new(panel.clone(), series, vec![mark])
    });
    parts.collect()
}

/// Makes the model: a bar for the difference as it is, without each suspect, and without all.
///
/// # Errors
/// Of kind usage: a run that explains nothing, or a difference that does not exist.
pub(crate) fn model_of_why(runs: &[FigureRun<'_>], _: &Options) -> Result<FigureModel> {
    let [run] = runs else {
        return Err(
            Error::usage("several runs, each with a difference of its own")
                .hint("draw one: iolab plot FILE --kind why"),
        );
    };
    let bars = remainders(run.analysis());
    if bars.is_empty() {
        return Err(Error::usage("the run explains no difference")
            .hint("make one that does: iolab why FILE; or choose another figure with --kind"));
    }
    let marks: Vec<Mark> = bars.iter().enumerate().map(mark_of_remainder).collect();
    let names = marks.iter().map(|mark| (mark.x, mark.written_x.clone()));
    let width = axis::steps((1.0 + LABEL) * bars.len() as f64);
    let x = Axis::new("Without", width, Ticks::Named(names.collect()));
    let scale = Scale::linear(marks.iter().flat_map(Mark::reach).chain([100.0]), true);
    let y = Axis::new("Remaining difference (%)", scale, Ticks::Number);
    let row = Row::new(Default::default(), Default::default(), marks);
    let like = Panel {
        lines: vec![super::line_across(50.0, "cause")],
        ..Panel::new(x, y, Look::Bars(1))
    };
    let inquiry = run.analysis().inquiry.as_ref();
    let phenomenon = inquiry.map_or("", |one| &one.phenomenon);
    Ok(FigureModel {
        description: format!("Remaining share without each suspect: {phenomenon}"),
        note: format!(
            "Share of the logarithm of the ratio of both sides, within the blocks that variants share; vertical lines: 95 % interval.{}{}",
            reversed(&bars),
            suspects(&bars)
        ),
        ..FigureModel::of(model::panels([row], &like))
    })
}

/// The share of the width that the label of the line takes, right of all bars.
const LABEL: f64 = 0.08;

fn percent(share: f64) -> f64 {
    100.0 * share.max(0.0)
}

/// The bars of a reversed difference, which have no height.
fn reversed(bars: &[Point]) -> String {
    let names = bars
        .iter()
        .filter(|bar| bar.standing == Standing::Reverses)
        .map(name_of_remainder);
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            " Reversed, and without a bar: {}.",
            escape_control(&names.join(", "))
        ),
    }
}

/// Explains the names of the suspects, in the words of findings.
fn suspects(bars: &[Point]) -> String {
    let named = bars.iter().filter(|bar| !bar.suspect_in_words().is_empty());
    let named: Vec<String> = named
        .map(|bar| format!("{}: {}", name_of_remainder(bar), bar.suspect_in_words()))
        .collect();
    match named.as_slice() {
        [] => String::new(),
        named => format!(" {}.", escape_control(&named.join("; "))),
    }
}

/// `nothing`, `read-ahead`, `all`.
fn name_of_remainder(bar: &Point) -> String {
    match bar.suspects.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        _ => "all".to_owned(),
    }
}

fn mark_of_remainder((place, bar): (usize, &Point)) -> Mark {
    let interval = bar.interval.filter(|_| !bar.suspects.is_empty());
    let name = name_of_remainder(bar);
    // A bar does not show that a difference is reversed.
    let left = match bar.standing == Standing::Reverses {
        true => "the difference is reversed".to_owned(),
        false => format!("{} % left", significant(percent(bar.value))),
    };
    let what = match bar.suspect_in_words() {
        "" => &name,
        what => what,
    };
    Mark {
        x: place as f64,
        y: percent(bar.value),
        interval: interval.map(|(low, high)| (percent(low), percent(high))),
        text: format!("without {what}: {left}"),
        written_x: name,
        ..Mark::default()
    }
}
