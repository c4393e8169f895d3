//! Requests in flight compared with those requested. METHODS.md has the rules.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

use super::{CellAnalysis, Response};
use crate::disturbance::{self, Surroundings};
use crate::trial_values::median_of;
use iolab_record::{Cell, Sample};
use iolab_workload::trial::{Backend, CacheState};

/// Below this share of the requested concurrency, it is too low.
const SHARE_MIN: f64 = 0.5;
/// Lowest requested concurrency that is judged where no cell has one request at a time.
const ASKED_MIN: u64 = 4;
/// Most by which the time of a lone request outside the device may raise the estimate, as a factor.
const OUTSIDE_MAX: f64 = 4.0;

/// Concurrency in a cell of direct I/O without a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// Requested: threads times depth.
    pub asked: u64,
    /// Requests in flight as seen by the threads, while all of them are active (Little's law). Includes requests
    /// that wait for a lock.
    pub in_flight: Option<f64>,
    /// Requests in flight at the device, in requests of this cell's size; `None` where other processes used it.
    pub at_device: Option<f64>,
    /// Requests served in parallel by the utilisation law: the rate divided by that with one request at a time.
    pub served: Option<f64>,
    /// A setting with which the threads do not wait for each other; `None` where the run shows none.
    pub relief: Option<FasterCell>,
    /// Place at which less than half of the requested concurrency was reached; `None` if it was reached.
    pub shortfall: Option<Shortfall>,
}

/// Another cell of the run with the same requested concurrency that is much faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct FasterCell {
    /// The only factor in which it differs: the resource that the threads share.
    pub factor: &'static str,
    /// Level of the faster cell.
    pub level: &'static str,
    /// Requests per second of the faster cell.
    pub iops: f64,
}

/// Factors of shared resources, with the level at which nothing is shared.
const RELIEFS: [(&str, &str); 3] = [
    ("layout", "private"),
    ("descriptors", "private"),
    ("backend", "psync"),
];
/// A cell that is faster by this factor shows what the threads waited for.
const RELIEF_MIN: f64 = 1.5;

/// Place at which the requested concurrency was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// In the threads: the trials did not issue enough requests.
    Issued,
    /// Before the device: the threads issued the requests, which then waited.
    ReachedDevice,
}

impl Concurrency {
    /// The concurrency in the trials of one cell; `None` for programs, groups, rates, pauses, and I/O through the page cache.
    pub(super) fn of(cell: &Cell, trials: &[&Sample], around: Surroundings) -> Option<Self> {
        let only = cell.spec.only_trial().filter(|trial| {
            trial.rate.is_none()
                && trial.cache == CacheState::Direct
                && trial.backend != Backend::Null
        });
        let judged = !cell.spec.runs_program()
            && only.is_some()
            && trials.iter().all(|trial| trial.paused_ns == 0)
            && !trials.is_empty();
        judged.then(|| Self {
            asked: cell.trial().in_flight_of_all(),
            in_flight: median_of(trials, in_flight),
            at_device: median_of(trials, |s| at_device(cell, s, around)),
            served: None,
            relief: None,
            shortfall: None,
        })
    }
}

/// Mean number of requests in flight over one trial. Where times are known only in total, Little's law over the whole trial.
fn in_flight(sample: &Sample) -> Option<f64> {
    let over_all = || {
        let requests = sample.operations.iter();
        let requests = requests.filter(|(operation, _)| operation.is_request());
        let spent =
            requests.filter_map(|(_, one)| Some(one.requests as f64 * one.latency?.mean_ns));
        let spent = spent.reduce(|sum, one| sum + one)?;
        Some(spent / sample.elapsed_ns.max(1) as f64)
    };
    sample.in_flight.or_else(over_all)
}

/// Mean number of this cell's requests in flight at the device over one trial (Documentation/block/stat.rst: time_in_queue).
fn at_device(cell: &Cell, sample: &Sample, around: Surroundings) -> Option<f64> {
    let pieces = disturbance::ios_per_request(cell, sample, around)?;
    let queue_ms = sample.counters.device?.queue_ms?;
    let elapsed_ms = sample.elapsed_ns as f64 / 1e6;
    (elapsed_ms > 0.0).then(|| queue_ms as f64 / elapsed_ms / pieces.max(1.0))
}

