//! Merges the results of a trial's workers into one outcome.

use crate::arena::Pieces;
use crate::spare_histograms::SpareHistograms;
use crate::worker::WorkerOutcome;
use iolab_host::clock::Clock;
use iolab_workload::counters::{Counters, Hardware, ProcessIo};
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Outcome, either};
use iolab_workload::region_state::Region;

/// The outcome of all workers of a trial. Their used histograms go to `spare`.
pub(crate) fn merge(
    workers: Vec<WorkerOutcome>,
    clock: &Clock,
    (counters, region): (Counters, Region),
    clock_drift_ppm: f64,
    spare: &SpareHistograms,
) -> Outcome {
    let mut merged = sum(&workers, clock);
    merged.counters = Counters {
        hardware: merged.counters.hardware,
        buffer_piece_bytes: merged.counters.buffer_piece_bytes,
        ..counters
    };
    merged.region = region;
    merged.clock_drift_ppm = clock_drift_ppm;
    let series = workers.into_iter().map(|worker| {
        spare.put(worker.account.operations);
        worker.series
    });
    merged.series = crate::series::merged(series, clock);
    merged
}

/// The outcome of some workers, with the kernel's counters of their threads; without a series.
pub(crate) fn sum(workers: &[WorkerOutcome], clock: &Clock) -> Outcome {
    let mut merged = Outcome::default();
    let (mut first_start, mut last_start) = (u64::MAX, 0);
    let (mut first_end, mut last_end) = (u64::MAX, 0);
    let mut hardware: Option<Hardware> = None;
    let mut in_flight = Some(0.0);
    let mut pieces: Option<Pieces> = None;
    for worker in workers {
        hardware = Some(hardware.map_or(worker.hardware, |sum| sum.plus(worker.hardware)));
        pieces = either(pieces, worker.pieces, Pieces::plus);
        let counters = &mut merged.counters;
        counters.process_io = either(
            counters.process_io,
            worker.thread.process_io,
            ProcessIo::plus,
        );
        counters.usage = counters.usage.plus(worker.thread.usage);
        let times_ns = merged.add(&worker.account);
        merged.effective = worker.account.effective.clone();
        in_flight = in_flight
            .zip(own_in_flight(worker, times_ns, clock))
            .map(|(sum, own)| sum + own);
        first_start = first_start.min(worker.start);
        last_start = last_start.max(worker.start);
        first_end = first_end.min(worker.end);
        last_end = last_end.max(worker.end);
    }
    let spans = workers.iter().map(|worker| worker.series.span_ns(clock));
    let span_ns = spans.max().unwrap_or(0);
    let ended = |own: LatencyOverTime| match own.intervals.is_empty() {
        true => own,
        false => own.ended_at(span_ns),
    };
    merged.latency_over_time = merged.latency_over_time.map(|all| all.map(ended));
    merged.counters.hardware = hardware.unwrap_or_default();
    merged.counters.buffer_piece_bytes = pieces.map(|pieces| pieces.bytes / pieces.count);
    merged.in_flight = in_flight;
    merged.elapsed_ns = clock.ns_between(first_start, last_end);
    merged.all_active_ns = clock.ns_between(last_start, first_end);
    merged
}

/// Requests that a worker had in flight on average, whose times add up to `times_ns`; `None` if it did not record them.
fn own_in_flight(
    worker: &WorkerOutcome,
    times_ns: PerOperation<f64>,
    clock: &Clock,
) -> Option<f64> {
    let span_ns = clock
        .ns_between(worker.start, worker.end)
        .checked_sub(worker.account.end_sync_ns)?;
    let requests = || {
        worker
            .account
            .operations
            .iter()
            .filter(|(o, _)| o.is_request())
    };
    let is_timed = requests().all(|(_, tally)| tally.latency.len() >= tally.requests);
    let time_ns: f64 = requests().map(|(o, _)| times_ns[o]).sum();
    (is_timed && span_ns > 0).then(|| time_ns / span_ns as f64)
}
