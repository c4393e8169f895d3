//! Latency: its distribution over all requests of one operation, and against throughput as the load grows.

use super::super::data::{CellValues, Data, Parts, measured};
use super::super::model::{Axis, FigureModel, Look, Mark, Origin, Series, Ticks};
use super::super::options::Options;
use super::super::scale::Scale;
use super::super::{FigureRun, labels};
use super::response::{bounds, interval};
use super::{axis, course};
use crate::data::Values;
use crate::model::all_marks;
use iolab_analysis::analysis::Response;
use iolab_record::{LatencyOf, RequestTime};
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::units::format_ns;
use iolab_workload::{Error, Result};

/// Percentiles that are marked on every curve.
const MARKED: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// Points of a curve per power of ten of 1 / (1 - p).
const POINTS_PER_DECADE: usize = 30;

/// A cell with all of its requests that the figure shows, in ns.
type Distribution<'a> = (&'a CellValues<'a>, &'a LatencyHistogram);

/// Makes the model.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no latencies in the run files, or more cells than can be distinguished.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let data = Data::new(runs, Response::Latency)?;
    let parts = Parts::of(&data, options, false)?;
    let cells = data.rows.iter();
    let cells = cells.filter_map(|row| Some((row, together(runs, row.run, row.cell.cell.id)?)));
    let cells: Vec<Distribution<'_>> = cells.collect();
    if cells.is_empty() {
        return Err(Error::usage("no latency of single requests was recorded")
            .hint("set latency=true in the experiment, or choose another figure with --kind"));
    }
    let mut panels = super::facets(&data, &parts, |panel, rows| {
        let own = cells.iter();
        let own = own.filter(|(row, _)| parts.panel(row) == parts.panel(rows[0]));
        let curves = own.map(|cell| curve(*cell, super::series_of(&data, &parts, cell.0)));
        panel.series = curves.collect();
    });
    let (x, y) = axes(&cells, options);
    super::set_axes(&mut panels, &x, &y);
    let requests: u64 = cells.iter().map(|(_, histogram)| histogram.len()).sum();
    let shown = course::requests_of(runs);
    Ok(FigureModel {
        description: format!(
            "{}: distribution of {} over {requests} {shown}",
            runs.first()
                .map_or("", |run| run.analysis().experiment.as_str()),
            what(runs)
        ),
        legend: super::legend(&data, parts.series),
        unit: "ns".to_owned(),
        hollow: super::hollow(cells.iter().map(|(row, _)| row.cell)),
        note: format!(
            "{} {shown} of all trials together.",
            labels::number(requests as f64)
        ),
        ..FigureModel::of(panels)
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

fn axes(cells: &[Distribution<'_>], options: &Options) -> (Axis, Axis) {
    let all = || cells.iter().map(|(_, histogram)| *histogram);
    let ends = all().flat_map(|own| [own.min().max(1), own.max()]);
    let values: Vec<f64> = ends.map(|ns| ns as f64).collect();
    let most = all().map(LatencyHistogram::len).max().unwrap_or(1);
    let log = Some(options.log_y.unwrap_or(true));
    let latency = axis::named((Response::Latency, "latency"), &values, true, log);
    let scale = Scale::Log {
        low: 1.0,
        high: (most as f64).max(10.0),
    };
    (Axis::new("Percentile", scale, Ticks::Quantile), latency)
}

fn curve((row, histogram): Distribution<'_>, (place, name): (usize, String)) -> Series {
    let requests = histogram.len() as f64;
    let last = 1.0 - 1.0 / requests;
    let steps = (requests.log10().max(0.0) * POINTS_PER_DECADE as f64).ceil() as usize;
    let tail = (0..=steps).map(|i| 1.0 - 10f64.powf(-(i as f64) / POINTS_PER_DECADE as f64));
    let mut quantiles: Vec<f64> = tail.filter(|q| *q <= last).chain([last]).collect();
    let marked: Vec<f64> = MARKED.into_iter().filter(|q| *q <= last).collect();
    quantiles.extend(&marked);
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    let points = quantiles.into_iter().map(|q| {
        let ns = histogram.value_at_quantile(q).max(1) as f64;
        let origin = match marked.contains(&q) {
            true => origin(row, q, ns, &name),
            false => Origin::default(),
        };
        Mark {
            x: 1.0 / (1.0 - q).max(1.0 / requests),
            y: ns,
            hollow: !row.cell.is_target(),
            origin,
            ..Mark::default()
        }
    });
    let points: Vec<Mark> = points.collect();
    Series::of_points(name, place, Look::Curve, points)
}

fn origin(row: &CellValues<'_>, quantile: f64, ns: f64, name: &str) -> Origin {
    // As people write it: `p99.9`.
    let percentile = format!("p{}", labels::number((quantile * 1e8).round() / 1e6));
    let of = match name {
        "" => String::new(),
        name => format!("{name}, "),
    };
    let text = format!("{of}{percentile}: {}", format_ns(ns));
    super::origin(row.cell, Some(row.summary.n), percentile, &text)
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
    let parts = Parts::of(
        &data,
        &Options {
            x: Some(data.factors[load].to_owned()),
            ..options.clone()
        },
        true,
    )?;
    let single = parts.series.is_none() && options.y.is_none();
    // The tail is a line of its own.
    let tail = single.then(|| data.of_quantity(runs, Response::P99));
    let shown: Vec<&Data<'_>> = [&data].into_iter().chain(&tail).collect();
    let rates = runs.iter().map(|run| Values::of(run, Response::Iops));
    let rates: Vec<Values> = rates.collect();
    let mut panels = super::facets(&data, &parts, |panel, rows| {
        panel.free_x = true;
        for data in &shown {
            let own = data.rows.iter();
            let own = own.filter(|row| parts.panel(row) == parts.panel(rows[0]));
            // A search for a rate measures the rates in another order.
            let mut own: Vec<&CellValues<'_>> = own.collect();
            let at = |row: &CellValues<'_>| position(data, load, row.levels[load]);
            own.sort_by(|a, b| at(a).total_cmp(&at(b)));
            for row in own {
                let line = match single {
                    true => {
                        let place = usize::from(data.quantity != Response::Latency);
                        (place, labels::short(data.quantity).to_owned())
                    }
                    false => super::series_of(data, &parts, row),
                };
                let iops = rates[row.run].of_cell(row.cell.cell.id);
                if let Some(point) = point(iops, data, row, load) {
                    super::add_mark(&mut panel.series, line, Look::Line, point);
                }
            }
        }
    });
    let across: Vec<f64> = all_marks(&panels).map(|point| point.x).collect();
    let up = all_marks(&panels).flat_map(Mark::reach);
    let bounds = bounds(options);
    let up: Vec<f64> = up.chain(bounds.iter().map(|line| line.at)).collect();
    let scale = match options.log_x {
        Some(true) => Scale::log(across.into_iter()),
        _ => Scale::linear(across.into_iter(), true),
    };
    let x = Axis::new("Requests per second", scale, Ticks::Number);
    let noun = super::measured(runs, quantity);
    let mut y = axis::named((quantity, &noun), &up, true, options.log_y);
    if single {
        y.label = y.label.replace("Median latency", "Latency");
    }
    super::set_axes(&mut panels, &x, &y);
    for panel in &mut panels {
        panel.lines.clone_from(&bounds);
    }
    let noun = labels::noun(data.factors[load]);
    let mut subject = super::subject(runs, quantity);
    if single {
        let series = panels.iter().flat_map(|panel| &panel.series);
        let quantiles = super::distinct(series.map(|line| line.name.as_str()));
        let both = format!("latency ({})", quantiles.join(", "));
        subject = subject.replacen(&labels::of_response(quantity), &both, 1);
    }
    Ok(FigureModel {
        description: format!("{subject} against throughput as {noun} grows"),
        legend: super::legend(&data, parts.series),
        unit: quantity.unit().to_owned(),
        hollow: super::hollow(data.rows.iter().map(|row| row.cell)),
        note: format!(
            "Medians over the trials; bars: 95 % interval; {noun} from {}.",
            ends(&data, load)
        ),
        ..FigureModel::of(panels)
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

/// Position of a level of the load.
fn position(data: &Data<'_>, load: usize, level: &str) -> f64 {
    labels::position(data.factors[load], level).unwrap_or(f64::INFINITY)
}

fn ends(data: &Data<'_>, load: usize) -> String {
    let mut levels = data.levels(load);
    levels.sort_by(|a, b| position(data, load, a).total_cmp(&position(data, load, b)));
    match levels.as_slice() {
        [first, .., last] => format!("{first} to {last}"),
        _ => levels.concat(),
    }
}

fn point(iops: &[f64], data: &Data<'_>, row: &CellValues<'_>, load: usize) -> Option<Mark> {
    let iops = iolab_stats::median(iops)?;
    let value = row.summary.median;
    let n = row.summary.n;
    let load = labels::level(data.factors[load], row.levels[load]);
    let (what, shown) = (labels::short(data.quantity), data.quantity.format(value));
    let at = Response::Iops.format(iops);
    let text = format!("{load}: {what} {shown} at {at}; n = {n}");
    Some(Mark {
        interval: interval(&row.summary),
        ..super::mark(row.cell, Some(n), (iops, value), at, &text)
    })
}