/// Compares each cell with the one that differs only in threads and depth, and has one of each.
pub(super) fn judge(cells: &mut [CellAnalysis], factors: &[String]) {
    let others = |cell: &CellAnalysis| {
        let levels = factors.iter().zip(&cell.cell.levels);
        let kept = levels.filter(|(factor, _)| !["threads", "depth"].contains(&factor.as_str()));
        kept.map(|(_, level)| level.clone())
            .collect::<Vec<String>>()
    };
    let mut lone: HashMap<Vec<String>, &CellAnalysis> = HashMap::new();
    let mut by_levels: HashMap<&[String], &CellAnalysis> = HashMap::new();
    for cell in cells.iter() {
        by_levels.entry(&cell.cell.levels).or_insert(cell);
        if cell.concurrency.is_some_and(|own| own.asked == 1) {
            lone.entry(others(cell)).or_insert(cell);
        }
    }
    let judge = |cell: &CellAnalysis| {
        let alone = lone.get(&others(cell)).copied();
        let relief = relief(&by_levels, cell, factors);
        Some(compared(cell, cell.concurrency?, alone, relief))
    };
    let judged: Vec<Option<Concurrency>> = cells.iter().map(judge).collect();
    for (cell, concurrency) in cells.iter_mut().zip(judged) {
        cell.concurrency = concurrency;
    }
}

/// A much faster cell that differs only in a resource that the threads share. Its median is higher by
/// [`RELIEF_MIN`], and the intervals of both medians do not overlap.
fn relief(
    cells: &HashMap<&[String], &CellAnalysis>,
    of: &CellAnalysis,
    factors: &[String],
) -> Option<FasterCell> {
    let own = of.of[Response::Iops]?;
    let own_high = own.median_interval?.high;
    RELIEFS.into_iter().find_map(|(factor, level)| {
        let place = factors.iter().position(|name| name == factor)?;
        let mut levels = of.cell.levels.clone();
        if *levels.get(place)? == level {
            return None;
        }
        levels[place] = level.to_owned();
        let other = cells.get(levels.as_slice())?.of[Response::Iops]?;
        let is_shown = other.median_interval?.low > own_high;
        (is_shown && other.median > RELIEF_MIN * own.median).then_some(FasterCell {
            factor,
            level,
            iops: other.median,
        })
    })
}

fn compared(
    cell: &CellAnalysis,
    concurrency: Concurrency,
    lone: Option<&CellAnalysis>,
    relief: Option<FasterCell>,
) -> Concurrency {
    let asked = concurrency.asked as f64;
    let too_few = |n: f64| n < SHARE_MIN * asked;
    let alone = lone
        .and_then(|lone| lone.concurrency)
        .and_then(|c| c.at_device);
    let outside = alone.map_or(1.0, |share| (1.0 / share).clamp(1.0, OUTSIDE_MAX));
    let rate = |cell: &CellAnalysis| cell.median(Response::Iops);
    let rates = rate(cell).zip(lone.and_then(rate));
    // A lone request is always in service, so that its rate is the inverse of its time.
    let served = rates.map(|(all, one)| all / one);
    let judged = concurrency.asked > 1 && (lone.is_some() || concurrency.asked >= ASKED_MIN);
    let not_issued = concurrency.in_flight.is_some_and(too_few);
    // Requests served in parallel were not waiting.
    let waited = served.is_none_or(too_few)
        && (relief.is_some() || concurrency.at_device.is_some_and(|n| too_few(n * outside)));
    let shortfall = match (not_issued, waited) {
        (true, _) => Some(Shortfall::Issued),
        (false, true) => Some(Shortfall::ReachedDevice),
        (false, false) => None,
    };
    Concurrency {
        served: served.filter(|n| n.is_finite()),
        relief,
        shortfall: shortfall.filter(|_| judged),
        ..concurrency
    }
}
