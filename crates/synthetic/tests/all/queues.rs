//! Grades of claims on requests in flight: a small gain by a queue, the number that reached the device, and
//! what they waited for. `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{Cause, Claim, QueueLimit, claims};
use iolab_plan::experiment::Experiment;
use iolab_record::{RunRecord, Sample};
use iolab_synthetic::{At, Noise, Outcome, Scenario, Truth};
use iolab_workload::response::Response;

use super::claims::{SAID_MIN, drifting, hold, hold_made, outcome, place, runs, shapes};

/// Trials of each cell: the fewest with an interval, and more.
const TRIALS: [u32; 2] = [6, 16];
/// Number of requests in flight.
const DEPTH: f64 = 8.0;
/// Share of the requests in flight below which a gain is claimed.
const GAIN: f64 = 0.5;
/// Gain below which requests are served one after another.
const ONE_BY_ONE: f64 = 1.25;

/// Cells with one and eight requests in flight, where eight gain this factor; the response is time.
fn depths(noise: Noise, trials: u32, gain: f64) -> Scenario {
    let two = Scenario::of("read-random", &["bs=4k", "backend=io_uring", "depth=1,8"]);
    Scenario {
        experiment: Experiment {
            response: Response::Latency,
            ..two.experiment
        },
        effects: vec![(At::levels("depth=8"), gain)],
        noise,
        common: drifting(),
        trials,
        ..two
    }
}

/// Whether the claimed gain of a queue is the true one, and less than half of its length.
fn gained((record, truth): (RunRecord, Truth)) -> Outcome {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    Outcome::of_all(all.iter().map(|claim| {
        let Claim::Queued(queued) = claim else {
            return Outcome::NotClaimed;
        };
        let alone = truth.cells.iter().find(|one| one.cell.trial().depth == 1);
        let gain = truth.cells[place(queued.cell, &truth)].mb_s / alone.expect("one alone").mb_s;
        let (low, high) = queued.gain.interval.expect("an interval");
        let is_limit = match queued.limit {
            QueueLimit::OneByOne => gain < ONE_BY_ONE,
            QueueLimit::Cpus => false,
            QueueLimit::Storage | QueueLimit::Unknown => true,
        };
        outcome(gain < GAIN * DEPTH && low <= gain && gain <= high && is_limit)
    }))
}

#[test]
fn little_gain_of_a_queue_is_reported() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            // None, the least that is not served one after another, and half of all, which is no longer little.
            for gain in [1.0, ONE_BY_ONE, GAIN * DEPTH] {
                let queue = depths(noise, trials, gain);
                let named = format!("{name}, gain {gain}");
                let score = hold("gain of a queue", &queue, &named, gained);
                let is_large = gain == 1.0 && name == "lognormal 3 %";
                assert!(!is_large || score.is_true_at_least(SAID_MIN), "{score}");
            }
        }
    }
}

/// Threads with this share of requests at the device, by its counters with a scatter of a tenth, and as large a
/// gain in IOPS.
fn at_device(noise: Noise, trials: u32, share: f64) -> impl Fn(u64) -> (RunRecord, Truth) {
    let threads = Scenario {
        effects: vec![(At::levels("threads=8"), 8.0 * share)],
        noise,
        common: drifting(),
        trials,
        ..Scenario::of(
            "why-serialised",
            &[
                "workload=RR", "backend=sync,psync", "descriptors=private", "layout=shared",
            ],
        )
    };
    let run = threads.runs();
    move |seed| {
        let (mut record, truth) = run(seed);
        let own = |sample: &Sample| {
            let cell = record.cells.iter().find(|cell| cell.id == sample.cell);
            match cell.expect("a cell").trial().threads {
                1 => 1.0,
                many => f64::from(many) * share,
            }
        };
        let queues: Vec<f64> = record.samples.iter().map(own).collect();
        for (sample, queue) in record.samples.iter_mut().zip(queues) {
            // From 0.9 to 1.1, the same for every run with this seed.
            let scatter = 0.9 + 0.2 * (sample.seed % 1009) as f64 / 1008.0;
            let queue_ms = queue * scatter * sample.elapsed_ns as f64 / 1e6;
            if let Some(device) = &mut sample.counters.device {
                device.queue_ms = Some(queue_ms as u64);
            }
        }
        (record, truth)
    }
}

/// Whether requests claimed to be missing are, and the cell claimed to show the reason is faster.
fn missing((record, _): (RunRecord, Truth), share: f64) -> Outcome {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    Outcome::of_all(all.iter().map(|claim| match claim {
        // Both backends are equally fast: neither shows what the other waits for.
        Claim::TooFew(few) => outcome(share < GAIN && !matches!(few.cause, Cause::Shared(_))),
        _ => Outcome::NotClaimed,
    }))
}

#[test]
fn requests_missing_at_the_device_are_claimed_correctly() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            for share in [1.0, 0.7, 0.25] {
                let named = format!("{name}, {share} of them at the device, n = {trials}");
                let score = hold_made(
                    ("requests in flight", &named),
                    runs(),
                    at_device(noise, trials, share),
                    |run| missing(run, share),
                );
                let is_few = share == 0.25 && name == "lognormal 3 %";
                assert!(!is_few || score.is_true_at_least(SAID_MIN), "{score}");
            }
        }
    }
}
