//! What a search for the greatest rate answers.

use std::time::Duration;

use iolab_analysis::slo::{Limit, RatePoint, Search, Step};
use iolab_report::slo::Searched;

/// Lines of an answer at most.
const LINES_MAX: usize = 20;

fn answer(limit: &Limit, levels: &str, doubts: &[String], times: (u64, u64)) -> String {
    let levels = levels.parse().expect("levels");
    let searched = Searched {
        experiment: "load-latency",
        levels: &levels,
        limit,
        doubts,
        times: Some((
            Duration::from_millis(times.0),
            Duration::from_millis(times.1),
        )),
    };
    let narrow = searched.text(80);
    assert!(narrow.lines().count() <= LINES_MAX, "{narrow}");
    searched.text(100)
}

/// A search in which the levels hold up to a rate.
fn found(up_to: u64) -> Limit {
    let mut search = Search::new(1000, 10, 100_000, 1);
    while let Step::Visit(rate) = search.step() {
        search.visited(rate <= up_to);
    }
    search.limit()
}

#[test]
fn an_answer_has_the_rate_its_interval_the_level_and_what_it_is_not() {
    let text = answer(&found(3000), "p99<1ms", &[], (250, 500));
    for part in [
        "load-latency: p99<1ms holds up to ",
        "(95 % interval ",
        "kept the level",
        "half of the trials of 250ms to 500ms keep the level",
        "are not covered",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("overload"), "{text}");
    // 10 ms in 250 ms: a queue that grows by 4 % does not reach it.
    let text = answer(&found(3000), "p99<10ms", &[], (250, 250));
    assert!(text.contains("overload of up to 4.0 %"), "{text}");
}

#[test]
fn what_is_not_storage_is_said_first() {
    let doubt = "served by not-storage: the target is memory, not storage";
    let open = Limit {
        fails: None,
        contradicts: true,
        ..found(3000)
    };
    let doubts = vec![doubt.to_owned(); 3];
    for limit in [found(3000), open] {
        let text = answer(&limit, "p99<10ms", &doubts, (250, 250));
        let text = text.replace("\n  ", " ");
        let first = format!("load-latency: cannot tell which rate the storage sustains: {doubt}");
        assert!(text.starts_with(&first), "{text}");
        assert!(
            text.contains("\nAs measured: p99<10ms holds up to"),
            "{text}"
        );
    }
}

#[test]
fn open_ends_are_said_to_be_open() {
    let open = |holds, fails| {
        let limit = Limit {
            holds,
            fails,
            estimate: None,
            points: vec![RatePoint {
                rate: 1000,
                trials: 3,
                kept: 2,
                holds: None,
            }],
            contradicts: false,
        };
        answer(&limit, "p99<1ms", &[], (250, 250))
    };
    for (text, part) in [
        (open(Some(900), None), "holds up to 900 requests/s at least"),
        (open(None, Some(2000)), "fails from 2000 requests/s on"),
        (open(None, None), "cannot tell at which rate p99<1ms holds"),
    ] {
        assert!(text.contains(part) && text.contains("open end"), "{text}");
    }
    let limit = found(1_000_000);
    assert_eq!(
        (limit.holds, limit.fails),
        (Some(101_070), None),
        "{limit:?}"
    );
}
