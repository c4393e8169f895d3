//! Work at the same time: concurrency below the requested one, and groups compared with each alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::{Comparison, Contrast};
use super::effect::{CellId, Effect, MARGIN_UP, confidence, judge, log_ratios_to_sum, of_blocks};
use super::series::id;
use super::{Claim, Payload, kind};
use super::{Point, Quantity, Standing};
use crate::analysis::{
    Analysis, CellAnalysis, Concurrency, DoubtKind, FasterCell, Response, Shortfall,
};
use crate::doubt::SideDoubts;
use crate::io_limit::ReachedLimit;
use iolab_workload::group::ALL;
use iolab_workload::trial::{Backend, CountedBound, Descriptors, TrialSpec};

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

/// The factor that selects the active groups.
const ACTIVE: &str = "active";

/// A cell in which all groups are active, and the cells of each group alone at the same levels of the other
/// factors.
struct Company<'a> {
    whole: &'a CellAnalysis,
    held: Vec<(String, String)>,
    alone: Vec<&'a CellAnalysis>,
}

/// The comparison of all groups at once with each alone; `None` for runs without these cells.
pub(super) fn company(analysis: &Analysis, run: usize) -> Option<Comparison> {
    let place = analysis
        .factors
        .iter()
        .position(|factor| factor == ACTIVE)?;
    if analysis.response.is_time() || analysis.response_group.is_some() {
        return None;
    }
    let level = |cell: &CellAnalysis| cell.cell.levels.get(place).cloned().unwrap_or_default();
    let held = |cell: &CellAnalysis| -> Vec<(String, String)> {
        let levels = analysis.factors.iter().zip(&cell.cell.levels);
        let others = levels.filter(|(factor, _)| *factor != ACTIVE);
        others
            .map(|(factor, level)| (factor.clone(), level.clone()))
            .collect()
    };
    // `None` if a group was not measured alone, or has a rate, which limits it whatever the storage can do.
    let of = |whole: &'_ CellAnalysis| -> Option<Vec<&CellAnalysis>> {
        let groups = whole.cell.spec.groups.iter();
        groups
            .map(|group| {
                let mut cells = analysis.cells.iter();
                let is_alone =
                    |cell: &&CellAnalysis| level(cell) == group.name && held(cell) == held(whole);
                let is_free = group.trial().rate.is_none();
                cells.find(is_alone).filter(|_| is_free)
            })
            .collect()
    };
    let all = analysis.cells.iter().filter(|cell| level(cell) == ALL);
    let all: Vec<Company<'_>> = all
        .filter_map(|whole| {
            Some(Company {
                whole,
                held: held(whole),
                alone: of(whole)?,
            })
        })
        .collect();
    let confidence = confidence(all.len());
    let effects = all
        .iter()
        .filter_map(|one| one.effect(analysis, run, confidence));
    let effects: Vec<Effect> = effects.collect();
    let alone = all.iter().flat_map(|one| &one.alone);
    (!effects.is_empty()).then(|| Comparison {
        contrast: Contrast::Company {
            alone: alone.map(|cell| id(run, cell)).collect(),
        },
        response: analysis.response,
        leads: true,
        held: effects[0]
            .held
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        effects,
    })
}

impl Company<'_> {
    /// The effect of having all groups active; `None` below six shared blocks.
    fn effect(&self, analysis: &Analysis, run: usize, confidence: f64) -> Option<Effect> {
        let response = analysis.response;
        let median = |cell: &CellAnalysis| cell.response.map(|response| response.median);
        let medians = self.alone.iter().map(|cell| median(cell));
        let parts: Vec<_> = self.alone.iter().map(|cell| cell.trials()).collect();
        let logs = log_ratios_to_sum(&parts, self.whole.trials());
        let estimate = of_blocks(&logs.into_values().collect::<Vec<f64>>(), confidence)?;
        let against = self
            .alone
            .iter()
            .map(|cell| SideDoubts::of_cells(cell, self.whole, response));
        let against = SideDoubts::of_any(against.collect::<Vec<_>>().iter());
        let (difference, doubts) = judge(&estimate, MARGIN_UP, &against, response.more_is_better());
        let base: CellId = id(run, self.alone.first()?);
        Some(Effect {
            base,
            other: id(run, self.whole),
            levels: ("alone".to_owned(), ALL.to_owned()),
            held: self.held.clone(),
            medians: (medians.sum::<Option<f64>>()?, median(self.whole)?),
            estimate,
            difference,
            doubts,
        })
    }
}
