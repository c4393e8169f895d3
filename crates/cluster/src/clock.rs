//! The clock of another rank, compared with this rank's clock by exchanges of messages.
//!
//! An exchange bounds the difference of the two clocks at one moment. Delays are only assumed to be
//! non-negative: the other rank's stamp was taken after the question left and before the answer came (Cristian,
//! Distributed Computing 3 (1989) 146-158). So the error is at most half of the round trip. Several exchanges
//! bound the difference at any other moment too, because a clock's rate is steady. The extremes of all lines
//! through all bounds give the least and the greatest difference (Duda, Harrus, Haddad and Bernard, 7th ICDCS
//! (1987) 299-306).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Greatest difference of the rates of two clocks, parts per million; the tolerance of NTP (RFC 5905, section
/// 7.2).
pub const RATE_MAX_PPM: f64 = 500.0;
/// Greatest deviation of a clock's rate from its mean while exchanges are remembered, parts per million. Quartz
/// deviates by less than 0.1 over minutes.
pub const WANDER_PPM: f64 = 1.0;
/// Number of remembered exchanges.
const REMEMBERED: usize = 32;

/// A question and its answer, with a stamp of the other clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Departure of the question, ns of this rank's clock.
    pub asked: i64,
    /// Time of the answer, ns of the other clock.
    pub stamp: i64,
    /// Arrival of the answer, ns of this rank's clock.
    pub answered: i64,
}

impl Exchange {
    /// Time from the question to the answer, ns.
    pub fn round_trip(&self) -> i64 {
        self.answered.saturating_sub(self.asked)
    }
}

/// A moment known within bounds, ns of some clock: the `TTinterval` of Corbett et al., Spanner, OSDI 2012.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeInterval {
    /// Lower bound, ns.
    pub earliest: i64,
    /// Upper bound, ns.
    pub latest: i64,
}

impl TimeInterval {
    /// A moment on the clock by which it is counted.
    pub fn exactly(at: i64) -> Self {
        Self {
            earliest: at,
            latest: at,
        }
    }

    /// The earlier moment of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            earliest: self.earliest.min(other.earliest),
            latest: self.latest.min(other.latest),
        }
    }

    /// The later moment of two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            earliest: self.earliest.max(other.earliest),
            latest: self.latest.max(other.latest),
        }
    }

    /// Middle of the bounds, at most [`TimeInterval::error`] away from the moment.
    pub fn middle(self) -> i64 {
        self.earliest.midpoint(self.latest)
    }

    /// Half of the distance of the bounds, rounded up, ns.
    pub fn error(self) -> u64 {
        self.latest
            .saturating_sub(self.earliest)
            .max(0)
            .cast_unsigned()
            .div_ceil(2)
    }
}

/// Remembered exchanges with another rank's clock.
#[derive(Debug, Clone, Default)]
pub struct OtherClock {
    exchanges: VecDeque<Exchange>,
}

/// Error for stamps that no clock with a steady rate gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockJumped;

/// Bounds by one exchange: this rank's time minus other time at a stamp of the other clock.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// Stamp, relative to the moment in question, ns.
    at: f64,
    least: f64,
    greatest: f64,
}

impl OtherClock {
    /// Adds the exchanges of one session. Only those with the shortest round trips narrow the bounds.
    pub fn learn(&mut self, mut session: Vec<Exchange>) {
        session.retain(|exchange| exchange.round_trip() >= 0);
        session.sort_by_key(Exchange::round_trip);
        session.truncate(REMEMBERED / 8);
        self.exchanges.extend(session);
        let surplus = self.exchanges.len().saturating_sub(REMEMBERED);
        self.exchanges.drain(..surplus);
    }

    /// Moment of a stamp of the other clock, on this rank's clock.
    ///
    /// # Errors
    /// The clock jumped. Before the first exchange nothing is known.
    pub fn own(&self, stamp: i64) -> Result<TimeInterval, ClockJumped> {
        let (least, greatest) = self.ahead(stamp)?;
        Ok(TimeInterval {
            earliest: stamp.saturating_add(least),
            latest: stamp.saturating_add(greatest),
        })
    }

    /// Reading of the other clock at a moment of this rank's clock.
    ///
    /// # Errors
    /// The clock jumped. Before the first exchange nothing is known.
    pub fn other(&self, own: i64) -> Result<TimeInterval, ClockJumped> {
        let last = self.exchanges.back().ok_or(ClockJumped)?;
        // The difference changes so slowly that its value at a guess suffices: the second guess is off by ns.
        let mut guess = own.saturating_sub(last.asked).saturating_add(last.stamp);
        for _ in 0..2 {
            let (least, greatest) = self.ahead(guess)?;
            guess = own.saturating_sub(least.midpoint(greatest));
        }
        let (least, greatest) = self.ahead(guess)?;
        // From the guess to the bounds the difference may change by this much.
        let slack = ((greatest - least) as f64 * RATE_MAX_PPM * 1e-6).ceil() as i64;
        Ok(TimeInterval {
            earliest: own.saturating_sub(greatest).saturating_sub(slack),
            latest: own.saturating_sub(least).saturating_add(slack),
        })
    }

