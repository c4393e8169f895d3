//! Latency inside the trials, over their time.

use iolab_analysis::analysis::Response;
use iolab_record::{Sample, ShownLatency};
use iolab_workload::Error;
use iolab_workload::escape_control::escape_control;
use iolab_workload::histogram::over_time::LatencyOverTime;

use super::super::FigureRun;
use super::super::data::measured;

/// The error where no trial keeps its latency over time.
pub(super) fn none_kept() -> Error {
    Error::usage("no trial keeps its latency over time").hint(
        "measure with --soak TIME, or with --set latency_over_time=true; --kind course shows throughput",
    )
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
