//! Grades of claims on response times at requested rates, for storage with known capacity: the rates that are
//! sustained, and the median response time at the lowest and the highest of them. `claims.rs` explains how the
//! table of docs/METHODS.md is made.

use iolab_analysis::analysis::{HELD_FROM, analyse};
use iolab_analysis::claim::{Claim, Point, Standing, claims};
use iolab_record::{LatencySummary, RateReport, RunRecord, Sample};
use iolab_synthetic::{At, Disturbance, Disturber, Noise, Outcome, Scenario, Truth, latencies};
use iolab_workload::trial::Rate;

use super::claims::{FALSE_MAX, SAID_MIN, TRIALS, hold_each, outcome, runs, runs_beside, shapes};

/// Length of a schedule, s.
const SPAN_S: f64 = 0.5;
/// Longest wait of a request if the storage keeps up, s.
const WAIT_MAX_S: f64 = SPAN_S / 10.0;
/// Requested rates, requests per second.
const RATES: &str = "rate=500,1000,2000,4000";
/// Row label for a capacity between two rates.
const BETWEEN: &str = "two of four rates";
/// Capacities with their row labels: below all rates, between two, above all.
const CAPACITIES: [(f64, &str); 3] = [
    (300.0, "no rate"),
    (1400.0, BETWEEN),
    (20_000.0, "all rates"),
];

type Made = (RunRecord, Truth);

/// Storage that completes `capacity` requests per second.
fn storage(capacity: f64, noise: Noise, trials: u32) -> Scenario {
    Scenario {
        mb_s: capacity * 4096.0 / 1e6,
        noise,
        trials,
        ..Scenario::of("load-latency", &[RATES])
    }
}

/// Median response time of storage with this capacity at a rate, ns. It serves one request after another, and
/// excess requests wait until the end.
fn response_ns(rate: f64, capacity: f64) -> f64 {
    let (service, load) = (1.0 / capacity, rate / capacity);
    let wait = match load < 1.0 {
        true => (service * load / (2.0 * (1.0 - load))).min(WAIT_MAX_S),
        false => WAIT_MAX_S + (1.0 - 1.0 / load) * SPAN_S / 2.0,
    };
    (service + wait) * 1e9
}

/// The run as an open loop: the throughput of each trial is the capacity of the storage during it.
fn at_rates((mut record, truth): Made) -> Made {
    let rates: Vec<f64> = record
        .samples
        .iter()
        .map(|sample| {
            let mut cells = record.cells.iter();
            let cell = cells.find(|cell| cell.id == sample.cell).expect("a cell");
            let rate = cell.trial().rate().and_then(Rate::requests);
            rate.expect("a rate") as f64
        })
        .collect();
    for (sample, rate) in record.samples.iter_mut().zip(rates) {
        follow(sample, rate);
    }
    (record, truth)
}

/// Turns a trial into one at this rate.
fn follow(sample: &mut Sample, rate: f64) {
    let before = sample.requests();
    let capacity = before as f64 * 1e9 / sample.elapsed_ns as f64;
    let due = rate * SPAN_S;
    let made = due.min(capacity * SPAN_S).floor();
    let share = made / before as f64;
    let scaled = |count: u64| (count as f64 * share) as u64;
    sample.elapsed_ns = (SPAN_S * 1e9) as u64;
    sample.all_active_ns = sample.elapsed_ns;
    sample.rate_report = Some(RateReport {
        rate_wanted: rate,
        rate_achieved: made / SPAN_S,
        backlog_max: (due - made) as u64,
        backlog_end: (due - made) as u64,
    });
    let read = &mut sample.operations.read;
    (read.requests, read.bytes) = (made as u64, made as u64 * 4096);
    let service_ns = 1e9 / capacity;
    let waited_ns = response_ns(rate, capacity);
    read.latency = Some(Box::new(times(service_ns)));
    read.response = Some(Box::new(times(waited_ns)));
    read.lateness = Some(Box::new(times(waited_ns - service_ns)));
    let counters = &mut sample.counters;
    if let Some(device) = &mut counters.device {
        (device.read_ios, device.read_bytes) = (scaled(device.read_ios), scaled(device.read_bytes));
    }
    if let Some(own) = &mut counters.process_io {
        (own.rchar, own.syscr) = (scaled(own.rchar), scaled(own.syscr));
        own.read_bytes = scaled(own.read_bytes);
    }
    let stall = &mut counters.pressure.cpu_stall_ns;
    *stall = stall.map(|_| sample.elapsed_ns * 6 / 10);
}