    /// Lead of this rank's clock over the other at a stamp of the other: least and greatest, ns.
    fn ahead(&self, stamp: i64) -> Result<(i64, i64), ClockJumped> {
        let last = self.exchanges.back().ok_or(ClockJumped)?;
        // Differences of clocks may be years; relative to a base of whole ns they fit a float without loss.
        let base = last.asked.saturating_sub(last.stamp);
        let bounds: Vec<Bound> = self
            .exchanges
            .iter()
            .map(|exchange| {
                let at = exchange.stamp.saturating_sub(stamp) as f64;
                let strays = at.abs() * WANDER_PPM * 1e-6;
                let from =
                    |own: i64| own.saturating_sub(exchange.stamp).saturating_sub(base) as f64;
                Bound {
                    at,
                    least: from(exchange.asked) - strays,
                    greatest: from(exchange.answered) + strays,
                }
            })
            .collect();
        let greatest = greatest_at_origin(&bounds);
        let mirrored: Vec<_> = bounds.iter().map(Bound::mirrored).collect();
        let least = -greatest_at_origin(&mirrored);
        // Stamps are whole ns.
        if least > greatest + 1.0 {
            return Err(ClockJumped);
        }
        let whole = |ns: f64| base.saturating_add(ns as i64);
        Ok((whole(least.floor() - 1.0), whole(greatest.ceil() + 1.0)))
    }
}

impl Bound {
    fn mirrored(&self) -> Self {
        Self {
            at: self.at,
            least: -self.greatest,
            greatest: -self.least,
        }
    }
}

/// Greatest value at 0 of all lines within the bounds with a slope of at most [`RATE_MAX_PPM`].
///
/// A linear program in two unknowns. At its optimum at most two bounds are tight, so the answer is the least
/// value that any one or two of them enforce.
fn greatest_at_origin(bounds: &[Bound]) -> f64 {
    let mut greatest = f64::INFINITY;
    for near in bounds {
        // One bound and the slope.
        greatest = greatest.min(near.greatest + near.at.abs() * RATE_MAX_PPM * 1e-6);
        for far in bounds {
            let run = far.at - near.at;
            let enforced = if near.at <= 0.0 && far.at > 0.0 {
                // Between two: the line through both upper ends.
                (near.greatest * far.at - far.greatest * near.at) / run
            } else if (near.at > 0.0 && far.at > near.at) || (near.at < 0.0 && far.at < near.at) {
                // Beyond two: the steepest line, from the lower end of the far one.
                near.greatest - near.at * (far.least - near.greatest) / run
            } else {
                continue;
            };
            greatest = greatest.min(enforced);
        }
    }
    greatest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    prop_compose! {
        /// Sessions of exchanges, 0 to 20 s apart, with delays of 1 us to 10 ms that differ between the ways.
        fn sessions()(
            gaps in prop::collection::vec(0..20 * SECOND, 1..6),
            delays in prop::collection::vec((1_000i64..10_000_000, 1_000i64..10_000_000), 1..9),
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
    fn reading_is_bounded_after_long_round_trips() {
        for (there, back) in [(0, 10 * SECOND), (10 * SECOND, 0)] {
            for ppm in [-400.0, 400.0] {
                let mut clock = OtherClock::default();
                for at in [0, 50, 100] {
                    clock.learn(vec![exchange(7, ppm, at * SECOND, there, back)]);
                }
                let truth = 50 * SECOND;
                let (moment, stamp) = (clock.other(truth).expect("steady"), reading(7, ppm, truth));
                let holds = moment.earliest <= stamp && stamp <= moment.latest;
                assert!(holds, "{moment:?} {stamp}");
            }
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
    fn moments_are_ordered_within_their_bounds() {
        let (a, b) = (
            TimeInterval {
                earliest: 0,
                latest: 10,
            },
            TimeInterval {
                earliest: 4,
                latest: 6,
            },
        );
        assert_eq!(
            a.min(b),
            TimeInterval {
                earliest: 0,
                latest: 6
            }
        );
        assert_eq!(
            a.max(b),
            TimeInterval {
                earliest: 4,
                latest: 10
            }
        );
        assert_eq!(
            (a.middle(), a.error(), TimeInterval::exactly(3).error()),
            (5, 5, 0)
        );
        let odd = TimeInterval { latest: 3, ..a };
        assert_eq!((odd.middle(), odd.error()), (1, 2));
    }
}
