//! Answers of a search for the greatest rate.

use std::collections::BTreeSet;
use std::time::Duration;

use iolab_analysis::doubt::{Doubt, DoubtKind, Doubts};
use iolab_analysis::fitness::{Answer, CellAnswer, Judged, LevelAnswer};
use iolab_analysis::slo::{RateAnswer, RateLimit, Search, SearchAnswer};
use iolab_record::ServedBy;
use iolab_report::layout::SCREEN_LINES;
use iolab_report::slo::SearchResult;
use iolab_workload::service_level::ServiceLevels;

fn text(found: &SearchAnswer) -> String {
    let found = SearchResult {
        found,
        is_complete: true,
    };
    let narrow = found.shown().screen(80);
    assert!(narrow.lines().count() <= SCREEN_LINES, "{narrow}");
    found.shown().screen(1000)
}

/// The sentences of an answer.
fn words(found: &SearchAnswer) -> String {
    let text = text(found);
    let lines = text
        .lines()
        .filter(|line| line.ends_with('.') || line.contains(" on "))
        .filter(|line| !line.starts_with("- Response times count from"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A search in which the levels hold up to a rate.
fn limit(up_to: u64) -> RateLimit {
    let mut search = Search::new(1000, 10, 100_000, 1);
    while let Some(rate) = search.step() {
        search.visited(rate <= up_to);
    }
    search.limit()
}

/// Verdict at a rate, with doubts that turn it.
fn at(rate: u64, levels: &ServiceLevels, measured: Answer, turned_by: Vec<Doubt>) -> RateAnswer {
    let level = |level| LevelAnswer {
        judged: Judged {
            level,
            estimate: Some(1e6),
            low: Some(1e6),
            high: Some(1e6),
            requests: 10_000,
            trials: 8,
            missed: 0,
            answer: measured,
            open: None,
            change: None,
        },
        turned_by: turned_by.clone(),
    };
    RateAnswer {
        rate,
        with_lower: measured,
        found: CellAnswer {
            cell: rate.to_string(),
            levels: levels.all().iter().copied().map(level).collect(),
            doubts: Doubts {
                all: turned_by.clone(),
                trials: 8,
                limit: None,
            },
            load_ns: 4_000_000_000,
        },
    }
}

fn doubt(doubt: Doubt) -> Vec<Doubt> {
    vec![Doubt {
        samples: (0..8).collect::<BTreeSet<i64>>(),
        ..doubt
    }]
}

fn memory() -> Vec<Doubt> {
    doubt(Doubt::of_source(ServedBy::Unknown, "no device is known"))
}

fn traffic() -> Vec<Doubt> {
    doubt(Doubt::of(DoubtKind::OtherTraffic, 0.97))
}

/// Levels that hold at 2800 requests/s and fail at 3200.
fn found(levels: &str) -> SearchAnswer {
    let levels: ServiceLevels = levels.parse().expect("levels");
    SearchAnswer {
        experiment: "load-latency".to_owned(),
        target: "/data".to_owned(),
        limit: limit(3000),
        holds: Some(at(2800, &levels, Answer::Yes, Vec::new())),
        fails: Some(at(3200, &levels, Answer::No, Vec::new())),
        binding: levels.all()[..1].to_vec(),
        times: Some((Duration::from_millis(250), Duration::from_millis(500))),
        doubts: Vec::new(),
        at_level: None,
        levels,
    }
}

#[test]
fn holding_rate_comes_first_then_failing_and_limit() {
    let one = found("p99<1ms");
    assert_eq!(one.answer(), Answer::Yes);
    insta::assert_snapshot!(text(&one));
    // 10 ms in 250 ms: a queue that grows by 4 % does not reach it.
    let mut short = found("p99<10ms");
    short.times = Some((Duration::from_millis(250), Duration::from_millis(250)));
    insta::assert_snapshot!(words(&short), @"
    load-latency on /data: p99<10ms holds at 2800 requests/s, fails at 3200 requests/s
    - In trials of 250 ms an overload of up to 4.0 % does not show. A larger --budget makes them longer.
    - Not covered: loads longer than 250 ms, which use up burst credits and caches; stalls so rare that 8 trials can miss them (in up to 31 % of trials).
    ");
}

#[test]
fn doubt_that_reverses_an_end_comes_first() {
    let levels: ServiceLevels = "p99<1ms".parse().expect("levels");
    let ends = [(Answer::Yes, memory()), (Answer::No, traffic())];
    let told = ends.map(|(answer, doubts)| {
        let mut turned = found("p99<1ms");
        match answer {
            Answer::Yes => turned.holds = Some(at(2800, &levels, answer, doubts)),
            _ => turned.fails = Some(at(3200, &levels, answer, doubts)),
        }
        assert_eq!(turned.answer(), Answer::CannotTell);
        words(&turned)
    });
    insta::assert_snapshot!(told.join("\n"), @"
    load-latency on /data: cannot tell which rate the storage sustains: the source of the bytes is unknown in 8 of 8 trials (the first: no device is known).
    As measured: p99<1ms holds at 2800 requests/s, fails at 3200 requests/s.
    - 'iolab doctor TARGET' shows what iolab can see of the target.
    load-latency on /data: cannot tell from which rate on the storage fails: other programs used the disk (97 % of its traffic) in 8 of 8 trials.
    As measured: p99<1ms holds at 2800 requests/s, fails at 3200 requests/s.
    - Stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run.
    - Not covered: loads longer than 500 ms, which use up burst credits and caches.
    ");
}

#[test]
fn missing_end_leaves_the_answer_open() {
    // Doubts that may have kept an end from being shown are printed with it, and so is advice.
    let told = [(true, false), (false, true), (false, false)].map(|(holds, fails)| {
        let mut open = found("p99<1ms");
        open.holds = open.holds.filter(|_| holds);
        open.fails = open.fails.filter(|_| fails);
        open.doubts = traffic();
        assert_eq!(open.answer(), Answer::CannotTell);
        words(&open)
    });
    insta::assert_snapshot!(told.join("\n"), @"
    load-latency on /data: p99<1ms holds at 2800 requests/s; no higher rate was shown to fail (other traffic)
    - Stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run.
    - The trials do not show both ends. A larger --budget allows more trials, and longer ones at small rates.
    - Not covered: loads longer than 500 ms, which use up burst credits and caches.
    load-latency on /data: p99<1ms fails at 3200 requests/s; no lower rate was shown to hold (other traffic)
    - Stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run.
    - The trials do not show both ends.
    load-latency on /data: cannot tell at which rate p99<1ms holds: no rate holds, no rate fails, other traffic
    - Stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run.
    - The trials do not show both ends. A larger --budget allows more trials, and longer ones at small rates.
    ");
    let unlimited = limit(1_000_000);
    assert_eq!((unlimited.holds, unlimited.fails), (Some(101_070), None));
}

/// More trials do not help if the value equals the level.
#[test]
fn value_at_the_level_suggests_another_level() {
    let mut open = found("p99<1ms");
    open.holds = None;
    let mut at_level = at(2800, &open.levels, Answer::CannotTell, Vec::new());
    at_level.found.levels[0].judged.open = Some(DoubtKind::AtLevel);
    open.at_level = Some(at_level);
    let said = words(&open);
    insta::assert_snapshot!(said.lines().last().unwrap(), @"- At 2800 requests/s, p99<1ms: the value is at the level (the whole interval lies within 5 % of it). A larger --budget does not decide it there, only another level.");
}
