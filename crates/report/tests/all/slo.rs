//! Answers of a search for the greatest rate.

use std::collections::BTreeSet;
use std::time::Duration;

use iolab_analysis::doubt::{Doubt, DoubtKind, Doubts};
use iolab_analysis::fitness::{Answer, CellAnswer, Judged, LevelAnswer};
use iolab_analysis::slo::{RateAnswer, RateLimit, Search, SearchAnswer, Step};
use iolab_record::ServedBy;
use iolab_report::layout::SCREEN_LINES;
use iolab_report::slo::SearchResult;
use iolab_workload::response::ServiceLevels;

fn text(found: &SearchAnswer) -> String {
    let found = SearchResult {
        found,
        is_complete: true,
    };
    let narrow = found.shown().screen(80);
    assert!(narrow.lines().count() <= SCREEN_LINES, "{narrow}");
    found.shown().screen(1000)
}

/// A search in which the levels hold up to a rate.
fn limit(up_to: u64) -> RateLimit {
    let mut search = Search::new(1000, 10, 100_000, 1);
    while let Step::Visit(rate) = search.step() {
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
    let said = text(&short);
    insta::assert_snapshot!(said);
}

#[test]
fn doubt_that_reverses_an_end_comes_first() {
    let levels: ServiceLevels = "p99<1ms".parse().expect("levels");
    let mut turned = found("p99<1ms");
    turned.holds = Some(at(2800, &levels, Answer::Yes, memory()));
    assert_eq!(turned.answer(), Answer::CannotTell);
    insta::assert_snapshot!(text(&turned));
    let mut turned = found("p99<1ms");
    turned.fails = Some(at(3200, &levels, Answer::No, traffic()));
    assert_eq!(turned.answer(), Answer::CannotTell);
    insta::assert_snapshot!(text(&turned));
}

#[test]
fn missing_end_leaves_the_answer_open() {
    for (holds, fails) in [(true, false), (false, true), (false, false)] {
        let mut open = found("p99<1ms");
        open.holds = open.holds.filter(|_| holds);
        open.fails = open.fails.filter(|_| fails);
        assert_eq!(open.answer(), Answer::CannotTell);
        insta::assert_snapshot!(text(&open));
    }
    // Doubts that may have kept an end from being shown are printed with it, and so is advice.
    let told = [(true, false), (false, true), (false, false)].map(|(holds, fails)| {
        let mut open = found("p99<1ms");
        open.holds = open.holds.filter(|_| holds);
        open.fails = open.fails.filter(|_| fails);
        open.doubts = traffic();
        let said = text(&open);
        let lines: Vec<&str> = said.lines().collect();
        let remedy = lines.iter().filter(|line| line.contains("Stop "));
        [&lines[..1], &remedy.copied().collect::<Vec<_>>()]
            .concat()
            .join("\n")
    });
    insta::assert_snapshot!(told.join("\n"), @"
    load-latency on /data: p99<1ms holds at 2800 requests/s; no higher rate was shown to fail (other traffic)
    - Stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run.
    load-latency on /data: p99<1ms fails at 3200 requests/s; no lower rate was shown to hold (other traffic)
    - Stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run.
    load-latency on /data: cannot tell at which rate p99<1ms holds: no rate holds, no rate fails, other traffic
    - Stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run.
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
    let said = text(&open);
    let remarks: Vec<&str> = said.lines().filter(|line| line.starts_with("- ")).collect();
    insta::assert_snapshot!(remarks.join("\n"), @r"
    - At 2800 requests/s, p99<1ms: the value is at the level (the whole interval lies within 5 % of it). A larger --budget does not decide it there, only another level.
    - Response times count from the scheduled start of a request.
    ");
}
