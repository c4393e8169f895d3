//! Requests that were to be served at once and were not, and what a queue gained.

use iolab_workload::trial::{Backend, Descriptors};

use super::effect::CellId;
use super::series::id;
use crate::analysis::{Analysis, CellAnalysis, Concurrency, Flag, Relief, Shortfall};

/// Where a queue is fuller than this share of what it takes, it was full.
const FULL: f64 = 0.8;
/// A queue that gains less than this share of its length is one that the storage does not serve at once.
const GAIN: f64 = 0.5;

/// Fewer requests at once than were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct TooFew {
    /// Cells of which it holds.
    pub cells: Vec<CellId>,
    /// The one with the least share.
    pub worst: CellId,
    /// Requests that it asked for.
    pub asked: u64,
    /// Requests that there were.
    pub seen: f64,
    /// Where they were too few.
    pub shortfall: Shortfall,
    /// What the evidence says of the cause.
    pub cause: Cause,
}

/// Why fewer requests were served at once than were asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause {
    /// The region has no more of them.
    Region {
        /// Requests of this size that it holds.
        requests: u64,
    },
    /// The threads did not issue them in time, or the trials had too few.
    Late,
    /// Another cell without what the threads share is faster.
    Shared(Relief),
    /// One descriptor with one position.
    Position,
    /// The CPUs were the limit.
    Cpus,
    /// The queue of the device was full.
    Queue {
        /// Requests that it takes.
        requests: f64,
    },
    /// Each write waits until it is durable.
    Durable,
    /// The evidence does not say.
    Unknown,
}

/// What more requests in flight gained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queued {
    /// The cell.
    pub cell: CellId,
    /// Requests in flight.
    pub asked: u64,
    /// Its IOPS over those of one request at a time.
    pub gain: f64,
}

/// The cells with fewer requests in flight than asked for, and those whose requests waited for each other before the device.
pub(super) fn too_few(analysis: &Analysis, run: usize) -> Vec<TooFew> {
    [Shortfall::Issued, Shortfall::ReachedDevice]
        .into_iter()
        .filter_map(|shortfall| {
            let seen = |concurrency: Concurrency| match shortfall {
                Shortfall::Issued => concurrency.in_flight,
                Shortfall::ReachedDevice => concurrency.at_device.or(concurrency.served),
            };
            let short = analysis.cells.iter().filter_map(|cell| {
                let concurrency = cell.concurrency?;
                let seen = seen(concurrency)?;
                (concurrency.shortfall == Some(shortfall)).then_some((cell, concurrency, seen))
            });
            let short: Vec<(&CellAnalysis, Concurrency, f64)> = short.collect();
            let share =
                |(_, concurrency, seen): &(_, Concurrency, f64)| seen / concurrency.asked as f64;
            let least = short.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
            let (worst, _, seen) = *least?;
            Some(TooFew {
                cells: short.iter().map(|(cell, ..)| id(run, cell)).collect(),
                worst: id(run, worst),
                asked: worst.cell.trial().in_flight(),
                seen,
                shortfall,
                cause: match shortfall {
                    Shortfall::Issued => why_few(worst),
                    Shortfall::ReachedDevice => why_serialised(analysis, worst),
                },
            })
        })
        .collect()
}

fn why_few(cell: &CellAnalysis) -> Cause {
    let trial = cell.cell.trial();
    let requests = trial.region / trial.bs.max(1);
    match requests < trial.in_flight() {
        true => Cause::Region { requests },
        false => Cause::Late,
    }
}

fn why_serialised(analysis: &Analysis, cell: &CellAnalysis) -> Cause {
    if let Some(relief) = cell.concurrency.and_then(|c| c.relief) {
        return Cause::Shared(relief);
    }
    let trial = cell.cell.trial();
    if trial.backend == Backend::Sync && trial.descriptors == Descriptors::Shared {
        return Cause::Position;
    }
    if cell.flags.contains(&Flag::ToolBound) || cell.disturbance.is_cpu_contended() {
        return Cause::Cpus;
    }
    let at_device = cell.concurrency.and_then(|c| c.at_device);
    if let Some((at_device, requests)) = at_device.zip(analysis.requests_max)
        && at_device > FULL * requests
    {
        return Cause::Queue { requests };
    }
    match trial.writes() && trial.sync.is_per_write() {
        true => Cause::Durable,
        false => Cause::Unknown,
    }
}

/// Where an experiment asks for a time, which grows with the queue: what the requests in flight gained least. Of throughput and IOPS
/// comparisons tell.
pub(super) fn queued(analysis: &Analysis, run: usize) -> Option<Queued> {
    if !analysis.response.is_time() {
        return None;
    }
    let gains = analysis.cells.iter().filter_map(|cell| {
        let concurrency = cell.concurrency?;
        let (asked, gain) = (concurrency.asked, concurrency.served?);
        let is_queued = concurrency.shortfall.is_none() && asked > 1 && gain < GAIN * asked as f64;
        is_queued.then_some(Queued {
            cell: id(run, cell),
            asked,
            gain,
        })
    });
    let share = |one: &Queued| one.gain / one.asked as f64;
    gains.min_by(|a, b| share(a).total_cmp(&share(b)))
}
