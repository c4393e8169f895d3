//! Latency inside the trials, over their time: as colours, and what a line over time needs of it.

use iolab_analysis::analysis::Response;
use iolab_record::{Sample, ShownLatency};
use iolab_workload::escape_control::escape_control;
use iolab_workload::histogram::over_time::{BUCKETS, LatencyOverTime, highest_ns, lowest_ns};
use iolab_workload::quantity::{format_ns, significant};
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::data::{CellValues, Data, measured};
use super::super::labels;
use super::super::model::{Axis, Field, FigureModel, Origin, Panel, Ticks};
use super::super::options::Options;
use super::super::scale::Scale;

/// Most columns of a panel; of more intervals neighbours are taken together.
const COLUMNS_MAX: usize = 128;
/// Most rows of a panel; of more buckets neighbours are taken together.
const ROWS_MAX: usize = 56;
/// Most panels: each is a cell.
const PANELS_MAX: usize = 12;
/// Where the last bucket, which has no end, is drawn to end, ns.
const LAST_NS: u64 = (1 << 36) - 1;

/// The error where no trial keeps its latency over time.
pub(super) fn none_kept() -> Error {
    Error::usage("no trial keeps its latency over time").hint(
        "measure with --soak TIME, or with --set latency_over_time=true; --kind course shows throughput",
    )
}

