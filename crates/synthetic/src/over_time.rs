//! Throughput within trials, interval by interval.

use iolab_record::{Cell, Interval, Moved, Sample, SampleSeries, Series};
use iolab_workload::series::INTERVAL_NS;

use crate::cell_selection::At;
use crate::noise::Random;
use crate::truth::TrueChange;

/// Throughput within each trial, in intervals as runs record them.
#[derive(Debug, Clone, PartialEq)]
pub struct OverTime {
    /// Standard deviation of the logarithm of an interval's throughput.
    pub sigma: f64,
    /// Cells whose trials change their level.
    pub at: At,
    /// Share of the trial's time before the change.
    pub after: f64,
    /// Throughput after the change over throughput before; the throughput of the whole trial is unaffected.
    pub ratio: f64,
    /// Steady change over each trial, as the logarithm of the factor from its beginning to its end, in addition to the change.
    pub slope: f64,
    /// The only block with a change within its trials, for good: trials of later blocks are at the later level
    /// from their beginning. `None` if the change recurs in each trial.
    pub once_in: Option<u32>,
}

impl OverTime {
    /// Change within each trial of a cell; 1 for none.
    pub(crate) fn ratio_in_each(&self, cell: &Cell) -> f64 {
        match self.at.holds(cell) && self.once_in.is_none() {
            true => self.ratio,
            false => 1.0,
        }
    }

    /// Change within a trial of a cell in this block; 1 for none.
    fn ratio_in(&self, cell: &Cell, block: u32) -> f64 {
        let is_here = self.once_in.is_none_or(|once| once == block);
        match self.at.holds(cell) && is_here {
            true => self.ratio,
            false => 1.0,
        }
    }

    /// Throughput of a whole trial of a cell in this block, over its level before a single change for good.
    pub(crate) fn level(&self, cell: &Cell, block: u32) -> f64 {
        match self.once_in {
            Some(once) if self.at.holds(cell) && block >= once => {
                let before = if block == once { self.after } else { 0.0 };
                before + (1.0 - before) * self.ratio
            }
            _ => 1.0,
        }
    }

    /// Change for good of a cell, if any.
    pub(crate) fn change(&self, cell: &Cell) -> Option<TrueChange> {
        let block = self.once_in.filter(|_| self.at.holds(cell))?;
        Some(TrueChange {
            block,
            ratio: self.ratio,
        })
    }

    /// Intervals of a trial, which add up to its totals.
    pub(crate) fn series(&self, cell: &Cell, sample: &Sample, random: &mut Random) -> SampleSeries {
        let ratio = self.ratio_in(cell, sample.block);
        let change_ns = self.after * sample.elapsed_ns as f64;
        let starts = (0..sample.elapsed_ns).step_by(INTERVAL_NS as usize);
        let spans: Vec<(u64, u64, f64)> = starts
            .map(|start_ns| {
                let length_ns = INTERVAL_NS.min(sample.elapsed_ns - start_ns);
                let late = start_ns as f64 >= change_ns;
                let level = if late { ratio } else { 1.0 };
                let slope = self.slope * start_ns as f64 / sample.elapsed_ns as f64;
                let factor = level * (slope + self.sigma * random.normal()).exp();
                let weight = length_ns as f64 * factor;
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
                drive_millidegrees: None,
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
