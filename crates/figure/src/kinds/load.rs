//! Latency against throughput as the load grows.

use iolab_analysis::analysis::Response;
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::data::{CellValues, Data, Parts, Values};
use super::super::labels;
use super::super::model::{Axis, FigureModel, Look, Mark, Ticks, all_marks};
use super::super::options::Options;
use super::super::scale::Scale;
use super::axis;
use super::response::{bounds, interval};

/// Factors that change the load; the first one that varies is used.
const LOADS: [&str; 3] = ["rate", "depth", "threads"];

/// Makes the model: a line for the median latency and one for its 99th percentile, or, where another factor varies or
/// a quantity is asked for, a line for each of its levels.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no factor that makes load varies, or no latencies.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = options.y.unwrap_or(Response::Latency);
    let data = Data::new(runs, quantity)?;
    let load = load(&data, options)?;
    let parts = Parts::of(
        &data,
        &Options {
            x: Some(data.factors[load].to_owned()),
            ..options.clone()
        },
    )?;
    let single = parts.series.is_none() && options.y.is_none();
    // The tail is a line of its own.
    let tail = single.then(|| data.of_quantity(runs, Response::P99));
    let shown: Vec<&Data<'_>> = [&data].into_iter().chain(&tail).collect();
    let rates = runs.iter().map(|run| Values::of(run, Response::Iops));
    let rates: Vec<Values> = rates.collect();
    let none = axis::counts("", 0.0);
    let mut panels = super::facets(&data, &parts, (&none, &none), |panel, rows| {
        panel.free_x = true;
        let key = rows.first().map(|row| parts.panel(row));
        for data in &shown {
            let own = data.rows.iter();
            let own = own.filter(|row| key.as_ref() == Some(&parts.panel(row)));
            // A search for a rate measures the rates in another order.
            let mut own: Vec<&CellValues<'_>> = own.collect();
            own.sort_by(|a, b| of_load(data, load, a).total_cmp(&of_load(data, load, b)));
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
    let x = x_axis(&across, options);
    let noun = super::measured(runs, quantity);
    let mut y = axis::named((quantity, &noun), &up, true, options);
    if single {
        y.label = y.label.replace("Median latency", "Latency");
    }
    for panel in &mut panels {
        panel.lines.clone_from(&bounds);
        (panel.x, panel.y) = (x.clone(), y.clone());
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

/// Position of a cell's level of the load.
fn of_load(data: &Data<'_>, load: usize, row: &CellValues<'_>) -> f64 {
    labels::position(data.factors[load], row.levels[load]).unwrap_or(f64::INFINITY)
}

fn ends(data: &Data<'_>, load: usize) -> String {
    let mut levels = data.levels(load);
    let place = |level: &&str| labels::position(data.factors[load], level).unwrap_or(f64::INFINITY);
    levels.sort_by(|a, b| place(a).total_cmp(&place(b)));
    match levels.as_slice() {
        [first, .., last] => format!("{first} to {last}"),
        _ => levels.concat(),
    }
}

fn x_axis(values: &[f64], options: &Options) -> Axis {
    let scale = match options.log_x {
        Some(true) => Scale::log(values.iter().copied()),
        _ => Scale::linear(values.iter().copied(), true),
    };
    Axis::new("Requests per second", scale, Ticks::Number)
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
