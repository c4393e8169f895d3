//! The clock of another rank, compared with this rank's clock by exchanges of messages.
//!
//! An exchange bounds the difference of the two clocks at one moment. Delays are only assumed to be
//! non-negative: the other rank's stamp was taken after the question left and before the answer came (Cristian,
//! Distributed Computing 3 (1989) 146-158). So the error is at most half of the round trip. Several exchanges
//! bound the difference at any other moment too, because a clock's rate is steady. The extremes of all lines
//! through all bounds give the least and the greatest difference (Duda, Harrus, Haddad and Bernard, 7th ICDCS
//! (1987) 299-306).
//!
//! Activity of the ranks of a trial on one clock, and the bytes moved meanwhile.

#[cfg(test)]
mod tests;
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

    /// A moment on the other clock, on this rank's clock.
    ///
    /// # Errors
    /// The clock jumped.
    pub fn interval_here(&self, moment: TimeInterval) -> Result<TimeInterval, ClockJumped> {
        Ok(TimeInterval {
            earliest: self.own(moment.earliest)?.earliest,
            latest: self.own(moment.latest)?.latest,
        })
    }

    /// A moment on this rank's clock, on the other clock.
    ///
    /// # Errors
    /// The clock jumped.
    pub fn interval_there(&self, moment: TimeInterval) -> Result<TimeInterval, ClockJumped> {
        Ok(TimeInterval {
            earliest: self.other(moment.earliest)?.earliest,
            latest: self.other(moment.latest)?.latest,
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

/// Times of activity of the workers of one rank, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Start of the first worker.
    pub first_start: TimeInterval,
    /// Start of the last worker: from here on all are active.
    pub last_start: TimeInterval,
    /// End of the first worker.
    pub first_end: TimeInterval,
    /// End of the last worker.
    pub last_end: TimeInterval,
}

/// A quantity within the bounds set by the clocks' uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Bounded {
    /// Lower bound.
    pub least: f64,
    /// Upper bound.
    pub greatest: f64,
}

impl Bounded {
    /// Middle of the bounds.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.least, self.greatest)
    }

    /// Half of the distance of the bounds.
    pub fn error(self) -> f64 {
        (self.greatest - self.least) / 2.0
    }
}

impl Activity {
    /// Activity of one rank by its own clock, ns, from starts and ends of its workers; `None` without workers.
    pub fn of(workers: impl Iterator<Item = (i64, i64)> + Clone) -> Option<Self> {
        let starts = workers.clone().map(|(start, _)| start);
        let ends = workers.map(|(_, end)| end);
        Some(Self {
            first_start: TimeInterval::exactly(starts.clone().min()?),
            last_start: TimeInterval::exactly(starts.max()?),
            first_end: TimeInterval::exactly(ends.clone().min()?),
            last_end: TimeInterval::exactly(ends.max()?),
        })
    }

    /// Time from the first start to the last end, ns.
    pub fn elapsed_ns(&self) -> Bounded {
        between(self.first_start, self.last_end)
    }

    /// Distance of the starts, ns.
    pub fn skew_ns(&self) -> Bounded {
        between(self.first_start, self.last_start)
    }

    /// Span in which all were certainly active, by the clock of this activity, ns; `None` if there is none.
    pub fn all_active(&self) -> Option<(i64, i64)> {
        let (from, to) = (self.last_start.latest, self.first_end.earliest);
        (from < to).then_some((from, to))
    }
}

/// Time between two moments, ns; never below 0.
fn between(from: TimeInterval, to: TimeInterval) -> Bounded {
    let ns = |from: i64, to: i64| to.saturating_sub(from).max(0) as f64;
    Bounded {
        least: ns(from.latest, to.earliest),
        greatest: ns(from.earliest, to.latest),
    }
}

/// Bytes moved by a rank over time, by its own clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CumulativeBytes {
    /// Moments, ns, and the bytes moved until then; neither ever decreases.
    points: Vec<(i64, u64)>,
}

impl CumulativeBytes {
    /// Starts with 0 bytes at `start`; each interval ends at a moment and adds bytes.
    pub fn new(start: i64, intervals: impl Iterator<Item = (i64, u64)>) -> Self {
        let mut points = vec![(start, 0u64)];
        for (end, bytes) in intervals {
            let (last, sum) = *points.last().expect("it has a start");
            points.push((end.max(last), sum.saturating_add(bytes)));
        }
        Self { points }
    }

    /// Bytes moved until a moment; evenly spread within an interval.
    fn until(&self, at: i64) -> f64 {
        let next = self.points.partition_point(|(end, _)| *end <= at);
        let Some(&(start, before)) = next.checked_sub(1).and_then(|last| self.points.get(last))
        else {
            return 0.0;
        };
        match self.points.get(next) {
            None => before as f64,
            Some(&(end, sum)) => {
                let share = at.saturating_sub(start) as f64 / end.saturating_sub(start) as f64;
                before as f64 + (sum - before) as f64 * share
            }
        }
    }

    /// Bytes moved between two moments that are known within bounds.
    pub fn between(&self, from: TimeInterval, to: TimeInterval) -> Bounded {
        Bounded {
            least: (self.until(to.earliest) - self.until(from.latest)).max(0.0),
            greatest: (self.until(to.latest) - self.until(from.earliest)).max(0.0),
        }
    }
}
