//! Throughput within trials, interval by interval.

use iolab_record::{Cell, Interval, Moved, Sample, SampleSeries, Series};
use iolab_workload::series::INTERVAL_NS;

use crate::at::At;
use crate::noise::Random;

/// Throughput within each trial, in intervals as runs record them.
#[derive(Debug, Clone, PartialEq)]
pub struct OverTime {
    /// Standard deviation of the logarithm of the throughput of an interval.
    pub sigma: f64,
    /// The cells whose trials change their level.
    pub at: At,
    /// The share of the trial's time before the change.
    pub after: f64,
    /// Throughput after the change over throughput before; that of the whole trial is unaffected.
    pub ratio: f64,
}

impl OverTime {
    /// The change within the trials of a cell; 1 for none.
    pub(crate) fn ratio_in(&self, cell: &Cell) -> f64 {
        match self.at.holds(cell) {
            true => self.ratio,
            false => 1.0,
        }
    }

    /// The intervals of a trial, which add up to its totals.
    pub(crate) fn series(&self, cell: &Cell, sample: &Sample, random: &mut Random) -> SampleSeries {
        let ratio = self.ratio_in(cell);
        let change_ns = self.after * sample.elapsed_ns as f64;
        let starts = (0..sample.elapsed_ns).step_by(INTERVAL_NS as usize);
        let spans: Vec<(u64, u64, f64)> = starts
            .map(|start_ns| {
                let length_ns = INTERVAL_NS.min(sample.elapsed_ns - start_ns);
                let late = start_ns as f64 >= change_ns;
                let level = if late { ratio } else { 1.0 };
                let weight = length_ns as f64 * level * (self.sigma * random.normal()).exp();
                (start_ns, length_ns, weight)
            })
            .collect();
        let all: f64 = spans.iter().map(|(.., weight)| weight).sum();
        let total = sample.operations.moved();
        let mut before = 0.0;
        let mut done = total.map(|_| Moved::default());
        let intervals = spans.into_iter().map(|(start_ns, length_ns, weight)| {
            before += weight;
            // From cumulated totals, so that rounding loses no request.
            let until = total.map(|moved| {
                let requests = (moved.requests as f64 * before / all).round() as u64;
                Moved {
                    requests,
                    bytes: requests * cell.trial().bs,
                }
            });
            let interval = Interval {
                start_ns,
                length_ns,
                done: until.since(done),
            };
            done = until;
            interval
        });
        SampleSeries {
            sample: sample.id,
            series: Series {
                intervals: intervals.collect(),
            },
        }
    }
}
