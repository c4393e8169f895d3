//! Distributions: of latency over all requests of one operation, and of a quantity over trials. Latency against throughput as the
//! load grows.

use super::super::data::{CellValues, Data, hollow, measured};
use super::super::model::{
    Axis, FigureModel, Look, Mark, Panel, Row, Scale, Ticks, marks_of, panels, reach,
};
use super::super::options::{Center, Options};
use super::super::{FigureRun, labels};
use super::response::bounds;
use super::{axis, course};
use iolab_analysis::analysis::Response;
use iolab_analysis::trial_values::distinct;
use iolab_record::{LatencyOf, RequestTime};
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::units::format_ns;
use iolab_workload::{Error, Result};

/// Percentiles that are marked on every curve.
const MARKED: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// Points of a curve per power of ten of 1 / (1 - p).
const POINTS_PER_DECADE: usize = 30;

/// Makes the model.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no latencies in the run files, or more cells than can be distinguished.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let data = Data::new(runs, Response::Latency)?.with_roles(options, false)?;
    let of_cell = |row: &CellValues<'_>| together(runs, row.run, row.cell.cell.id);
    let all = || data.rows.iter().filter_map(of_cell);
    let Some(most) = all().map(LatencyHistogram::len).max() else {
        return Err(Error::usage("no latency of single requests was recorded")
            .hint("set latency=true in the experiment, or choose another figure with --kind"));
    };
    let rows = data.rows.iter().map(|row| {
        let mut own = data.row(row, Vec::new());
        let curve = of_cell(row).map(|histogram| curve(row, histogram, &own.series.1));
        own.marks = curve.unwrap_or_default();
        own
    });
    let ends = all().flat_map(|own| [own.min().max(1) as f64, own.max() as f64]);
    let log = Some(options.log_y.unwrap_or(true));
    let ends: Vec<f64> = ends.collect();
    let y = axis::named((Response::Latency, "latency"), &ends, true, log);
    let (low, high) = (1.0, (most as f64).max(10.0));
    let x = Axis::new("Percentile", Scale::Log { low, high }, Ticks::Quantile);
    let panels = panels(rows, &Panel::new(x, y, Look::Curve));
    let requests: u64 = all().map(LatencyHistogram::len).sum();
    let shown = course::requests_of(runs);
    let with = data.rows.iter().filter(|row| of_cell(row).is_some());
    Ok(FigureModel {
        description: format!(
            "{}: distribution of {} over {requests} {shown}",
            runs.first()
                .map_or("", |run| run.analysis().experiment.as_str()),
            what(runs)
        ),
        hollow: hollow(with.map(|row| row.cell)),
        note: format!(
            "{} {shown} of all trials together.",
            labels::number(requests as f64)
        ),
        ..data.figure(panels)
    })
}

