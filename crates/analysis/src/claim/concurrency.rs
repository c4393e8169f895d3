//! Work at the same time: concurrency below the requested one, and groups compared with each alone.

use super::comparison::{Comparison, Contrast};
use super::effect::{CellId, MARGIN, confidence, judge, log_ratios_to_sum, of_blocks};
use super::kind::{self, Kind};
use super::series::id;
use super::{Claim, Point, Quantity, Standing};
use crate::analysis::{Analysis, CellAnalysis, DoubtKind, Response, Shortfall};
use crate::curve::held;
use crate::doubt::SideDoubts;
use crate::io_limit::ReachedLimit;
use iolab_workload::group::ALL;
use iolab_workload::trial::{Backend, CountedBound, Descriptors, TrialSpec};

/// The device's queue counts as full above this share of the requests that it takes.
const FULL: f64 = 0.8;

/// The cells with fewer requests in flight than requested, and those whose requests were serialised before the device.
pub(super) fn too_few(analysis: &Analysis, run: usize) -> Vec<Claim> {
    let both = [Shortfall::Issued, Shortfall::ReachedDevice].into_iter();
    both.filter_map(|shortfall| of_shortfall(analysis, run, shortfall))
        .collect()
}

fn of_shortfall(analysis: &Analysis, run: usize, shortfall: Shortfall) -> Option<Claim> {
    let short = analysis.cells.iter().filter_map(|cell| {
        let concurrency = cell.concurrency?;
        let (seen, is_told) = match shortfall {
            Shortfall::Issued => (concurrency.in_flight, true),
            Shortfall::ReachedDevice => (
                concurrency.at_device.or(concurrency.served),
                // Without the device's own count only rates tell, and a disturbance lowers these.
                concurrency.at_device.is_some() || !cell.disturbance.is_from_outside(),
            ),
        };
        let is_short = concurrency.shortfall == Some(shortfall) && is_told;
        is_short.then_some((cell, concurrency.asked as f64, seen?))
    });
    let short: Vec<(&CellAnalysis, f64, f64)> = short.collect();
    let share = |(_, asked, seen): &(_, f64, f64)| seen / asked;
    let least = short.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let (worst, asked, seen) = least?;
    // Cells with groups are not judged.
    let trial = worst.cell.spec.only_trial()?;
    let (kind, number) = match shortfall {
        Shortfall::Issued => why_few(worst, trial),
        Shortfall::ReachedDevice => why_serialised(analysis, worst, trial),
    };
    let seen = requests(*seen).map(|seen| seen.of(*asked));
    let cells = std::iter::once(worst).chain(short.iter().map(|(cell, ..)| cell));
    let cells: Vec<CellId> = cells.map(|cell| id(run, cell)).collect();
    let all = analysis.cells.len() as f64;
    let alike = Point::count(Standing::Alike, "cell", short.len()).of(all);
    let alike = (short.len() > 1).then_some(alike);
    let points = [seen, number, alike].into_iter().flatten();
    Some(Claim::new(kind, cells).with_points(points))
}

