//! Throughput or latency inside the trials, over their time.

use std::collections::HashMap;

use super::super::FigureRun;
use super::super::data::{Data, measured};
use super::super::model::{self, Axis, FigureModel, Look, Mark, Panel, Row, Scale, Ticks, reach};
use super::super::options::Options;
use super::{axis, most_x};
use iolab_analysis::analysis::Response;
use iolab_analysis::trial_values::distinct;
use iolab_record::{Interval, Sample, ShownLatency};
use iolab_workload::escape_control::escape_control;
use iolab_workload::histogram::over_time::{IntervalLatency, LatencyOverTime};
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

/// Most points of a figure, over all trials.
const POINTS_MAX: usize = 12_000;

/// Most intervals of one trial: a line tells no more than it has room for.
const INTERVALS_MAX: usize = 400;

/// Fewest intervals of a trial with a course.
const INTERVALS_MIN: usize = 2;

/// Requests of an interval, on average over a trial: one more or less, which ends just before or after, is a tenth of its throughput.
const REQUESTS_MIN: u64 = 10;

/// Makes the model: a line for each trial, in the colour of its cell.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) if no trial was long enough to have a course, or keeps a
/// course of this quantity.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = options.y.unwrap_or(Response::Throughput);
    let shows_latency = quantity.quantile().is_some();
    if !shows_latency && quantity != Response::Throughput {
        return Err(
            Error::usage(format!("{} has no course inside a trial", quantity.name()))
                .hint("set --y throughput, latency, p90, p99, p99.9 or max"),
        );
    }
    if shows_latency && runs.iter().all(|run| run.over_time.is_empty()) {
        return Err(Error::usage("no trial keeps its latency over time").hint(
            "measure with --soak TIME, or with --set latency_over_time=true; --kind course shows throughput",
        ));
    }
    let data = Data::new(runs, Response::Throughput)?.with_roles(options, false)?;
    let trials: usize = runs.iter().map(|run| run.series.len()).sum();
    let most = (POINTS_MAX / trials.max(1)).clamp(INTERVALS_MIN, INTERVALS_MAX);
    let measured = |run| measured(run).map(|sample| (sample.id, sample)).collect();
    let samples: Vec<HashMap<i64, &Sample>> = runs.iter().map(measured).collect();
    let (mut rows, mut warmth, mut without) = (Vec::new(), Vec::new(), 0);
    for cell in &data.rows {
        let curve = |points: Vec<(f64, f64)>| {
            let marks = points.into_iter().map(|(x, y)| Mark {
                x,
                y,
                ..Mark::default()
            });
            data.row(cell, marks.collect())
        };
        // The panel is there even without a curve.
        rows.push(curve(Vec::new()));
        for trial in runs[cell.run].series {
            let sample = samples[cell.run].get(&trial.sample);
            let Some(sample) = sample.filter(|own| own.cell == cell.cell.cell.id) else {
                continue;
            };
            let points = match shows_latency {
                true => latencies(runs, cell.run, sample, (quantity, most)),
                false => {
                    // Neighbours are taken together until they have enough requests.
                    let folded = trial.series.of_requests(REQUESTS_MIN, most);
                    in_the_middle(&folded, |interval| Some(interval.throughput_mb_s()))
                }
            };
            let readings = in_the_middle(&trial.series.clone().folded(most), |interval| {
                Some(interval.drive_millidegrees? as f64 / 1e3)
            });
            if readings.len() >= INTERVALS_MIN {
                warmth.push(Row {
                    // One panel of all facets together, below them.
                    panel: (usize::MAX, String::new()),
                    ..curve(readings)
                });
            }
            match points.len() >= INTERVALS_MIN {
                true => rows.push(curve(points)),
                false => without += 1,
            }
        }
    }
    let values = reach(&rows);
    if values.is_empty() {
        return Err(Error::usage(match shows_latency {
            true => "too few requests per interval for this quantile",
            false => "no trial has enough requests to show a course over its time",
        })
        .hint(match shows_latency {
            true => "show a lower one, such as --y latency",
            false => "measure with a longer --time, or see the order of the trials: --kind order",
        }));
    }
    let x = axis::times("Time in the trial", most_x(&rows));
    let mut y = axis::of_quantity(quantity, &values, true, options);
    if values.contains(&0.0) && options.log_y.is_none() {
        // A stall is what such a figure is made to show, and zero has no place on a log axis.
        y.scale = Scale::linear(values.iter().copied(), true);
    }
    let mut panels = model::panels(rows, &Panel::new(x.clone(), y, Look::Curve));
    // At least a degree, so that rounding by a sensor does not look like a course.
    let degrees = reach(&warmth)
        .into_iter()
        .flat_map(|one| [one - 0.5, one + 0.5]);
    let scale = Scale::linear(degrees, false);
    let y = Axis::new("Drive temperature (°C)", scale, Ticks::Number);
    panels.extend(model::panels(warmth, &Panel::new(x, y, Look::Curve)));
    Ok(FigureModel {
        description: format!("{} inside the trials", super::subject(runs, quantity)),
        unit: quantity.unit().to_owned(),
        // A curve has no marks.
        hollow: String::new(),
        note: note(runs, shows_latency, without),
        ..data.figure(panels)
    })
}