fn times(p50_ns: f64) -> LatencySummary {
    latencies(p50_ns, [1.0, 1.5, 3.0, 4.0, 5.0])
}

/// Outcomes for the lowest and the highest rate claimed to be sustained, since each has its own interval. True
/// if the storage sustains the rate, and the response time is within its interval. Without such a claim, true
/// if the storage sustains none.
fn judged((record, _): Made, capacity: f64) -> [Outcome; 2] {
    let analysis = analyse(&record);
    let all = claims(&[&analysis]);
    let held = |one: &Point| {
        let rate = one.rate.expect("a load");
        let sustains = HELD_FROM * rate <= capacity;
        let truth = response_ns(rate, capacity);
        // Times are whole ns.
        let holds = |low: f64, high: f64| low - 1.0 <= truth && truth <= high + 1.0;
        outcome(sustains && one.interval.is_none_or(|(low, high)| holds(low, high)))
    };
    let is_told = |claim: &&Claim| claim.kind.name == "load" && claim.doubts.is_empty();
    let Some(load) = all.iter().find(is_told) else {
        return [Outcome::NotClaimed; 2];
    };
    let highest = |point: &&Point| {
        let all = [
            Standing::HighestAsked,
            Standing::HighestHeld,
            Standing::NotTooHigh,
        ];
        all.contains(&point.standing)
    };
    match load.points.as_slice() {
        [least, ..] if least.rate.is_some() => {
            let most = load.points.iter().find(highest);
            [held(least), most.map_or(Outcome::NotClaimed, held)]
        }
        [_, least, reached] if reached.value < HELD_FROM * least.value => {
            [outcome(capacity < least.value), Outcome::NotClaimed]
        }
        _ => [Outcome::NotClaimed; 2],
    }
}

#[test]
fn sustained_rates_and_their_times_are_claimed_correctly() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let is_little = name == "lognormal 3 %";
            for (capacity, holds) in CAPACITIES {
                // Scatter matters most if the capacity is between two rates.
                if !is_little && holds != BETWEEN {
                    continue;
                }
                let scenario = storage(capacity, noise, trials);
                let row = format!("holds {holds}, {name}, n = {trials}");
                let run = scenario.runs();
                let [least, most] = hold_each(
                    (["load, lowest rate", "load, highest rate"], &row),
                    (runs(), FALSE_MAX),
                    |seed| at_rates(run(seed)),
                    |run| judged(run, capacity),
                );
                if is_little {
                    assert!(least.is_true_at_least(SAID_MIN), "{least}");
                    let is_told = holds != "no rate";
                    assert!(!is_told || most.is_true_at_least(SAID_MIN), "{most}");
                }
            }
        }
    }
}

/// Slowness caused by others is not attributed to the storage.
#[test]
fn times_of_disturbed_storage_are_not_claimed() {
    for by in [Disturber::Traffic, Disturber::Cpu] {
        let disturbed = Scenario {
            disturbances: vec![Disturbance::of_every_trial(by, At::all(), 0.65)],
            ..storage(1400.0, Noise::Lognormal { sigma: 0.03 }, 10)
        };
        let run = disturbed.runs();
        let kinds = [
            "load, lowest rate, disturbed",
            "load, highest rate, disturbed",
        ];
        hold_each(
            (kinds, &format!("{by:?}")),
            (runs_beside(1), FALSE_MAX),
            |seed| at_rates(run(seed)),
            |run| judged(run, 1400.0),
        );
    }
}
