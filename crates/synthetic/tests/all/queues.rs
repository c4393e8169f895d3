//! Grades of claims on requests in flight: a small gain by a queue, the number that reached the device, and
//! what they waited for. `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{claims, kind};
use iolab_record::{RunRecord, Sample};
use iolab_synthetic::{At, Curve, Noise, Outcome, Scenario, Truth};

use super::claims::{SAID_MIN, TRIALS, hold, hold_made, outcome, runs, shapes};

/// Share of the requests in flight below which a gain is claimed.
const GAIN: f64 = 0.5;

/// Sizes with two and eight requests in flight. Eight gain the factor `gain`. Throughput is proportional to the
/// size up to 64 KiB, and constant above.
fn sizes(sizes: &str, noise: Noise, trials: u32, gain: f64) -> Scenario {
    Scenario {
        curves: vec![("bs", Curve::Plateau { from: 65536.0 })],
        effects: vec![(At::levels("depth=8"), gain)],
        ..Scenario::of("read-random", &[sizes, "backend=io_uring", "depth=2,8"])
            .drifting(noise, trials)
    }
}

/// Whether claimed limits agree with the curve: limits of requests up to 64 KiB, limits of bytes from there.
fn limited((record, _): (RunRecord, Truth), gain: f64) -> Outcome {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    Outcome::of_all(all.iter().map(|claim| {
        let [_, _, from, to] = claim.points.as_slice() else {
            let is_of_one = claim.kind.name == "flight-limit";
            return if is_of_one {
                outcome(gain == 1.0)
            } else {
                Outcome::NotClaimed
            };
        };
        let is_right = match claim.kind.name {
            "request-limit" => to.value <= 65536.0,
            "throughput-limit" => from.value >= 65536.0,
            _ => return Outcome::NotClaimed,
        };
        outcome(gain == 1.0 && is_right)
    }))
}

#[test]
fn limits_are_reported_only_without_gain() {
    for (name, noise) in shapes() {
        for (kind, bs) in [
            ("limit", "bs=4k,16k,64k,256k,1M"),
            ("limit of one size", "bs=4k"),
        ] {
            for gain in [1.0, 1.5, 4.0] {
                let named = format!("{name}, gain {gain}");
                let score = hold(kind, &sizes(bs, noise, 30, gain), &named, |run| {
                    limited(run, gain)
                });
                let is_small = gain == 1.0 && name == "lognormal 3 %";
                assert!(!is_small || score.is_true_at_least(SAID_MIN), "{score}");
            }
        }
    }
}

/// Threads with this share of requests at the device, by its counters with a scatter of a tenth, and as large a
/// gain in IOPS.
fn at_device(noise: Noise, trials: u32, share: f64) -> impl Fn(u64) -> (RunRecord, Truth) {
    let threads = Scenario {
        effects: vec![(At::levels("threads=8"), 8.0 * share)],
        ..Scenario::of(
            "why-serialised",
            &[
                "workload=RR", "backend=sync,psync", "descriptors=private", "layout=shared",
            ],
        )
        .drifting(noise, trials)
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
    // Both backends are equally fast: neither shows what the other waits for.
    let of_faster = [&kind::SHARED_FILE, &kind::SHARED_DESCRIPTOR, &kind::SEEKS];
    Outcome::of_all(all.iter().map(|claim| match claim.kind.name {
        "serialised" => outcome(share < GAIN && !of_faster.contains(&claim.kind)),
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