/// Explains the lines, with the number of trials without one.
fn note(runs: &[FigureRun<'_>], shows_latency: bool, without: usize) -> String {
    let mut text = match shows_latency {
        true => format!(
            "A line for each measured trial: latency of its {}.",
            requests_of(runs)
        ),
        false => "A line for each measured trial.".to_owned(),
    };
    if without > 0 {
        let trials = counted(without, "trial");
        text.push_str(&format!(" Not drawn: {trials} with too few requests."));
    }
    text
}

/// The values of intervals, each in the middle of its interval.
fn in_the_middle(
    series: &iolab_record::Series,
    of: impl Fn(&Interval) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let value = |interval: &Interval| {
        let middle = interval.start_ns as f64 + interval.length_ns as f64 / 2.0;
        Some((middle, of(interval)?))
    };
    series.intervals.iter().filter_map(value).collect()
}

/// A quantile of the latency of each interval of a measured trial, in its middle, of the requests that all runs show; of the group
/// asked about, or of all. Empty where the trial keeps none of them.
fn latencies(
    runs: &[FigureRun<'_>],
    run: usize,
    sample: &Sample,
    (quantity, most): (Response, usize),
) -> Vec<(f64, f64)> {
    let (shown, run) = (timed(runs).operation(sample), &runs[run]);
    let group = run.record().asked_group();
    let own = run.over_time.iter().filter(|one| {
        one.sample == sample.id
            && one.operation == shown
            && group.is_none_or(|group| one.group == group)
    });
    let own = own.map(|one| one.latency.clone());
    let latency = own.reduce(LatencyOverTime::plus);
    latency.map_or_else(Vec::new, |latency| quantiles(latency, quantity, most))
}

/// The operation whose latency the runs show. If trials of any run were asked for several operations, the first
/// one, for all runs.
pub(super) fn timed(runs: &[FigureRun<'_>]) -> ShownLatency {
    let chosen = runs.iter().map(|run| run.record().asked_timed());
    let chosen = chosen.filter_map(|timed| match timed {
        ShownLatency::Own => None,
        ShownLatency::Of(operation) => Some(operation),
    });
    chosen.min().map_or(ShownLatency::Own, ShownLatency::Of)
}

/// Subject of the latencies: the operation, if all measured trials have the same, and the group of the response.
/// `reads`, `reads of reader`.
pub(super) fn requests_of(runs: &[FigureRun<'_>]) -> String {
    let timed = timed(runs);
    let samples = runs.iter().flat_map(measured);
    let all = distinct(samples.map(|sample| format!("{}s", timed.operation(sample))));
    let operation = match all.as_slice() {
        [one] => one.as_str(),
        _ => "requests",
    };
    let first = runs.first().map(FigureRun::analysis);
    let group = first.and_then(|analysis| analysis.response_group.as_deref());
    match group {
        None => operation.to_owned(),
        Some(group) => format!("{operation} of {}", escape_control(group)),
    }
}

/// Quantiles of a trial over time: the middle of each interval and its quantile, ns, with neighbours taken together until nearly all
/// intervals have enough requests; those that still have too few are left out.
pub(super) fn quantiles(
    mut latency: LatencyOverTime,
    response: Response,
    most: usize,
) -> Vec<(f64, f64)> {
    let Some(share) = response.quantile() else {
        return Vec::new();
    };
    let least = response.requests_min();
    latency = latency.folded(most);
    loop {
        let enough = latency.intervals.iter().filter(|one| one.total() >= least);
        if 10 * enough.count() >= 9 * latency.intervals.len() || latency.intervals.len() <= 2 {
            break;
        }
        let half = latency.intervals.len().div_ceil(2);
        latency = latency.folded(half);
    }
    let numbered = latency.intervals.iter().enumerate();
    let points = numbered.filter(|(_, one)| one.total() >= least);
    let point = |(number, one): (usize, &IntervalLatency)| {
        let (start, end) = latency.bounds_ns(number);
        let middle = f64::midpoint(start as f64, end as f64);
        Some((middle, one.quantile_ns(share)? as f64))
    };
    points.filter_map(point).collect()
}
