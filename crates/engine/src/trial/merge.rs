//! What the workers of a trial did, as one outcome.

use crate::arena::Pieces;
use crate::worker::WorkerOutcome;
use iolab_observe::clock::Clock;
use iolab_spec::counters::{Counters, Hardware};
use iolab_spec::cpus::Cpus;
use iolab_spec::histogram::{LatencyHistogram, new_latency_histogram};
use iolab_spec::outcome::{Ended, Failure, Outcome, Tally, Waits};
use iolab_spec::region::Region;
use iolab_spec::request_sizes::RequestSizes;
use iolab_spec::series::Series;

pub(crate) fn merge(
    outcomes: Vec<WorkerOutcome>,
    clock: &Clock,
    (counters, region): (Counters, Region),
    clock_drift_ppm: f64,
) -> Outcome {
    let mut merged = Outcome {
        reads: Tally::default(),
        writes: Tally::default(),
        trims: Tally::default(),
        syncs: 0,
        sync_latency: new_latency_histogram(),
        errors: 0,
        failure: None,
        ended: Ended::Done,
        elapsed_ns: 0,
        all_active_ns: 0,
        end_sync_ns: 0,
        paused_ns: 0,
        clock_drift_ppm,
        counters,
        region,
        effective: Default::default(),
        rate_report: None,
        series: Series::default(),
        verified: None,
        request_sizes: RequestSizes::default(),
        cpus_used: Cpus::default(),
        waited: None,
    };
    let mut series = Vec::new();
    let (mut first_start, mut last_start) = (u64::MAX, 0);
    let (mut first_end, mut last_end) = (u64::MAX, 0);
    let mut hardware: Option<Hardware> = None;
    let mut pieces: Option<Pieces> = None;
    for worker in outcomes {
        hardware = Some(hardware.map_or(worker.hardware, |sum| sum.plus(worker.hardware)));
        pieces = match (pieces, worker.pieces) {
            (Some(sum), Some(part)) => Some(sum.plus(part)),
            (sum, part) => sum.or(part),
        };
        add(&mut merged.reads, worker.reads);
        add(&mut merged.writes, worker.writes);
        add(&mut merged.trims, worker.trims);
        merged.syncs += worker.syncs;
        merged.paused_ns += worker.paused_ns;
        merged.waited = match (merged.waited, worker.waited) {
            (Some(sum), Some(part)) => Some(sum + part),
            (sum, part) => sum.or(part),
        };
        if let Some(seen) = &worker.cpus {
            merged.cpus_used = merged.cpus_used.plus(&seen.cpus());
        }
        merged.request_sizes = merged.request_sizes.plus(worker.sizes);
        add_histogram(&mut merged.sync_latency, &worker.sync_latency);
        merged.errors += worker.errors;
        merged.failure = merged.failure.or(worker.failure.map(Failure::Request));
        merged.ended = graver(merged.ended, worker.ended);
        merged.end_sync_ns = merged.end_sync_ns.max(worker.end_sync_ns);
        merged.effective = worker.effective;
        series.push(worker.series);
        merged.rate_report = match (merged.rate_report, worker.rate_report) {
            (Some(sum), Some(part)) => Some(sum.plus(part)),
            (sum, part) => sum.or(part),
        };
        first_start = first_start.min(worker.start);
        last_start = last_start.max(worker.start);
        first_end = first_end.min(worker.end);
        last_end = last_end.max(worker.end);
    }
    merged.counters.hardware = hardware.unwrap_or_default();
    merged.counters.buffer_piece_bytes = pieces.map(|pieces| pieces.bytes / pieces.count);
    merged.series = crate::series::merged(series.into_iter(), clock);
    merged.elapsed_ns = clock.ns_between(first_start, last_end);
    merged.all_active_ns = clock.ns_between(last_start, first_end);
    merged
}

fn add(sum: &mut Tally, part: Tally) {
    sum.requests += part.requests;
    sum.bytes += part.bytes;
    sum.short_transfers += part.short_transfers;
    add_histogram(&mut sum.latency, &part.latency);
    match (&mut sum.waits, part.waits) {
        (Some(Waits { response, lateness }), Some(part)) => {
            add_histogram(response, &part.response);
            add_histogram(lateness, &part.lateness);
        }
        (waits @ None, part) => *waits = part,
        (Some(_), None) => {}
    }
}

fn add_histogram(sum: &mut LatencyHistogram, part: &LatencyHistogram) {
    if !part.is_empty() {
        sum.add(part).expect("the sum has the widest bounds in use");
    }
}

fn graver(a: Ended, b: Ended) -> Ended {
    let rank = |ended| match ended {
        Ended::Done => 0,
        Ended::Time => 1,
        Ended::Interrupted => 2,
        Ended::Failed => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}