/// Reason why fewer requests than requested were in flight, and its number.
type Why = (&'static Kind, Option<Point>);

fn requests(count: f64) -> Option<Point> {
    Some(Point::main(Quantity::Count("request"), count))
}

fn why_few(cell: &CellAnalysis, trial: &TrialSpec) -> Why {
    let held = trial.region / trial.bs.max(1);
    if held < trial.in_flight_of_all() {
        return (&kind::SMALL_REGION, requests(held as f64));
    }
    let bound = trial.counted_bound();
    if let Some((by, count)) = bound.filter(|(_, count)| *count < trial.in_flight_of_all()) {
        let kind = match by {
            CountedBound::Bytes => &kind::FEW_BY_BYTES,
            CountedBound::Region => &kind::FEW_BY_REGION,
        };
        return (kind, requests(count as f64));
    }
    let elapsed = cell.median(Response::Elapsed).unwrap_or(0.0);
    let time = trial.limit.time;
    let is_early = |_: &_| time.is_none_or(|time| elapsed < time.as_nanos() as f64);
    let [by_time, by_bytes, by_region] = &kind::LATE;
    let kind = match bound.filter(is_early) {
        None => by_time,
        Some((CountedBound::Bytes, _)) => by_bytes,
        Some((CountedBound::Region, _)) => by_region,
    };
    (kind, None)
}

fn why_serialised(analysis: &Analysis, cell: &CellAnalysis, trial: &TrialSpec) -> Why {
    if let Some(ReachedLimit { what, per_second }) = cell.io_limit {
        let limit = Point::main(Quantity::Limit(what), per_second as f64);
        return (&kind::AT_IO_LIMIT, Some(limit));
    }
    let relief = cell.concurrency.and_then(|c| c.relief);
    // A disturbance may be why the other cell is faster.
    if let Some(relief) = relief.filter(|_| !cell.disturbance.is_from_outside()) {
        let kind = match relief.factor {
            "layout" => &kind::SHARED_FILE,
            "descriptors" => &kind::SHARED_DESCRIPTOR,
            _ => &kind::SEEKS,
        };
        let faster = Point::main(Quantity::Of(Response::Iops), relief.iops);
        return (kind, Some(faster));
    }
    if trial.backend == Backend::Sync && trial.descriptors == Descriptors::Shared {
        return (&kind::SHARED_POSITION, None);
    }
    // What others take from the threads also makes these look bound by the CPU.
    let around = &cell.disturbance;
    if around.cpus_taken().or(around.stolen()).is_some() {
        return (&kind::OTHERS_ON_CPUS, None);
    }
    if cell.flags.contains(&DoubtKind::ToolBound) {
        return (&kind::AT_CPU_LIMIT, None);
    }
    let at_device = cell.concurrency.and_then(|c| c.at_device);
    if let Some((at_device, most)) = at_device.zip(analysis.requests_max)
        && at_device > FULL * most
    {
        return (&kind::FULL_QUEUE, requests(most));
    }
    match trial.writes() && trial.sync.is_per_write() {
        true => (&kind::DURABLE_WRITES, None),
        false => (&kind::WAITED, None),
    }
}

/// The factor that selects the active groups.
const ACTIVE: &str = "active";

/// The comparison of all groups at once with each alone; `None` for runs without these cells.
pub(super) fn company(analysis: &Analysis, run: usize) -> Option<Claim> {
    let is_active = |factor: &str| factor == ACTIVE;
    let mut factors = analysis.factors.iter();
    let place = factors.position(|factor| is_active(factor))?;
    let response = analysis.response;
    if response.is_time() || analysis.response_group.is_some() {
        return None;
    }
    let level = |cell: &CellAnalysis| cell.cell.levels.get(place).cloned().unwrap_or_default();
    let held = |cell: &CellAnalysis| held(analysis, cell, is_active);
    // The cells of each group alone at the same levels of the other factors. `None` if a group was not measured alone, or
    // has a rate, which limits it whatever the storage can do.
    let alone = |whole: &'_ CellAnalysis| -> Option<Vec<&CellAnalysis>> {
        let alone = whole.cell.spec.groups.iter().map(|group| {
            let mut cells = analysis.cells.iter();
            let is_alone =
                |cell: &&CellAnalysis| level(cell) == group.name && held(cell) == held(whole);
            let is_free = group.trial().rate.is_none();
            cells.find(is_alone).filter(|_| is_free)
        });
        alone.collect()
    };
    let all = analysis.cells.iter().filter(|cell| level(cell) == ALL);
    let all = all.filter_map(|whole| Some((whole, alone(whole)?)));
    let all: Vec<(&CellAnalysis, Vec<&CellAnalysis>)> = all.collect();
    let confidence = confidence(all.len());
    // `None` below six shared blocks.
    let effect = |(whole, alone): &(&CellAnalysis, Vec<&CellAnalysis>)| {
        let median = |cell: &CellAnalysis| cell.response.map(|response| response.median);
        let parts: Vec<_> = alone.iter().map(|cell| cell.trials()).collect();
        let logs = log_ratios_to_sum(&parts, whole.trials());
        let estimate = of_blocks(&logs.into_values().collect::<Vec<f64>>(), confidence)?;
        let against = alone.iter();
        let against = against.map(|cell| SideDoubts::of_cells(cell, whole, response));
        let against = SideDoubts::of_any(against);
        let judged = judge(&estimate, MARGIN, &against, response.more_is_better());
        let of_alone = alone.iter().map(|cell| median(cell));
        Some(Point::effect(
            [id(run, alone.first()?), id(run, whole)],
            response,
            (of_alone.sum::<Option<f64>>()?, median(whole)?),
            (estimate, judged),
        ))
    };
    let factors = analysis.factors.iter();
    let comparison = Comparison {
        contrast: Contrast::Company,
        leads: true,
        held: factors.filter(|name| !is_active(name)).cloned().collect(),
    };
    let mut claim = comparison.claim(all.iter().filter_map(effect).collect())?;
    let alone = all.iter().flat_map(|(_, alone)| alone);
    claim.cells.extend(alone.map(|cell| id(run, cell)));
    Some(claim)
}
