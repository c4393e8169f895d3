//! How well open-loop cells kept their rate.

use iolab_stats::median;

use super::{Latency, quantiles};
use iolab_record::{Sample, ShownLatency};

/// A rate counts as held when at least this share of it was reached, or of the requests that were due was made: of few
/// requests those that happen to be due at the very end are a large share.
pub const HELD_FROM: f64 = 0.98;

/// A cell with a rate, over its measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRate {
    /// Requested rate, requests per second.
    pub rate_wanted: f64,
    /// Requests per second submitted: median over the trials.
    pub rate_achieved: f64,
    /// Most requests due but not submitted, over all trials.
    pub backlog_max: u64,
    /// Most of them at the end of a trial, over all trials.
    pub backlog_end: u64,
    /// Number of trials that missed the rate.
    pub not_held: usize,
    /// Service time (completion minus submission) of the requests whose latency is shown.
    pub service: Option<Latency>,
    /// Submission minus intended start, of the same requests.
    pub lateness: Option<Latency>,
}

impl CellRate {
    /// From the trials of one cell; `None` in the closed loop.
    pub(super) fn of(trials: &[&Sample], threads: u32, timed: ShownLatency) -> Option<Self> {
        let reports: Vec<_> = trials.iter().filter_map(|s| s.rate_report).collect();
        let achieved: Vec<f64> = reports.iter().map(|p| p.rate_achieved).collect();
        let greatest = |values: &mut dyn Iterator<Item = u64>| values.max().unwrap_or(0);
        Some(Self {
            rate_wanted: reports.first()?.rate_wanted,
            rate_achieved: median(&achieved)?,
            backlog_max: greatest(&mut reports.iter().map(|p| p.backlog_max)),
            backlog_end: greatest(&mut reports.iter().map(|p| p.backlog_end)),
            not_held: trials
                .iter()
                .filter_map(|s| Some((s.requests(), s.rate_report?)))
                .filter(|(made, rate_report)| {
                    let reached = rate_report.rate_achieved >= HELD_FROM * rate_report.rate_wanted;
                    !reached && !is_held(*made, rate_report.backlog_end, threads)
                })
                .count(),
            service: quantiles(trials, |s| timed.requests(s).latency),
            lateness: quantiles(trials, |s| timed.requests(s).lateness),
        })
    }
}

/// Whether a trial with so many requests issued, and so many due but not issued, kept its rate. One request of each worker may be
/// due at the very end.
fn is_held(made: u64, left: u64, threads: u32) -> bool {
    left <= u64::from(threads) || made as f64 >= HELD_FROM * (made + left) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_held_when_all_but_a_few_requests_were_made() {
        for (made, left, threads, held) in [
            (1000, 0, 1, true),
            (980, 20, 1, true),
            (979, 21, 1, false),
            // With few requests, one that is due at the very end is a large share and not significant.
            (9, 1, 1, true),
            (8, 2, 1, false),
            (16, 4, 4, true),
            (0, 0, 1, true),
            (0, 5, 1, false),
        ] {
            assert_eq!(
                is_held(made, left, threads),
                held,
                "{made} {left} {threads}"
            );
        }
    }
}
