//! The length that a trial needs. A shorter one allows more trials in the same time, which helps if trials differ from each
//! other by more than one trial averages out. Its start may be faster or slower than the rest (a burst, a cache, the place
//! on the disk). The median would then move, and the length stays.
//!
//! The beginning of a trial is compared with the whole of the same trial, so that differences between trials cancel out.

use std::time::Duration;

use iolab_stats::{mean, mean_interval, sd};
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::response::Response;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::SyncPolicy;

/// Length of the intervals in which the pilot looks at a trial, ns.
pub(in super::super) const FINE_NS: u64 = 10_000_000;
/// The parts of its length that a trial is cut to.
const PARTS: [u64; 3] = [2, 4, 8];
/// Least length of a trial that is cut, ns.
const LEAST_NS: u64 = 2 * FINE_NS;
/// Requests that the beginning of a trial has to hold, for each that is in flight: one more or less at its end is then little.
const REQUESTS_MIN: u64 = 32;
/// Share below which variance times cost has to fall.
const GAIN: f64 = 0.8;
/// Confidence of the interval about the ratio of the beginning to the whole.
const CONFIDENCE: f64 = 0.95;

/// Measurements of a trial of the pilot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Profile {
    /// The logarithm of the ratio of the rate at the beginning to the rate of the whole, for each of the parts. `None` for
    /// a part that is too short.
    beginnings: [Option<f64>; PARTS.len()],
    /// Time of the trial besides its timed span, s.
    overhead: f64,
}

/// Whether a beginning of a trial equals a shorter trial: its rate is the response, time alone ends it, and nothing is
/// added at its end.
pub(in super::super) fn can_be_shorter(cell: &CellSpec, response: Response) -> bool {
    let trial = &cell.trial;
    matches!(response, Response::Throughput | Response::Iops)
        && !cell.has_groups()
        && !cell.tool.is_peer()
        && !cell.runs_program()
        && trial.rate.is_none()
        && trial.sync != SyncPolicy::End
        && !trial.verify
        && !trial.starts_fresh()
        && trial
            .limit
            .time
            .is_some_and(|time| time.as_nanos() as u64 >= 2 * LEAST_NS)
}

impl Profile {
    /// The profile of a trial whose series has intervals of [`FINE_NS`]; `None` if it did not end by its time.
    pub(in super::super) fn of(cell: &CellSpec, outcome: &Outcome, wall: Duration) -> Option<Self> {
        let limit = cell
            .trial
            .limit
            .time
            .filter(|_| outcome.ended == Ended::Time)?;
        let in_flight = u64::from(cell.trial.threads) * u64::from(cell.trial.depth);
        let total = outcome.series.total();
        let requests = total.requests();
        // Requests are all of one size, or mixed at random: their number represents throughput too.
        let whole = requests as f64 / outcome.elapsed_ns.max(1) as f64;
        let beginning = |part: u64| {
            let length = length(limit, part)?;
            let within = outcome.series.intervals.iter();
            let done: u64 = within
                .take_while(|interval| interval.end_ns() <= length)
                .map(|interval| interval.done.requests())
                .sum();
            // Requests in flight at its end are on average half done.
            let done =
                (done >= REQUESTS_MIN * in_flight).then(|| done as f64 + in_flight as f64 / 2.0)?;
            let ratio = done / length as f64 / whole;
            (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
        };
        let span = Duration::from_nanos(outcome.elapsed_ns);
        Some(Self {
            beginnings: PARTS.map(beginning),
            overhead: wall.saturating_sub(span).as_secs_f64(),
        })
    }
}

/// A part of a length in whole intervals, ns; `None` if it is too short.
fn length(limit: Duration, part: u64) -> Option<u64> {
    let length = limit.as_nanos() as u64 / part / FINE_NS * FINE_NS;
    (length >= LEAST_NS).then_some(length)
}

/// A shorter length for the trials of a cell, and the properties of such a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Shorter {
    /// The length.
    pub(in super::super) time: Duration,
    /// The standard deviation of the logarithms that is expected.
    pub(in super::super) spread: f64,
    /// Its cost, s.
    pub(in super::super) cost: f64,
}

/// The length at which the trials of a cell with known spread are most informative in the same time. `None` if that is their present
/// length, or if the median might move by more than the precision goal. The mean ratio of the beginning to the whole must
/// lie within half of the goal, and its interval within the goal.
pub(in super::super) fn shorter(
    profiles: &[Profile],
    limit: Duration,
    spread: f64,
    goal: f64,
) -> Option<Shorter> {
    let overhead = mean(&profiles.iter().map(|p| p.overhead).collect::<Vec<_>>())?;
    let now = spread.powi(2) * (limit.as_secs_f64() + overhead);
    let candidate = |(place, part): (usize, &u64)| {
        let time = Duration::from_nanos(length(limit, *part)?);
        let ratios: Option<Vec<f64>> = profiles.iter().map(|p| p.beginnings[place]).collect();
        let ratios = ratios?;
        let interval = mean_interval(&ratios, CONFIDENCE)?;
        let is_same =
            mean(&ratios)?.abs() <= goal / 2.0 && interval.low >= -goal && interval.high <= goal;
        // The rest of a trial averages out the difference of its beginning from the whole. Without variation between trials
        // the variance is proportional to one over the length.
        let within = sd(&ratios)?.powi(2);
        let (short, long) = (time.as_secs_f64(), limit.as_secs_f64());
        let averaged = within / (1.0 / short - 1.0 / long) / long;
        let spread = (spread.powi(2).max(averaged) + within).sqrt();
        let cost = short + overhead;
        (is_same && spread.powi(2) * cost < GAIN * now).then_some(Shorter { time, spread, cost })
    };
    let all = PARTS.iter().enumerate().filter_map(candidate);
    let worth = |one: &Shorter| one.spread.powi(2) * one.cost;
    all.min_by(|a, b| worth(a).total_cmp(&worth(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(180);

    fn profiles(ratios: [f64; 5]) -> Vec<Profile> {
        let of = |ratio: f64| Profile {
            beginnings: [Some(ratio); 3],
            overhead: 0.01,
        };
        ratios.map(of).to_vec()
    }

    #[test]
    fn trials_that_differ_as_wholes_become_shortest() {
        let steady = profiles([0.001, -0.002, 0.0, 0.002, -0.001]);
        let found = shorter(&steady, LIMIT, 0.1, 0.05).expect("a shorter length");
        assert_eq!(found.time, Duration::from_millis(20));
        assert!((0.1..0.102).contains(&found.spread), "{}", found.spread);
    }

    #[test]
    fn a_beginning_that_differs_keeps_the_length() {
        let burst = profiles([0.27, 0.25, 0.26, 0.28, 0.24]);
        assert_eq!(shorter(&burst, LIMIT, 0.1, 0.05), None);
        // Nor if it may differ: the interval reaches beyond the goal.
        let unsure = profiles([0.06, -0.05, 0.0, 0.05, -0.06]);
        assert_eq!(shorter(&unsure, LIMIT, 0.1, 0.05), None);
    }

    #[test]
    fn noise_within_trials_gains_nothing() {
        // The beginning of 20 ms differs by an amount that the other 160 ms average out.
        let noisy = profiles([0.03, -0.03, 0.0, 0.02, -0.02]);
        assert_eq!(shorter(&noisy, LIMIT, 0.009, 0.05), None);
    }
}
