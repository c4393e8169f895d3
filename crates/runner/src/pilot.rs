//! The pilot: the first measured blocks decide how often later blocks visit each cell, and how long their trials take. The
//! budget goes where the variance is; no trial of the pilot is wasted, each counts as measured.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use iolab_plan::experiment::Design;
use iolab_stats::{mean, mean_interval, median, sd};
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::response::Response;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::SyncPolicy;

/// Measured blocks of the pilot, each of which visits every cell once.
pub(super) const BLOCKS: u32 = 5;
/// Weight of the common spread of all cells, in degrees of freedom.
const PRIOR: f64 = 4.0;
/// Fewest and most blocks after the pilot that an allocation is made for; a run may have more.
const FURTHER: (u32, u32) = (2, 30);
/// Most visits of a block to a cell.
const VISITS_MAX: u32 = 50;
/// Confidence of the interval that the precision goal is about.
const CONFIDENCE: f64 = 0.95;

/// Cells that take the same counts: one of iolab's and the corresponding ones of peers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    /// The greatest standard deviation of the logarithms among its cells.
    pub(super) spread: f64,
    /// Time of one visit to all of its cells, s.
    pub(super) cost: f64,
}

/// Allocation to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Visits per block.
    pub(super) visits: u32,
    /// Measured trials that its precision goal takes, as far as its spread shows; `None` if no number is enough.
    pub(super) needed: Option<u32>,
    /// Whether it gets them within the budget.
    pub(super) reaches: bool,
}

/// The spread of each cell: standard deviations of the logarithms of its values, without the influence of a single stall.
/// They are pulled towards the common spread of the cells, because the spread of a few values is uncertain.
pub(super) fn spreads(values: &[Vec<f64>]) -> Vec<f64> {
    let squares: Vec<f64> = values.iter().map(|own| central_sd(own).powi(2)).collect();
    let known: Vec<f64> = squares.iter().copied().filter(|s| s.is_finite()).collect();
    let common = median(&known).unwrap_or(f64::INFINITY);
    let pulled = |(square, own): (&f64, &Vec<f64>)| {
        let df = own.len() as f64 - 1.0;
        ((df * square + PRIOR * common) / (df + PRIOR)).sqrt()
    };
    squares.iter().zip(values).map(pulled).collect()
}

/// The standard deviation of the logarithms, winsorized: a value at each end, a fifth from ten values on, is replaced by
/// its neighbour. The result is divided by the share of values that remain (Tukey and McLaughlin).
fn central_sd(values: &[f64]) -> f64 {
    let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    logs.sort_by(f64::total_cmp);
    let n = logs.len();
    let ends = match n {
        0..4 => 0,
        4..10 => 1,
        _ => n / 5,
    };
    let (low, high) = (
        logs.get(ends).copied(),
        logs.get(n.wrapping_sub(1 + ends)).copied(),
    );
    for log in &mut logs {
        *log = log.clamp(low.unwrap_or(*log), high.unwrap_or(*log));
    }
    let kept = (n - 2 * ends) as f64 / n as f64;
    sd(&logs).map_or(f64::INFINITY, |sd| sd / kept)
}

/// The fewest trials with which the interval of the median is expected to be within the goal, with the last and without it.
fn needed(spread: f64, design: &Design) -> Option<u32> {
    let reach = |n: u32| iolab_stats::median_interval_reach(n as usize, CONFIDENCE);
    let narrow = |n: u32| reach(n).is_some_and(|reach| reach * spread <= design.precision);
    (design.trials_min..=design.trials_max).find(|n| narrow(*n) && narrow(n.saturating_sub(1)))
}

/// Allocates the remaining budget, s.
///
/// As many units as possible get the trials that their goal takes, the cheapest ones first. The rest goes to the others,
/// visit by visit, to the unit that gains most per second. The chosen number of blocks after the pilot is the one with
/// which most units reach the goal. Among equal numbers, the least time wins if all units reach it, otherwise the most
/// blocks.
pub(super) fn allocate(units: &[Unit], design: &Design, left: f64) -> Vec<Share> {
    let wanted: Vec<Option<u32>> = units
        .iter()
        .map(|unit| needed(unit.spread, design))
        .collect();
    let round: f64 = units.iter().map(|unit| unit.cost).sum();
    let room = (left / round.max(1e-9)) as u32;
    let mut best: Option<(usize, f64, Vec<Share>)> = None;
    for blocks in FURTHER.0..=room.min(FURTHER.1) {
        let shares = Sharing {
            units,
            wanted: &wanted,
            design,
            blocks,
        }
        .shares(left);
        let reached = shares.iter().filter(|share| share.reaches).count();
        let visits = shares.iter().zip(units);
        let time: f64 = visits
            .map(|(share, unit)| f64::from(share.visits) * unit.cost)
            .sum();
        // The greater is the better.
        let merit = match reached == units.len() {
            true => -time * f64::from(blocks),
            false => f64::from(blocks),
        };
        let is_better = best
            .as_ref()
            .is_none_or(|(most, before, _)| (reached, merit) > (*most, *before));
        if is_better {
            best = Some((reached, merit, shares));
        }
    }
    let once = |needed: &Option<u32>| Share {
        visits: 1,
        needed: *needed,
        reaches: needed.is_some_and(|needed| needed <= BLOCKS + room),
    };
    best.map_or_else(|| wanted.iter().map(once).collect(), |(.., shares)| shares)
}

