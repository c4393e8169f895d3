//! Service levels at a rate: which times count, and how many requests a value takes.

use iolab_analysis::doubt::{DoubtClass, DoubtKind};
use iolab_analysis::fitness::{Answer, Judged, answers_of_cells};
use iolab_analysis::slo::{Search, SearchAnswer, Shown, level_values};
use iolab_record::{LatencyOf, Operation, PartId, RequestTime, RunRecord, Sample, SampleLatency};
use iolab_synthetic::{add_cell, around, rate_report, record};
use iolab_workload::Result;
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::trial::SyncPolicy;

/// A cell of reads and syncs at a rate. Each trial never issued `left` of its 1000 requests.
fn at_rate(left: u64) -> RunRecord {
    let mut record = record("load-latency", &["rate"]);
    let cell = add_cell(&mut record, &["rate=1000"], &around(1000.0));
    rate_report(&mut record, cell, 1000, left);
    for sample in &mut record.samples {
        sample.operations.sync.requests = sample.requests();
    }
    record
}

const SERVICE_MS: u64 = 2;
const RESPONSE_MS: u64 = 8;
const SYNC_MS: u64 = 2;

/// Times of each trial: reads that take 2 ms once they are issued, 8 ms from their intended start, and syncs of 2 ms.
fn times(record: &RunRecord, requests: u64) -> Vec<Result<SampleLatency>> {
    let of = |sample: &Sample, operation, quantity, ms: u64| {
        let mut histogram = new_latency_histogram();
        histogram.saturating_record_n(ms * 1_000_000, requests);
        Ok(SampleLatency {
            sample: sample.id,
            part: PartId::default(),
            of: LatencyOf {
                operation,
                quantity,
            },
            histogram,
        })
    };
    let each = |sample: &Sample| {
        [
            of(sample, Operation::Read, RequestTime::Service, SERVICE_MS),
            of(sample, Operation::Read, RequestTime::Response, RESPONSE_MS),
            of(sample, Operation::Sync, RequestTime::Service, SYNC_MS),
        ]
    };
    record.samples.iter().flat_map(each).collect()
}

fn levels(text: &str) -> ServiceLevels {
    text.parse().expect("levels")
}

fn judged(record: &RunRecord, level: &str, requests: u64) -> Judged {
    let found = answers_of_cells(&levels(level), record, times(record, requests)).expect("times");
    found[0].levels[0].judged.clone()
}

#[test]
fn requests_due_at_end_count_with_own_time() {
    // 1000 requests, of which the last 20 were due when the schedule ended, and issued after it.
    let kept = judged(&at_rate(20), "reads.max<50ms", 1000);
    assert_eq!(kept.answer, Answer::Yes, "{kept:?}");
    // More requests are given up, and waited for longer than the trial shows.
    let missed = judged(&at_rate(40), "reads.max<50ms", 1000);
    assert_eq!(missed.answer, Answer::No, "{missed:?}");
}

#[test]
fn response_times_cover_requests_but_not_syncs() {
    let all_made = at_rate(0);
    let answer = |level: &str| judged(&all_made, level, 1000).answer;
    assert_eq!(answer("reads.p50<4ms"), Answer::No);
    assert_eq!(answer("reads.p50<10ms"), Answer::Yes);
    assert_eq!(answer("syncs.p50<4ms"), Answer::Yes);
}

/// The time of a trial includes the sync at its end; the time of a request does not.
#[test]
fn final_sync_counts_for_rates_not_times() {
    let mut record = record("write-random", &["bs"]);
    let cell = add_cell(&mut record, &["bs=4KiB"], &around(1000.0));
    for sample in &mut record.samples {
        sample.operations.write = std::mem::take(&mut sample.operations.read);
    }
    let mut doubted = |sync, level: &str| {
        let trial = &mut record.cells[cell].spec.trial;
        (trial.read_percent, trial.sync) = (0, sync);
        let found = answers_of_cells(&levels(level), &record, times(&record, 1000)).expect("times");
        let mut doubts = found[0].doubts.all.iter();
        doubts.any(|doubt| doubt.what.class() == DoubtClass::Durability)
    };
    assert!(!doubted(SyncPolicy::End, "throughput>10,iops>10"));
    assert!(doubted(SyncPolicy::End, "throughput>10,p99<1s"));
    assert!(doubted(SyncPolicy::None, "throughput>10"));
}

