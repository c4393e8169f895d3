//! How many requests were in service at once, beside how many were asked for. METHODS.md has the rules.

use std::collections::HashMap;

use super::{CellAnalysis, disturbance, median_of};
use iolab_record::{Cell, Sample};
use iolab_spec::trial::{Backend, CacheState};

/// A cell is serialised when less than this share of the requests asked for was in service at once.
const SHARE_MIN: f64 = 0.5;
/// Fewest requests at once that are judged where no cell shows what one alone does.
const ASKED_MIN: u64 = 4;
/// What a lone request spends outside the device may raise the estimate by this factor at most.
const OUTSIDE_MAX: f64 = 4.0;

/// What an achieved concurrency was derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The time that requests were in flight at the device, over the time of the trials.
    Device,
    /// Requests per second times the service time of a request that is alone.
    Alone,
}

/// Requests at once, in a cell of direct I/O without a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concurrency {
    /// Asked for: threads times depth.
    pub asked: u64,
    /// Waiting or in service, seen from the threads: requests per second times mean service time (Little's law).
    pub outstanding: Option<f64>,
    /// In flight at the device, in requests of this cell's size; `None` where others' requests cannot be distinguished from ours.
    pub in_flight: Option<f64>,
    /// In service, at most what was asked for; `None` where nothing tells.
    pub achieved: Option<(f64, Basis)>,
    /// Whether they were not in service at once although asked to be.
    pub serialised: bool,
}

impl Concurrency {
    /// What the trials of one cell tell by themselves; `None` for programs, groups, rates, and what goes through the page cache.
    pub(super) fn of(cell: &Cell, trials: &[&Sample]) -> Option<Self> {
        let judged = !cell.spec.runs_program()
            && !cell.spec.has_groups()
            && cell.trial().rate.is_none()
            && cell.trial().cache == CacheState::Direct
            && cell.trial().backend != Backend::Null
            && !trials.is_empty();
        let mean = |s: &Sample| s.main_direction().latency.map(|l| l.mean_ns);
        judged.then(|| Self {
            asked: cell.trial().in_flight(),
            outstanding: median_of(trials, |s| Some(s.iops() * mean(s)? / 1e9)),
            in_flight: median_of(trials, |s| in_flight(cell, s)),
            achieved: None,
            serialised: false,
        })
    }
}

/// Requests of this cell in flight at the device, on average over one trial (Documentation/block/stat.rst: time_in_queue).
fn in_flight(cell: &Cell, sample: &Sample) -> Option<f64> {
    let pieces = disturbance::ios_per_request(cell, sample)?;
    let queue_ms = sample.counters.device?.queue_ms?;
    let elapsed_ms = sample.elapsed_ns as f64 / 1e6;
    (elapsed_ms > 0.0).then(|| queue_ms as f64 / elapsed_ms / pieces.max(1.0))
}

/// Compares each cell with the one in which a request is alone: it differs in threads and depth alone, and has one of each.
pub(super) fn judge(cells: &mut [CellAnalysis], factors: &[String]) {
    let others = |cell: &CellAnalysis| {
        let levels = factors.iter().zip(&cell.cell.levels);
        let kept = levels.filter(|(factor, _)| !["threads", "depth"].contains(&factor.as_str()));
        kept.map(|(_, level)| level.clone())
            .collect::<Vec<String>>()
    };
    let mut lone: HashMap<Vec<String>, &CellAnalysis> = HashMap::new();
    for cell in cells.iter() {
        if cell.concurrency.is_some_and(|own| own.asked == 1) {
            lone.entry(others(cell)).or_insert(cell);
        }
    }
    let judge = |cell: &CellAnalysis| {
        let alone = lone.get(&others(cell)).copied();
        Some(achieved(cell, cell.concurrency?, alone))
    };
    let judged: Vec<Option<Concurrency>> = cells.iter().map(judge).collect();
    for (cell, concurrency) in cells.iter_mut().zip(judged) {
        cell.concurrency = concurrency;
    }
}

fn achieved(
    cell: &CellAnalysis,
    concurrency: Concurrency,
    lone: Option<&CellAnalysis>,
) -> Concurrency {
    let asked = concurrency.asked as f64;
    let alone = lone
        .and_then(|lone| lone.concurrency)
        .and_then(|c| c.in_flight);
    let outside = alone.map_or(1.0, |share| (1.0 / share).clamp(1.0, OUTSIDE_MAX));
    let by_device = concurrency.in_flight.map(|n| (n * outside, Basis::Device));
    let by_rate = cell.iops.zip(lone.and_then(|lone| lone.iops));
    // One request at a time is in service all the time, so that its rate is the inverse of its time.
    let by_alone = by_rate.map(|(all, one)| (all.median / one.median, Basis::Alone));
    let best = [by_device, by_alone]
        .into_iter()
        .flatten()
        .filter(|(n, _)| n.is_finite())
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let enough = lone.is_some() || concurrency.asked >= ASKED_MIN;
    Concurrency {
        achieved: best.map(|(n, basis)| (n.min(asked), basis)),
        serialised: concurrency.asked > 1
            && enough
            && best.is_some_and(|(n, _)| n < SHARE_MIN * asked),
        ..concurrency
    }
}
