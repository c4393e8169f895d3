//! Activity of the ranks of a trial on one clock, and the bytes moved meanwhile.

use serde::{Deserialize, Serialize};

use crate::clock::{ClockJumped, OtherClock, TimeInterval};

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
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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

    /// This activity on the clock of the rank that compared this rank's clock with its own.
    ///
    /// # Errors
    /// The clock jumped.
    pub fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        let own = |moment: TimeInterval| {
            Ok(TimeInterval {
                earliest: clock.own(moment.earliest)?.earliest,
                latest: clock.own(moment.latest)?.latest,
            })
        };
        Ok(Self {
            first_start: own(self.first_start)?,
            last_start: own(self.last_start)?,
            first_end: own(self.first_end)?,
            last_end: own(self.last_end)?,
        })
    }

    /// Activity of both together, on the same clock.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            first_start: self.first_start.min(other.first_start),
            last_start: self.last_start.max(other.last_start),
            first_end: self.first_end.min(other.first_end),
            last_end: self.last_end.max(other.last_end),
        }
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

    /// Throughput of `bytes` from the first start to the last end, MB/s.
    pub fn throughput(&self, bytes: u64) -> Bounded {
        let elapsed = self.elapsed_ns();
        let rate = |ns: f64| bytes as f64 * 1e3 / ns.max(1.0);
        Bounded {
            least: rate(elapsed.greatest),
            greatest: rate(elapsed.least),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(both.throughput(190).middle(), 1e3);
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
}