/// Requests that were never made waited at least as long as the trial.
#[test]
fn unmade_requests_are_slower_than_all_others() {
    let answer = |left: u64, level: &str| judged(&at_rate(left), level, 1000).answer;
    assert_eq!(answer(0, "reads.p99<10ms"), Answer::Yes);
    assert_eq!(answer(100, "reads.p99<10ms"), Answer::No);
    assert_eq!(answer(100, "reads.p50<10ms"), Answer::Yes);
    assert_eq!(answer(100, "syncs.p99<10ms"), Answer::Yes);
}

#[test]
fn longest_of_few_requests_is_no_upper_bound() {
    let all_made = at_rate(0);
    let found = |level: &str, requests: u64| {
        let mut few = all_made.clone();
        for sample in &mut few.samples {
            sample.operations.read.requests = requests;
        }
        let found = judged(&few, level, requests);
        (found.answer, found.open)
    };
    let few = Some(DoubtKind::FewRequests);
    assert_eq!(found("reads.max<10ms", 10), (Answer::CannotTell, few));
    assert_eq!(found("reads.max<10ms", 100), (Answer::Yes, None));
    assert_eq!(found("reads.max<4ms", 10), (Answer::No, None));
}

/// With fewer requests, a quantile would be the longest time.
#[test]
fn trials_of_few_requests_have_no_quantile() {
    let mut record = at_rate(0);
    let values = |record: &RunRecord, requests: u64| {
        let level = levels("reads.p99<10ms").all()[0];
        let found = level_values(&level, record, times(record, requests)).expect("times");
        let values = found.by_cell.values().map(Vec::len).sum::<usize>();
        (values, found.uncertain, found.without)
    };
    assert_eq!(values(&record, 99), (0, 0, 1));
    assert_eq!(values(&record, 100), (8, 1, 0));
    assert_eq!(values(&record, 1000), (8, 0, 0));
    // A cell without trials does not lack a value.
    record.samples.retain(|sample| sample.warmup);
    assert_eq!(values(&record, 99), (0, 0, 0));
}

#[test]
fn search_visits_and_names_only_allowed_rates() {
    for (start, kept) in [
        (1, true),
        (100, true),
        (5000, true),
        (1, false),
        (5000, false),
    ] {
        let mut search = Search::new(start, 10, 1000, 1);
        let mut rates = Vec::new();
        while let Some(rate) = search.step() {
            rates.push(rate);
            search.visited(kept);
            assert!(rates.len() < 500);
        }
        let undecided = |_: u64| Shown {
            answer: Answer::CannotTell,
            trials: 0,
        };
        rates.extend(search.confirm(&undecided));
        let (least, most) = (rates.iter().min(), rates.iter().max());
        assert!(
            least >= Some(&10) && most <= Some(&1002),
            "{start}: {rates:?}"
        );
        let limit = search.limit();
        let ends = [limit.holds, limit.fails].into_iter().flatten();
        for end in ends {
            assert!((10..=1002).contains(&end), "{start}: {limit:?}");
        }
    }
}

/// A rate without a trial is never an end, whatever other rates suggest.
#[test]
fn only_visited_rates_are_ends_of_the_limit() {
    let ends = |trials: &[(u64, bool)]| {
        let mut search = Search::new(100, 1, 1_000_000, 1);
        for (rate, kept) in trials {
            (0..30).for_each(|_| search.recall(*rate, *kept));
        }
        let limit = search.limit();
        (limit.holds, limit.fails)
    };
    assert_eq!(ends(&[(1024, true)]), (Some(1024), None));
    assert_eq!(ends(&[(1024, false)]), (None, Some(1024)));
    let (holds, fails) = ends(&[(1024, true), (2048, false)]);
    assert!(
        holds >= Some(1024) && fails <= Some(2048),
        "{holds:?} {fails:?}"
    );
}

/// The rates that a search asks for to confirm its ends, if the trials at each give this answer.
fn confirmed(search: &mut Search, decided: Answer) -> Vec<u64> {
    let mut asked: Vec<u64> = Vec::new();
    loop {
        let shown = |rate: u64| {
            let trials = asked.iter().filter(|other| **other == rate).count();
            let answer = match trials {
                0..8 => Answer::CannotTell,
                _ => decided,
            };
            Shown { answer, trials }
        };
        match search.confirm(&shown) {
            Some(rate) if asked.len() < 200 => asked.push(rate),
            _ => break,
        }
    }
    asked.dedup();
    asked
}