/// The share of the requests that a quantile stands for; `None` for other quantities.
pub(super) fn share_of(response: Response) -> Option<f64> {
    match response {
        Response::Latency => Some(0.5),
        Response::P90 => Some(0.9),
        Response::P99 => Some(0.99),
        Response::P999 => Some(0.999),
        Response::P9999 => Some(0.9999),
        Response::P99999 => Some(0.999_99),
        Response::Max => Some(1.0),
        Response::Throughput | Response::Iops | Response::Elapsed | Response::Cpu => None,
    }
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
    let mut all: Vec<String> = runs
        .iter()
        .flat_map(measured)
        .map(|sample| format!("{}s", timed.operation(sample)))
        .collect();
    all.sort();
    all.dedup();
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

/// The latencies over time of a measured trial of one of the runs, of the requests that all runs show; of the group asked about, or of
/// all. `None` where it has none of them.
pub(super) fn of_sample(
    runs: &[FigureRun<'_>],
    run: usize,
    sample: &Sample,
) -> Option<LatencyOverTime> {
    let shown = timed(runs).operation(sample);
    let run = &runs[run];
    let group = run.record().asked_group();
    let own = run.over_time.iter().filter(|one| {
        one.sample == sample.id
            && one.operation == shown
            && group.is_none_or(|group| one.group == group)
    });
    own.map(|one| one.latency.clone())
        .reduce(LatencyOverTime::plus)
}

/// Quantiles of a trial over time: the middle of each interval and its quantile, ns, with neighbours taken together until nearly all
/// intervals have enough requests; those that still have too few are left out.
pub(super) fn quantiles(
    mut latency: LatencyOverTime,
    response: Response,
    most: usize,
) -> Vec<(f64, f64)> {
    let Some(share) = share_of(response) else {
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
    let numbers = (0..latency.intervals.len()).map(|number| (number, &latency.intervals[number]));
    let points = numbers.filter(|(_, one)| one.total() >= least);
    points
        .filter_map(|(number, one)| {
            let (start, end) = latency.bounds_ns(number);
            Some((
                f64::midpoint(start as f64, end as f64),
                one.quantile_ns(share)? as f64,
            ))
        })
        .collect()
}

/// Makes the model of the heat map: a panel for each cell, the colour of a field the share of an interval's requests that took so long.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when no trial keeps its latency over time, or there are too many cells.
pub(in super::super) fn model(runs: &[FigureRun<'_>], _options: &Options) -> Result<FigureModel> {
    let data = Data::new(runs, Response::Throughput)?;
    let kept: Vec<(&CellValues<'_>, LatencyOverTime)> = data
        .rows
        .iter()
        .filter_map(|row| Some((row, of_cell(runs, row.run, row.cell.cell.id)?)))
        .collect();
    if kept.is_empty() {
        return Err(none_kept());
    }
    if kept.len() > PANELS_MAX {
        return Err(Error::usage(format!(
            "{} cells have a panel each, more than {PANELS_MAX}",
            kept.len()
        ))
        .hint("measure fewer cells, or see quantiles: --kind course --y p99"));
    }
    // Panels share their rows and their colours.
    let used = kept.iter().flat_map(|(_, latency)| &latency.intervals);
    let used = used.flat_map(|one| one.counts().iter().map(|(bucket, _)| usize::from(*bucket)));
    let (lowest, highest) = used.fold((BUCKETS, 0), |(low, high), bucket| {
        (low.min(bucket), high.max(bucket))
    });
    let step = (highest + 1 - lowest)
        .div_ceil(ROWS_MAX)
        .next_power_of_two();
    let lowest = lowest - lowest % step;
    let rows = BucketRows {
        lowest,
        step,
        count: (highest - lowest) / step + 1,
    };
    let time = time_axis(&kept);
    let several = kept.len() > 1;
    let shares: Vec<Vec<Vec<f64>>> = kept
        .iter()
        .map(|(_, latency)| rows.shares(latency))
        .collect();
    let all = shares.iter().flatten().flatten().copied();
    let least = all.filter(|share| *share > 0.0).fold(100.0, f64::min);
    let scale = Scale::Log {
        low: least.min(50.0),
        high: 100.0,
    };
    let panels = kept.iter().zip(&shares).map(|((row, latency), shares)| {
        let mut panel = Panel::new(time.clone(), rows.axis());
        if several {
            panel.title = title(&data, row);
        }
        panel.heat = Some((rows.fields(row, latency, shares), scale));
        panel
    });
    Ok(FigureModel {
        description: "Latency inside the trials, over their time".to_owned(),
        unit: "%".to_owned(),
        heat_label: "Share (%)".to_owned(),
        note: format!("Colour: share of the {} of an interval.", requests_of(runs)),
        ..FigureModel::of(panels.collect())
    })
}

/// The levels of a cell.
fn title(data: &Data<'_>, row: &CellValues<'_>) -> String {
    let levels = data.factors.iter().zip(&row.levels);
    let named: Vec<String> = levels
        .map(|(factor, level)| labels::level(factor, level))
        .collect();
    named.join(", ")
}

/// The latencies of the measured trials of a cell together, in at most so many intervals as there are columns.
fn of_cell(runs: &[FigureRun<'_>], run: usize, cell: i64) -> Option<LatencyOverTime> {
    let samples = measured(&runs[run]).filter(|sample| sample.cell == cell);
    let kept = samples.filter_map(|sample| of_sample(runs, run, sample));
    let sum = kept.reduce(LatencyOverTime::plus)?;
    (sum.total() > 0).then(|| sum.folded(COLUMNS_MAX))
}

/// Buckets of latency that are a row each.
struct BucketRows {
    /// The first bucket.
    lowest: usize,
    /// Buckets of a row.
    step: usize,
    count: usize,
}

impl BucketRows {
    /// Shares of the requests of each interval, percent, row by row.
    fn shares(&self, latency: &LatencyOverTime) -> Vec<Vec<f64>> {
        let shares = latency.intervals.iter().map(|one| {
            let mut shares = vec![0.0; self.count];
            for (bucket, count) in one.counts() {
                let row = (usize::from(*bucket) - self.lowest) / self.step;
                shares[row] += 100.0 * *count as f64 / one.total() as f64;
            }
            shares
        });
        shares.collect()
    }

    /// Ends of a row, ns.
    fn ends_ns(&self, row: usize) -> (u64, u64) {
        let first = self.lowest + row * self.step;
        let last = (first + self.step - 1).min(BUCKETS - 1);
        (lowest_ns(first), highest_ns(last))
    }

    fn fields(
        &self,
        row: &CellValues<'_>,
        latency: &LatencyOverTime,
        shares: &[Vec<f64>],
    ) -> Vec<Field> {
        let mut fields = Vec::new();
        for (column, own) in shares.iter().enumerate() {
            let (start, end) = latency.bounds_ns(column);
            let used = own.iter().enumerate().filter(|(_, share)| **share > 0.0);
            fields.extend(used.map(|(place, share)| {
                let (low, high) = self.ends_ns(place);
                let when = format_ns(f64::midpoint(start as f64, end as f64));
                Field {
                    x: (start as f64, end as f64),
                    y: (low.max(1) as f64, (high.min(LAST_NS) + 1) as f64),
                    value: *share,
                    label: String::new(),
                    hollow: false,
                    origin: Origin {
                        cell: Some(row.cell.cell.id),
                        n: None,
                        text: format!(
                            "after {when}: {} % of the requests took {} to {}",
                            significant(*share),
                            format_ns(low as f64),
                            format_ns(high as f64)
                        ),
                        x: when,
                        verdict: String::new(),
                    },
                }
            }));
        }
        fields
    }

    /// The axis of latencies.
    fn axis(&self) -> Axis {
        let (low, high) = (self.ends_ns(0).0, self.ends_ns(self.count - 1).1);
        Axis {
            label: "Latency".to_owned(),
            scale: Scale::Log {
                low: low.max(1) as f64,
                high: (high.min(LAST_NS) + 1) as f64,
            },
            ticks: Ticks::Time,
        }
    }
}

/// The axis of time, for the longest of the trials.
fn time_axis(kept: &[(&CellValues<'_>, LatencyOverTime)]) -> Axis {
    let spans = kept.iter().map(|(_, latency)| latency.span_ns);
    let span = spans.max().unwrap_or(1) as f64;
    let (factor, unit) = labels::time_unit(span);
    Axis {
        label: format!("Time in the trial ({unit})"),
        scale: Scale::Linear {
            low: 0.0,
            high: span,
        },
        ticks: Ticks::TimeIn { factor },
    }
}
