//! Tests.

use proptest::prelude::*;

use super::*;
use crate::link::Gathered;

const SECOND: i64 = 1_000_000_000;

/// Reading of a clock with this offset and rate at a moment of true time, which is this rank's time.
fn reading(offset: i64, ppm: f64, at: i64) -> i64 {
    offset + at + (at as f64 * ppm * 1e-6).round() as i64
}

fn exchange(offset: i64, ppm: f64, asked: i64, there: i64, back: i64) -> Exchange {
    Exchange {
        asked,
        stamp: reading(offset, ppm, asked + there),
        answered: asked + there + back,
    }
}

/// Most delays are below 10 ms; no reading is lost if a rank is silent for seconds.
fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 1_000i64..10_000_000, 1 => 0..=10 * SECOND]
}

prop_compose! {
    /// Sessions of exchanges, 0 to 20 s apart, with delays of 1 us to 10 s that differ between the ways.
    fn sessions()(
        gaps in prop::collection::vec(0..20 * SECOND, 1..6),
        delays in prop::collection::vec((delay(), delay()), 1..9),
    ) -> Vec<Vec<(i64, i64, i64)>> {
        let mut now = 0;
        gaps.iter().map(|gap| {
            now += gap;
            delays.iter().map(|(there, back)| {
                let asked = now;
                now += there + back;
                (asked, *there, *back)
            }).collect()
        }).collect()
    }
}

proptest! {
    #[test]
    fn the_truth_lies_within_the_bounds(
        sessions in sessions(), offset in -(1i64 << 60)..1 << 60, ppm in -400.0..400.0f64,
        share in -0.5..1.5f64,
    ) {
        let mut clock = OtherClock::default();
        for session in &sessions {
            clock.learn(session.iter().map(|(asked, there, back)| {
                exchange(offset, ppm, *asked, *there, *back)
            }).collect());
        }
        let end = sessions.last().and_then(|s| s.last()).map_or(0, |(asked, _, _)| *asked);
        let truth = (end as f64 * share) as i64;
        let stamp = reading(offset, ppm, truth);
        let moment = clock.own(stamp).expect("steady");
        prop_assert!(moment.earliest <= truth && truth <= moment.latest, "{moment:?} {truth}");
        let there = clock.other(truth).expect("steady");
        prop_assert!(there.earliest <= stamp && stamp <= there.latest, "{there:?} {stamp}");
    }

    #[test]
    fn error_is_at_most_half_the_round_trip(
        offset in -(1i64 << 60)..1 << 60, there in 0i64..1_000_000, back in 0i64..1_000_000,
    ) {
        let mut clock = OtherClock::default();
        let one = exchange(offset, 0.0, 5 * SECOND, there, back);
        clock.learn(vec![one]);
        let moment = clock.own(one.stamp).expect("steady");
        // Whole ns on both sides.
        prop_assert!(moment.error() <= (there + back) as u64 / 2 + 3, "{moment:?}");
    }

    #[test]
    fn between_two_sessions_the_bound_is_theirs(
        offset in -(1i64 << 60)..1 << 60, ppm in -100.0..100.0f64, share in 0.0..1.0f64,
    ) {
        let mut clock = OtherClock::default();
        for at in [0, 10 * SECOND] {
            clock.learn(vec![exchange(offset, ppm, at, 5_000, 5_000)]);
        }
        let truth = (10e9 * share) as i64;
        let moment = clock.own(reading(offset, ppm, truth)).expect("steady");
        // Half of a round trip, and the possible deviation of the rate in the 5 s to the nearer session.
        prop_assert!(moment.error() <= 5_000 + 5_000 + 3, "{moment:?}");
    }
}

#[test]
fn unsteady_rate_stays_within_the_bounds() {
    // The rate swings by 0.9 ppm in 20 s, which is 2.9 us; the exchanges are precise to 0.1 us.
    let period = 20e9 / std::f64::consts::TAU;
    let reading = |at: i64| at + (0.9e-6 * period * (at as f64 / period).sin()).round() as i64;
    for phase in 0..20 {
        let mut clock = OtherClock::default();
        let begin = phase * SECOND;
        for at in [0, 5, 10].map(|seconds| begin + seconds * SECOND) {
            clock.learn(vec![Exchange {
                asked: at - 100,
                stamp: reading(at),
                answered: at + 100,
            }]);
        }
        for truth in (0..=120).map(|tenth| begin + tenth * SECOND / 10) {
            let moment = clock.own(reading(truth)).expect("steady enough");
            let holds = moment.earliest <= truth && truth <= moment.latest;
            assert!(holds, "{moment:?} {truth}");
        }
    }
}