/// An allocation over this many blocks.
struct Sharing<'a> {
    units: &'a [Unit],
    wanted: &'a [Option<u32>],
    design: &'a Design,
    blocks: u32,
}

impl Sharing<'_> {
    fn shares(&self, left: f64) -> Vec<Share> {
        let blocks = f64::from(self.blocks);
        let most =
            (self.design.trials_max.saturating_sub(BLOCKS) / self.blocks).clamp(1, VISITS_MAX);
        let round: f64 = self.units.iter().map(|unit| unit.cost).sum();
        let mut room = left - blocks * round;
        // Visits with which a unit reaches its goal.
        let enough = |wanted: Option<u32>| {
            let visits = wanted?.saturating_sub(BLOCKS).div_ceil(self.blocks).max(1);
            (visits <= most).then_some(visits)
        };
        let price =
            |unit: usize, visits: u32| f64::from(visits - 1) * blocks * self.units[unit].cost;
        let mut shares: Vec<Share> = self
            .wanted
            .iter()
            .map(|needed| Share {
                visits: 1,
                needed: *needed,
                reaches: false,
            })
            .collect();
        let mut prices: Vec<(f64, usize, u32)> = (0..shares.len())
            .filter_map(|unit| {
                let visits = enough(self.wanted[unit])?;
                Some((price(unit, visits), unit, visits))
            })
            .collect();
        prices.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (price, unit, visits) in prices {
            if price <= room {
                room -= price;
                shares[unit].visits = visits;
                shares[unit].reaches = true;
            }
        }
        self.spend_rest(&mut shares, room, most);
        shares
    }

    /// Gives the units that do not reach their goal further visits, as long as there is room for any.
    fn spend_rest(&self, shares: &mut [Share], mut room: f64, most: u32) {
        let mut next: BinaryHeap<Gain> = (0..shares.len())
            .filter(|unit| !shares[*unit].reaches)
            .filter_map(|unit| self.gain(unit, shares[unit].visits, most))
            .collect();
        while let Some(gain) = next.pop() {
            let price = f64::from(self.blocks) * self.units[gain.unit].cost;
            if price > room {
                continue;
            }
            room -= price;
            shares[gain.unit].visits += 1;
            next.extend(self.gain(gain.unit, shares[gain.unit].visits, most));
        }
    }

    /// Fall of the standard error of a unit per second with one more visit.
    fn gain(&self, unit: usize, visits: u32, most: u32) -> Option<Gain> {
        let Unit { spread, cost } = self.units[unit];
        let error = |visits: u32| spread / f64::from(BLOCKS + self.blocks * visits).sqrt();
        let fall = (error(visits) - error(visits + 1)) / (f64::from(self.blocks) * cost.max(1e-9));
        (visits < most && fall.is_finite()).then_some(Gain { fall, unit })
    }
}

/// The benefit of the next visit to a unit.
#[derive(Debug, PartialEq)]
struct Gain {
    fall: f64,
    unit: usize,
}

impl Eq for Gain {}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_fall = self.fall.total_cmp(&other.fall);
        by_fall.then(other.unit.cmp(&self.unit))
    }
}

/// Length of the intervals in which the pilot looks at a trial, ns.
pub(super) const FINE_NS: u64 = 10_000_000;
/// The parts of its length that a trial is cut to.
const PARTS: [u64; 3] = [2, 4, 8];
/// Least length of a trial that is cut, ns.
const LEAST_NS: u64 = 2 * FINE_NS;
/// Requests that the beginning of a trial has to hold, for each that is in flight: one more or less at its end is then little.
const REQUESTS_MIN: u64 = 32;
/// Share below which variance times cost has to fall.
const GAIN: f64 = 0.8;

/// Measurements of a trial of the pilot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Profile {
    /// The logarithm of the ratio of the rate at the beginning to the rate of the whole, for each of the parts. `None` for
    /// a part that is too short.
    beginnings: [Option<f64>; PARTS.len()],
    /// Time of the trial besides its timed span, s.
    overhead: f64,
}

/// Whether a beginning of a trial equals a shorter trial: its rate is the response, time alone ends it, and nothing is
/// added at its end.
pub(super) fn can_be_shorter(cell: &CellSpec, response: Response) -> bool {
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
    pub(super) fn of(cell: &CellSpec, outcome: &Outcome, wall: Duration) -> Option<Self> {
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
pub(super) struct Shorter {
    /// The length.
    pub(super) time: Duration,
    /// The standard deviation of the logarithms that is expected.
    pub(super) spread: f64,
    /// Its cost, s.
    pub(super) cost: f64,
}

/// The length at which the trials of a cell with known spread are most informative in the same time. `None` if that is their present
/// length, or if the median might move by more than the precision goal. The mean ratio of the beginning to the whole must
/// lie within half of the goal, and its interval within the goal.
pub(super) fn shorter(
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
mod tests;
