//! Grades of answers to service levels (`--slo`, `fit`), for requests with known times: yes, no, or neither.
//! `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::analysed_run::{AnswerBasis, RunAnswer};
use iolab_analysis::fitness::{Answer, UnseenStalls};
use iolab_record::{Asked, LatencyOf, Operation, PartId, Question, RunRecord, SampleLatency};
use iolab_synthetic::{At, Disturbance, Disturber, Noise, Outcome, Scenario, Truth};
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::response::Response;
use iolab_workload::service_level::ServiceLevels;

use super::claims::{
    SAID_MIN, TRIALS, few_runs, hold_each, hold_made, makes_table, outcome, shapes,
};

/// Requests per trial.
const REQUESTS: u32 = 300;
/// Standard deviation of the logarithm of the times within a trial.
const SIGMA: f64 = 0.5;
/// Number of times from which the true quantile is computed.
const TIMES: usize = 200_000;
/// Median time of a request at 100 MB/s, ns.
const MEDIAN_NS: f64 = 40_960.0;

type Made = (RunRecord, Truth);

fn reads(noise: Noise, trials: u32) -> Scenario {
    Scenario {
        noise,
        trials,
        ..Scenario::of("read-random", &["bs=4k"])
    }
}

/// True quantiles of all requests, over trials with this scatter, ns.
fn quantiles(noise: Noise, shares: [f64; 2]) -> [f64; 2] {
    let (mut trials, mut within) = (noise.draws(1), times_within(2));
    let mut all: Vec<f64> = (0..TIMES)
        .map(|_| MEDIAN_NS * (within() - trials.next_log()).exp())
        .collect();
    all.sort_by(f64::total_cmp);
    shares.map(|share| all[(share * TIMES as f64) as usize])
}

/// Logarithms of times within a trial, with median 0.
fn times_within(seed: u64) -> impl FnMut() -> f64 {
    let mut draws = Noise::Lognormal { sigma: SIGMA }.draws(seed);
    move || draws.next_log()
}

/// Times of the requests of each trial, with the trial's own median.
fn latencies(record: &RunRecord) -> Vec<SampleLatency> {
    let of = |sample: &iolab_record::Sample| {
        let mut within = times_within(sample.seed);
        let latency = sample.operations.read.latency.as_ref();
        let median = latency.map_or(Some(1.0), |own| own[Response::Latency]);
        let median = median.expect("a median");
        let mut histogram = new_latency_histogram();
        for _ in 0..REQUESTS {
            histogram.saturating_record((median * within().exp()) as u64);
        }
        SampleLatency {
            sample: sample.id,
            part: PartId::default(),
            of: LatencyOf::service(Operation::Read),
            histogram,
        }
    };
    record.samples.iter().map(of).collect()
}

/// Answer to a level in ns, with the stalls that a yes does not exclude.
fn answer((mut record, _): Made, quantile: &str, level: f64) -> (Answer, Option<UnseenStalls>) {
    let levels: ServiceLevels = format!("{quantile}<{level:.0}ns").parse().expect("a level");
    record.experiment.asked = Some(Question::of_levels(Asked::Cells, &levels));
    let latencies = latencies(&record);
    let answer = RunAnswer::of(&record, latencies.into_iter().map(Ok));
    let answer = answer.expect("latencies").expect("a question");
    let AnswerBasis::Cells(found) = &answer.found else {
        panic!("{answer:?}");
    };
    (answer.answer(), found[0].unseen_stalls())
}

/// Whether the answer to a level is true; `level` and the truth are in ns.
fn answered(run: Made, quantile: &str, level: f64, truth: f64) -> Outcome {
    match answer(run, quantile, level).0 {
        Answer::Yes => outcome(truth < level),
        Answer::No => outcome(truth >= level),
        Answer::CannotTell => Outcome::NotClaimed,
    }
}

#[test]
fn levels_are_said_to_hold_only_correctly() {
    for (name, noise) in shapes() {
        let [p50, p99] = quantiles(noise, [0.5, 0.99]);
        for trials in TRIALS {
            for (quantile, truth) in [("p50", p50), ("p99", p99)] {
                // With a tenth of stalled trials, six trials contain none in half of the runs: no answer about
                // the slowest requests can include them.
                let is_unseen = quantile == "p99" && matches!(noise, Noise::Stalls { .. });
                let is_little = name == "lognormal 3 %";
                if trials > TRIALS[0] && !is_little {
                    continue;
                }
                // Just outside the margin, on either side, where an answer is most easily false, and far from
                // it.
                let ratios: &[f64] = match trials > TRIALS[0] {
                    true => &[0.67, 0.94, 1.06, 1.5],
                    false => &[0.94, 1.06],
                };
                for &ratio in ratios {
                    let scenario = reads(noise, trials);
                    let row = format!("{quantile}, {name}, level at {ratio} of it, n = {trials}");
                    let make = scenario.runs();
                    let judge = |run| answered(run, quantile, ratio * truth, truth);
                    let named = ("service level", row.as_str());
                    if is_unseen {
                        if makes_table() {
                            let row = ([named.0], named.1);
                            hold_each(row, (few_runs(), 1.0), make, |run| [judge(run)]);
                        }
                        continue;
                    }
                    let score = hold_made(named, few_runs(), make, judge);
                    let is_far = !(0.9..1.1).contains(&ratio);
                    if is_far {
                        assert!(score.is_true_at_least(SAID_MIN), "{score}");
                    }
                }
            }
        }
    }
}

/// Other programs make storage look slower than it is, and a cache makes it look faster: neither counts as the
/// storage.
#[test]
fn levels_are_not_answered_by_disturbances() {
    let noise = Noise::Lognormal { sigma: 0.03 };
    let [p50, _] = quantiles(noise, [0.5, 0.99]);
    for (by, ratio, level) in [
        (Disturber::Traffic, 0.65, 1.2),
        (Disturber::Cpu, 0.65, 1.2),
        (Disturber::PageCache, 1.0 / 0.65, 0.8),
    ] {
        let disturbed = Scenario {
            disturbances: vec![Disturbance::of_every_trial(by, At::all(), ratio)],
            ..reads(noise, 10)
        };
        let make = disturbed.runs();
        let judge = |run| answered(run, "p50", level * p50, p50);
        hold_made(
            ("service level, disturbed", &format!("p50, {by:?}")),
            few_runs(),
            make,
            judge,
        );
    }
}

/// A level that fails only by stalls: a yes names the share of trials in which it does not exclude them, which
/// is at least the true one.
#[test]
fn yes_does_not_exclude_existing_stalls() {
    let share = 0.1;
    let noise = Noise::Stalls {
        share,
        ratio: 0.4,
        sigma: 0.03,
    };
    let [_, p99] = quantiles(noise, [0.5, 0.99]);
    for trials in [6, 16, 40] {
        let scenario = reads(noise, trials);
        let make = scenario.runs();
        let judge = |run| match answer(run, "p99", 0.94 * p99) {
            (Answer::Yes, unseen) => outcome(unseen.is_some_and(|unseen| unseen.share >= share)),
            (Answer::No | Answer::CannotTell, _) => Outcome::NotClaimed,
        };
        let row = format!("p99, level at 0.94 of it, n = {trials}");
        hold_made(
            ("service level, unseen stalls", &row),
            few_runs(),
            make,
            judge,
        );
    }
}