#[test]
fn exchanges_with_short_round_trips_are_kept() {
    let mut clock = OtherClock::default();
    let session = (0..20)
        .map(|i| exchange(7, 0.0, i * 1_000_000, 100 * (20 - i), 50))
        .collect();
    clock.learn(session);
    assert_eq!(clock.exchanges.len(), REMEMBERED / 8);
    assert!(clock.exchanges.iter().all(|e| e.round_trip() <= 450));
    for at in 0..100 {
        clock.learn(vec![exchange(7, 0.0, at * SECOND, 100, 100)]);
    }
    assert_eq!(clock.exchanges.len(), REMEMBERED);
    // The latest of them, and none whose answer came before its question.
    let newest = |clock: &OtherClock| clock.exchanges.back().map(|last| last.asked);
    assert_eq!(newest(&clock), Some(99 * SECOND));
    clock.learn(vec![exchange(7, 0.0, 100 * SECOND, 100, -200)]);
    assert_eq!(newest(&clock), Some(99 * SECOND));
}

#[test]
fn beyond_two_sessions_their_rate_goes_on() {
    let mut clock = OtherClock::default();
    for at in [0, 100 * SECOND] {
        clock.learn(vec![exchange(7, 80.0, at, 5_000, 5_000)]);
    }
    for (truth, nearer) in [(110, 100), (-10, 0)] {
        let moment = clock.own(reading(7, 80.0, truth * SECOND)).expect("steady");
        // Possible deviation of the rate in 10 s, and its error of 1.3 ppm; 5 ms if the two exchanges did
        // not bound it.
        assert!(moment.error() <= 30_000, "{moment:?} from {nearer} s");
    }
}

#[test]
fn a_clock_that_jumps_is_noticed() {
    let mut clock = OtherClock::default();
    assert_eq!(clock.own(0), Err(ClockJumped));
    clock.learn(vec![exchange(0, 0.0, 0, 5_000, 5_000)]);
    clock.learn(vec![exchange(SECOND, 0.0, 10 * SECOND, 5_000, 5_000)]);
    assert_eq!(clock.own(5 * SECOND), Err(ClockJumped));
    assert_eq!(clock.other(5 * SECOND), Err(ClockJumped));
}

#[test]
fn all_active_spans_last_start_to_first_end() {
    let fast = Activity::of([(10, 90), (12, 80)].into_iter()).expect("workers");
    let slow = Activity::of([(30, 200)].into_iter()).expect("workers");
    let both = fast.join(slow);
    assert_eq!(both.all_active(), Some((30, 80)));
    assert_eq!(
        (both.elapsed_ns().middle(), both.elapsed_ns().error()),
        (190.0, 0.0)
    );
    assert_eq!(both.skew_ns().middle(), 20.0);
    let late = Activity::of([(100, 300)].into_iter()).expect("workers");
    assert_eq!(both.join(late).all_active(), None);
    assert_eq!(Activity::of([].into_iter()), None);
}

#[test]
fn a_course_is_even_within_an_interval() {
    let cumulative = CumulativeBytes::new(100, [(200, 1000), (300, 0), (400, 500)].into_iter());
    let exact = |from, to| {
        cumulative
            .between(TimeInterval::exactly(from), TimeInterval::exactly(to))
            .middle()
    };
    assert_eq!(exact(100, 400), 1500.0);
    assert_eq!(exact(0, 1000), 1500.0);
    assert_eq!(exact(150, 350), 750.0);
    assert_eq!(exact(0, 50), 0.0);
    let blurred = TimeInterval {
        earliest: 140,
        latest: 160,
    };
    let bytes = cumulative.between(blurred, TimeInterval::exactly(400));
    assert_eq!((bytes.least, bytes.greatest), (900.0, 1100.0));
}