/// Response time where a rate was set, else service time.
fn what(runs: &[FigureRun<'_>]) -> &'static str {
    let mut cells = runs.iter().flat_map(|run| &run.analysis().cells);
    match cells.any(|cell| cell.rate_report.is_some()) {
        true => "response time",
        false => "service time",
    }
}

/// The requests of a cell's trials together, of the operation that the figure shows: response times where there are any, else
/// service times. `None` where the cell has none.
pub(super) fn together<'a>(
    runs: &[FigureRun<'a>],
    run: usize,
    cell: i64,
) -> Option<&'a LatencyHistogram> {
    let sample = measured(&runs[run]).find(|sample| sample.cell == cell)?;
    let operation = course::timed(runs).operation(sample);
    let times = [RequestTime::Response, RequestTime::Service].into_iter();
    let mut histograms = times.filter_map(|quantity| {
        let of = LatencyOf {
            operation,
            quantity,
        };
        runs[run].latencies.get(&(cell, of))
    });
    histograms.find(|histogram| !histogram.is_empty())
}

/// The quantiles of a cell up to its slowest request.
fn curve(row: &CellValues<'_>, histogram: &LatencyHistogram, name: &str) -> Vec<Mark> {
    let requests = histogram.len() as f64;
    let last = 1.0 - 1.0 / requests;
    let steps = (requests.log10().max(0.0) * POINTS_PER_DECADE as f64).ceil() as usize;
    let tail = (0..=steps).map(|i| 1.0 - 10f64.powf(-(i as f64) / POINTS_PER_DECADE as f64));
    let quantiles = tail.chain(MARKED).filter(|q| *q <= last).chain([last]);
    let mut quantiles: Vec<f64> = quantiles.collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    let of = match name {
        "" => String::new(),
        name => format!("{name}, "),
    };
    let points = quantiles.into_iter().map(|quantile| {
        let ns = histogram.value_at_quantile(quantile).max(1) as f64;
        let at = (1.0 / (1.0 - quantile).max(1.0 / requests), ns);
        // As people write it: `p99.9`.
        let percentile = format!("p{}", labels::number((quantile * 1e8).round() / 1e6));
        let text = format!("{of}{percentile}: {}", format_ns(ns));
        let mark = super::mark(row.cell, Some(row.summary.n), at, percentile, &text);
        match MARKED.contains(&quantile) {
            true => mark,
            false => Mark {
                text: String::new(),
                ..mark
            },
        }
    });
    points.collect()
}

/// Makes the model: a line for each cell that rises at each of its trials, marked at the median.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no trial has a value, or more cells than can be distinguished.
pub(crate) fn model_of_trials(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = super::quantity(runs, options);
    let data = Data::new(runs, quantity)?.with_roles(options, false)?;
    let rows = data.rows.iter().map(|row| data.row(row, steps(row, &data)));
    let rows: Vec<Row> = rows.collect();
    let values: Vec<f64> = marks_of(&rows).map(|mark| mark.x).collect();
    let noun = super::measured(runs, quantity);
    let x = axis::named((quantity, &noun), &values, false, options.log_x);
    let (low, high) = (0.0, 100.0);
    let scale = Scale::Linear { low, high };
    let y = Axis::new("Trials up to that value (%)", scale, Ticks::Number);
    Ok(FigureModel {
        description: format!(
            "{}, cumulative distribution of the trials",
            super::subject(runs, quantity)
        ),
        unit: "%".to_owned(),
        note: "A step for each trial; markers: medians.".to_owned(),
        ..data.figure(panels(rows, &Panel::new(x, y, Look::Curve)))
    })
}

/// The corners of the steps of a cell, in the order of its values, and its median.
fn steps(row: &CellValues<'_>, data: &Data<'_>) -> Vec<Mark> {
    let mut values = row.values.clone();
    values.sort_by(f64::total_cmp);
    let share = |trials: usize| 100.0 * trials as f64 / values.len() as f64;
    let corners = values.iter().enumerate().flat_map(|(place, value)| {
        [place, place + 1].map(|trials| Mark {
            x: *value,
            y: share(trials),
            ..Mark::default()
        })
    });
    let (median, n) = (row.summary.median, row.summary.n);
    let written = data.quantity.format(median);
    let text = format!(
        "{}: median {written}; n = {n}",
        super::cell_name(&row.levels)
    );
    let median = super::mark(row.cell, Some(n), (median, 50.0), written, &text);
    let mut marks: Vec<Mark> = corners.chain([median]).collect();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    marks
}

/// Factors that change the load; the first one that varies is used.
const LOADS: [&str; 3] = ["rate", "depth", "threads"];

/// Makes the model: a line for the median latency and one for its 99th percentile, or, where another factor varies or
/// a quantity is asked for, a line for each of its levels.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no factor that makes load varies, or no latencies.
pub(crate) fn model_of_load(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = options.y.unwrap_or(Response::Latency);
    let data = Data::new(runs, quantity)?;
    let load = load(&data, options)?;
    let along = Options {
        x: Some(data.factors[load].to_owned()),
        ..options.clone()
    };
    let data = data.with_roles(&along, true)?;
    let single = data.series.is_none() && options.y.is_none();
    // A search for a rate measures the rates in another order.
    let mut cells: Vec<&CellValues<'_>> = data.rows.iter().collect();
    let factor = data.factors[load];
    let at = |row: &CellValues<'_>| labels::position(factor, row.levels[load]);
    let place = |row: &CellValues<'_>| at(row).unwrap_or(f64::INFINITY);
    cells.sort_by(|a, b| place(a).total_cmp(&place(b)));
    let mut rows: Vec<Row> = Vec::new();
    // The tail is a line of its own.
    let shown = [quantity, Response::P99];
    for (place, quantity) in shown.into_iter().take(1 + usize::from(single)).enumerate() {
        for row in &cells {
            let (iops, summary) = (row.cell.median(Response::Iops), row.cell.of[quantity]);
            let mark = iops.zip(summary).map(|(iops, summary)| {
                let level = labels::level(factor, row.levels[load]);
                let (what, shown) = (labels::short(quantity), quantity.format(summary.median));
                let at = Response::Iops.format(iops);
                let text = format!("{level}: {what} {shown} at {at}; n = {}", summary.n);
                Mark {
                    interval: Center::Median.bar(&summary),
                    ..super::mark(row.cell, Some(summary.n), (iops, summary.median), at, &text)
                }
            });
            let mut row = data.row(row, mark.into_iter().collect());
            if single {
                row.series = (place, labels::short(quantity).to_owned());
            }
            rows.push(row);
        }
    }
    let lines = bounds(options);
    let mut up = reach(&rows);
    up.extend(lines.iter().map(|line| line.at));
    let across = marks_of(&rows).map(|mark| mark.x);
    let scale = match options.log_x {
        Some(true) => Scale::log(across),
        _ => Scale::linear(across, true),
    };
    let x = Axis::new("Requests per second", scale, Ticks::Number);
    let noun = super::measured(runs, quantity);
    let mut y = axis::named((quantity, &noun), &up, true, options.log_y);
    if single {
        y.label = y.label.replace("Median latency", "Latency");
    }
    let like = Panel {
        lines,
        ..Panel::new(x, y, Look::Line)
    };
    let panels = panels(rows, &like);
    let noun = labels::noun(factor);
    let mut subject = super::subject(runs, quantity);
    if single {
        let series = panels.iter().flat_map(|panel| &panel.series);
        let quantiles = distinct(series.map(|line| line.name.as_str()));
        let both = format!("latency ({})", quantiles.join(", "));
        subject = subject.replacen(&labels::of_response(quantity), &both, 1);
    }
    let levels = distinct(cells.iter().map(|row| row.levels[load]));
    let ends = match levels.as_slice() {
        [first, .., last] => format!("{first} to {last}"),
        _ => levels.concat(),
    };
    Ok(FigureModel {
        description: format!("{subject} against throughput as {noun} grows"),
        note: format!("Medians over the trials; bars: 95 % interval; {noun} from {ends}."),
        ..data.figure(panels)
    })
}

fn load(data: &Data<'_>, options: &Options) -> Result<usize> {
    let named = |name: &str| data.factors.iter().position(|factor| *factor == name);
    let found = match &options.x {
        Some(x) => named(x),
        None => LOADS.into_iter().find_map(named),
    };
    found.ok_or_else(|| {
        Error::usage("no factor that changes the load varies in the data").hint(
            "sweep rate, depth or threads: iolab run load-latency; or choose another figure with --kind",
        )
    })
}