#[test]
fn only_ends_that_trials_tried_are_confirmed() {
    let asked = |kept: bool, decided: Answer| {
        let mut search = Search::new(100, 1, 1_000_000, 1);
        (0..30).for_each(|_| search.recall(1024, kept));
        confirmed(&mut search, decided)
    };
    assert_eq!(asked(true, Answer::Yes), [1024]);
    assert_eq!(asked(false, Answer::No), [1024]);
}

#[test]
fn rates_outside_of_the_search_confirm_nothing() {
    for limit in [11, 950] {
        let mut search = Search::new(100, 10, 1000, 1);
        while let Some(rate) = search.step() {
            search.visited(rate <= limit);
        }
        let asked = confirmed(&mut search, Answer::CannotTell);
        let is_allowed = |rate: &u64| (10..=1002).contains(rate);
        assert!(asked.len() > 2 && asked.iter().all(is_allowed), "{asked:?}");
    }
}

/// Result of a search over trials at pairs of a rate and the time of its requests, ms; `busy` disturbs some of
/// them.
fn searched(rates: &[(u64, u64)], busy: bool) -> SearchAnswer {
    let mut record = record("load-latency", &["rate"]);
    for (rate, _) in rates {
        let cell = add_cell(&mut record, &[&format!("rate={rate}")], &around(1000.0));
        rate_report(&mut record, cell, *rate, 0);
    }
    let mut all = Vec::new();
    for sample in &mut record.samples {
        let pressure = &mut sample.counters.pressure;
        pressure.cpu_stall_ns = busy.then_some(sample.elapsed_ns);
        let mut histogram = new_latency_histogram();
        let (_, ms) = rates[sample.cell as usize];
        histogram.saturating_record_n(ms * 1_000_000, 1000);
        all.push(Ok(SampleLatency {
            sample: sample.id,
            part: PartId::default(),
            of: LatencyOf {
                operation: Operation::Read,
                quantity: RequestTime::Response,
            },
            histogram,
        }));
    }
    SearchAnswer::of(&levels("reads.p50<10ms"), &record, all).expect("times")
}

#[test]
fn a_rate_holds_below_all_that_fail() {
    let ends = |rates: &[(u64, u64)]| {
        let found = searched(rates, false);
        let rate = |one: Option<iolab_analysis::slo::RateAnswer>| one.map(|one| one.rate);
        (rate(found.holds), rate(found.fails))
    };
    assert_eq!(ends(&[(100, 2), (200, 20)]), (Some(100), Some(200)));
    assert_eq!(
        ends(&[(100, 2), (200, 20), (400, 2)]),
        (Some(100), Some(200))
    );
    assert_eq!(ends(&[(100, 20), (200, 2)]), (None, Some(100)));
}

/// If values equal the level, more trials do not show on which side of it they lie.
#[test]
fn rate_at_the_level_explains_missing_end() {
    let at_level = |rates: &[(u64, u64)]| {
        let found = searched(rates, false);
        found.at_level.map(|rate| rate.rate)
    };
    assert_eq!(at_level(&[(100, 10), (200, 20)]), Some(100));
    assert_eq!(at_level(&[(100, 2), (200, 10)]), Some(200));
    assert_eq!(at_level(&[(100, 2), (200, 20)]), None);
    assert_eq!(at_level(&[(100, 2), (200, 10), (400, 20)]), None);
    assert_eq!(at_level(&[(100, 2)]), None);
    // Rates between that one and the limit may be open for any reason.
    assert_eq!(at_level(&[(100, 10), (200, 10), (400, 20)]), Some(100));
    assert_eq!(at_level(&[(100, 10)]), Some(100));
}

#[test]
fn doubts_are_named_if_an_end_is_missing() {
    let doubts = |rates: &[(u64, u64)]| searched(rates, true).doubts.len();
    assert_eq!(doubts(&[(100, 2)]), 1);
    assert_eq!(doubts(&[(100, 2), (200, 20)]), 0);
}
