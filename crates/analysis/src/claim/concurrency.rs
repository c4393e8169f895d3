//! Concurrency below the requested one.

use iolab_workload::trial::{Backend, CountedBound, Descriptors, TrialSpec};
use schemars::JsonSchema;
use serde::Serialize;

use super::effect::CellId;
use super::point::{Point, Quantity, Standing};
use super::series::id;
use super::{Claim, Payload, kind};
use crate::analysis::{
    Analysis, CellAnalysis, Concurrency, DoubtKind, FasterCell, Response, Shortfall,
};
use crate::io_limit::ReachedLimit;

/// The device's queue counts as full above this share of the requests that it takes.
const FULL: f64 = 0.8;

/// Reason why fewer requests than requested were in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The region holds too few requests of this size.
    Region {
        /// Number of requests that the region holds.
        requests: u64,
    },
    /// A trial has fewer requests than should be in flight.
    FewRequests {
        /// Setting that limits the number of requests.
        #[serde(skip)]
        by: CountedBound,
        /// Number of requests of a trial.
        requests: u64,
    },
    /// The threads did not issue the requests in time, or the trials had too few requests.
    Late {
        /// Bound that ended the trials early; `None` if time ended them.
        #[serde(skip)]
        by: Option<CountedBound>,
    },
    /// Another cell, without the resource that the threads share, is faster.
    Shared(FasterCell),
    /// The threads share one descriptor with one file position.
    Position,
    /// The CPUs were the limit.
    Cpus,
    /// Others used the CPUs, which may be the cause.
    OthersOnCpus,
    /// A limit of the control group was reached.
    Limit(ReachedLimit),
    /// The queue of the device was full.
    Queue {
        /// Length of the queue, requests.
        requests: f64,
    },
    /// Each write waits until it is durable.
    Durable,
    /// The evidence does not say.
    Unknown,
}

/// The cells with fewer requests in flight than requested, and those whose requests were serialised before the device.
pub(super) fn too_few(analysis: &Analysis, run: usize) -> Vec<Claim> {
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
                // Without the device's own count only rates tell, and a disturbance lowers these.
                let is_told =
                    concurrency.at_device.is_some() || !cell.disturbance.is_from_outside();
                let is_short = concurrency.shortfall == Some(shortfall)
                    && (is_told || shortfall == Shortfall::Issued);
                is_short.then_some((cell, concurrency, seen))
            });
            let short: Vec<(&CellAnalysis, Concurrency, f64)> = short.collect();
            let share =
                |(_, concurrency, seen): &(_, Concurrency, f64)| seen / concurrency.asked as f64;
            let least = short.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
            let (worst, _, seen) = least?;
            // Cells with groups are not judged.
            let trial = worst.cell.spec.only_trial()?;
            let (kind, cause) = match shortfall {
                Shortfall::Issued => (&kind::FEW_IN_FLIGHT, why_few(worst, trial)),
                Shortfall::ReachedDevice => {
                    (&kind::FEW_AT_DEVICE, why_serialised(analysis, worst, trial))
                }
            };
            let asked = worst.cell.trial().in_flight_of_all() as f64;
            let requests = Point::main(Quantity::Count("request"), *seen).of(asked);
            let cells: Vec<CellId> = std::iter::once(*worst)
                .chain(short.iter().map(|(cell, ..)| *cell))
                .map(|cell| id(run, cell))
                .collect();
            let all = analysis.cells.len() as f64;
            let alike = (short.len() > 1)
                .then(|| Point::count(Standing::Alike, "cell", short.len()).of(all));
            let claim = Claim::new(kind, cells);
            let claim = claim.with_points(std::iter::once(requests).chain(alike));
            Some(claim.with_payload(Payload::TooFew(cause)))
        })
        .collect()
}

fn why_few(cell: &CellAnalysis, trial: &TrialSpec) -> Cause {
    let requests = trial.region / trial.bs.max(1);
    if requests < trial.in_flight_of_all() {
        return Cause::Region { requests };
    }
    let bound = trial.counted_bound();
    if let Some((by, requests)) = bound.filter(|(_, count)| *count < trial.in_flight_of_all()) {
        return Cause::FewRequests { by, requests };
    }
    let elapsed = cell.median(Response::Elapsed).unwrap_or(0.0);
    let time = trial.limit.time;
    let is_early = |_: &_| time.is_none_or(|time| elapsed < time.as_nanos() as f64);
    Cause::Late {
        by: bound.filter(is_early).map(|(by, _)| by),
    }
}

fn why_serialised(analysis: &Analysis, cell: &CellAnalysis, trial: &TrialSpec) -> Cause {
    if let Some(limit) = cell.io_limit {
        return Cause::Limit(limit);
    }
    let relief = cell.concurrency.and_then(|c| c.relief);
    // A disturbance may be why the other cell is faster.
    if let Some(relief) = relief.filter(|_| !cell.disturbance.is_from_outside()) {
        return Cause::Shared(relief);
    }
    if trial.backend == Backend::Sync && trial.descriptors == Descriptors::Shared {
        return Cause::Position;
    }
    // What others take from the threads also makes these look bound by the CPU.
    let around = &cell.disturbance;
    if around.cpus_taken().or(around.stolen()).is_some() {
        return Cause::OthersOnCpus;
    }
    if cell.flags.contains(&DoubtKind::ToolBound) {
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
