//! Limits and costs that explain a curve: of requests, of bytes per second, of page faults.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::effect::{Difference, Estimate, MARGIN, confidence, judge, of_trials, within_run};
use super::series::id;
use super::{Claim, Kind, Point, Quantity, Standing, kind};
use crate::analysis::{Analysis, CellAnalysis, DoubtKind};
use crate::bends;
use crate::curve::{Curve, held};
use crate::doubt::SideDoubts;
use iolab_stats::median;
use iolab_workload::response::Response;
use iolab_workload::trial::{BufferInit, TrialSpec};

/// Factors that a limit does not depend on.
const VARIED: [&str; 3] = ["bs", "depth", "threads"];

/// Least ratio of the largest size at a limit to the smallest: it tells a limit of requests from a limit of bytes.
const SPAN_MIN: u64 = 2;

/// Least factor by which requests in flight must grow without raising the limit.
const DEEPER_MIN: u64 = 2;

/// The cell with the most requests in flight, of a size at which more requests in flight do not raise IOPS, and the fewest in flight
/// that give as many.
type Saturated<'a> = (&'a CellAnalysis, u64);

/// A kind of limits, its quantity, and the least ratio of the largest size at it to the smallest one.
type LimitKind = (&'static Kind, Response, u64);

/// The limits that sizes tell apart.
const OF_SIZES: [LimitKind; 2] = [
    (&kind::REQUEST_LIMIT, Response::Iops, SPAN_MIN),
    (&kind::THROUGHPUT_LIMIT, Response::Throughput, SPAN_MIN),
];

/// The limits of a run, in the order of its cells. Intervals are simultaneous over all comparisons.
pub(super) fn limits(analysis: &Analysis, run: usize) -> Vec<Claim> {
    let mut groups: BTreeMap<Vec<(String, String)>, Vec<&CellAnalysis>> = BTreeMap::new();
    for cell in analysis.cells.iter().filter(|cell| is_free(cell)) {
        let held = held(analysis, cell, |factor| VARIED.contains(&factor));
        groups.entry(held).or_default().push(cell);
    }
    let sizes = |cells: &[&CellAnalysis]| {
        let mut sizes: Vec<u64> = cells.iter().map(|cell| cell.cell.trial().bs).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let pairs = groups.values();
    // Of depths for each size, and of each two sizes for IOPS and for throughput.
    let compared = |cells: &Vec<&CellAnalysis>| {
        let sizes = sizes(cells).len();
        cells.len() + sizes * (sizes - 1)
    };
    let pairs: usize = pairs.map(compared).sum();
    let confidence = confidence(pairs);
    let found = groups.iter().flat_map(|(held, cells)| {
        let sizes = sizes(cells);
        let of_size = |size: &u64| saturated(cells, *size, confidence);
        let saturated: Vec<Saturated<'_>> = sizes.iter().filter_map(of_size).collect();
        // The limit of a single size may be of requests or of bytes.
        let of_one = match analysis.response {
            Response::Throughput => Response::Throughput,
            _ => Response::Iops,
        };
        let kinds = match sizes.len() {
            1 => vec![(&kind::FLIGHT_LIMIT, of_one, 1)],
            _ => OF_SIZES.to_vec(),
        };
        let kinds = kinds.into_iter();
        kinds.filter_map(move |kind| limit(&saturated, kind, (held, run), confidence))
    });
    found.collect()
}

/// Whether only the storage can limit a cell.
fn is_free(cell: &CellAnalysis) -> bool {
    let spec = &cell.cell.spec;
    let size = spec.only_trial().and_then(TrialSpec::request_size);
    let is_plain = size.is_some() && !spec.runs_program() && !spec.tool.is_peer();
    let waits = |trial: &TrialSpec| trial.thinktime.is_some();
    let is_asked = cell.is_paced() || spec.only_trial().is_some_and(waits);
    is_plain && !is_asked && !cell.flags.contains(&DoubtKind::ToolBound) && cell.is_target()
}

/// The cell with this I/O size and the most requests in flight, and the fewest from which on all cells give as many IOPS; `None` unless
/// these are half of them or fewer.
fn saturated<'a>(cells: &[&'a CellAnalysis], size: u64, confidence: f64) -> Option<Saturated<'a>> {
    let flight = |cell: &CellAnalysis| cell.cell.trial().in_flight_of_all();
    let cells = cells.iter().copied();
    let own = cells.filter(|cell| cell.cell.trial().bs == size);
    let mut own: Vec<&CellAnalysis> = own.collect();
    own.sort_by_key(|cell| Reverse(flight(cell)));
    let (deepest, fewer) = own.split_first()?;
    let is_alike = |cell: &&&CellAnalysis| is_alike(cell, deepest, Response::Iops, confidence);
    let fewest = flight(fewer.iter().take_while(is_alike).last()?);
    (fewest * DEEPER_MIN <= flight(deepest)).then_some((*deepest, fewest))
}

/// Whether two cells are shown to have the same IOPS, or throughput, within the margin.
fn is_alike(base: &CellAnalysis, other: &CellAnalysis, of: Response, confidence: f64) -> bool {
    let Some(iops) = of_trials(base.iops_trials(), other.iops_trials(), confidence) else {
        return false;
    };
    let bytes = other.cell.trial().bs as f64 / base.cell.trial().bs as f64;
    let factor = if of == Response::Iops { 1.0 } else { bytes };
    let scaled = |(low, high): (f64, f64)| (low * factor, high * factor);
    let estimate = Estimate {
        ratio: iops.ratio * factor,
        interval: iops.interval.map(scaled),
        dependent_interval: iops.dependent_interval.map(scaled),
        groups: iops.groups.map(scaled),
        ..iops
    };
    let against = SideDoubts::of_cells(base, other, Response::Iops);
    judge(&estimate, MARGIN, &against, true).0 == Difference::Equivalent
}

/// The limit over the longest run of sizes whose IOPS, or throughput, equal the first size's.
fn limit(
    saturated: &[Saturated<'_>],
    (kind, of, span_min): LimitKind,
    (held, run): (&[(String, String)], usize),
    confidence: f64,
) -> Option<Claim> {
    let size = |cell: &CellAnalysis| cell.cell.trial().bs;
    let from = |first: usize| {
        let others = saturated[first + 1..].iter();
        let alike = others.take_while(|one| is_alike(saturated[first].0, one.0, of, confidence));
        &saturated[first..=first + alike.count()]
    };
    let longest = (0..saturated.len()).map(from);
    let longest = longest.max_by_key(|cells| cells.len())?;
    let cells = || longest.iter().map(|(cell, _)| *cell);
    let (first, last) = (cells().next()?, cells().next_back()?);
    let fewest = longest.iter().map(|(_, fewest)| *fewest).max()?;
    let values: Vec<f64> = cells().filter_map(|cell| cell.median(of)).collect();
    let bytes = |cell| Point::main(Quantity::Bytes, size(cell) as f64);
    let points = [
        Point::main(Quantity::Of(of), median(&values)?),
        Point::count(Standing::Main, "request", fewest as usize),
        bytes(first),
    ];
    let points = points
        .into_iter()
        .chain((span_min > 1).then(|| bytes(last)));
    let cells = cells().map(|cell| id(run, cell));
    (size(first) * span_min <= size(last)).then(|| Claim {
        held: held.to_vec(),
        ..Claim::new(kind, cells.collect()).with_points(points)
    })
}

/// A time, ns.
const TIME: Quantity = Quantity::Of(Response::Latency);

/// The factor whose levels prepare buffers.
const PREPARATION: &str = "buffer_init";

/// The cost of page faults in untouched buffers, compared with zeroed ones in the same setting; `None` if there is none. If these
/// are slower without more page faults, the comparison alone says so.
pub(super) fn of_faults(analysis: &Analysis, run: usize) -> Option<Claim> {
    let is_compared = |factor: &str| factor == PREPARATION;
    let is_varied = analysis.factors.iter().any(|factor| is_compared(factor));
    if !is_varied || analysis.response != Response::Throughput {
        return None;
    }
    // The preparation of all buffers of a cell; `None` if groups differ.
    let init_of = |cell: &CellAnalysis| cell.cell.spec.shared(|trial| trial.buffer_init);
    let cells = || analysis.cells.iter();
    let with = |init| cells().filter(move |cell| init_of(cell) == Some(init) && cell.n > 0);
    // Uses the family of the comparisons of all preparations, so that both give the same intervals.
    let first = cells().next().and_then(init_of);
    let is_other = |cell: &&CellAnalysis| !cell.values.is_empty() && init_of(cell) != first;
    let confidence = confidence(cells().filter(is_other).count());
    let setting = |untouched| {
        let setting = held(analysis, untouched, is_compared);
        let mut zeroed = with(BufferInit::Zeroed);
        let zeroed = zeroed.find(|cell| held(analysis, cell, is_compared) == setting)?;
        let ratio = within_run(zeroed, untouched, confidence)?;
        Some((setting, [untouched, zeroed], ratio))
    };
    let settings: Vec<_> = with(BufferInit::Untouched).filter_map(setting).collect();
    let added = |[untouched, zeroed]: [&CellAnalysis; 2]| {
        Some(untouched.minor_faults? - zeroed.minor_faults?).filter(|added| *added >= 1.0)
    };
    let slower = settings.iter().filter(|(_, sides, ratio)| {
        let [untouched, zeroed] = *sides;
        let against = SideDoubts::of_cells(zeroed, untouched, Response::Throughput);
        let (difference, _) = judge(ratio, MARGIN, &against, true);
        difference == Difference::Lower && added(*sides).is_some()
    });
    let most = slower.clone();
    let most = most.min_by(|a, b| a.2.ratio.total_cmp(&b.2.ratio));
    let (setting, sides, ratio) = most?;
    let [untouched, zeroed] = *sides;
    let time = |cell: &CellAnalysis| cell.median(Response::Elapsed);
    let more_ns = Some(time(untouched)? - time(zeroed)?).filter(|ns| *ns > 0.0);
    let cost = more_ns.zip(added(*sides)).map(|(ns, faults)| ns / faults);
    let median = |cell: &CellAnalysis| Some(cell.response?.median);
    let median = |cell| Some(Point::main(Quantity::Of(analysis.response), median(cell)?));
    let faults = |cell: &CellAnalysis| {
        let quantity = Quantity::Count("page fault");
        Some(Point::new(Standing::Faults, quantity, cell.minor_faults?))
    };
    let alike = Point::count(Standing::Alike, "setting", slower.count());
    let numbers = [
        median(zeroed)?,
        median(untouched)?,
        faults(untouched)?,
        faults(zeroed)?,
    ];
    let cost = cost.map(|ns| Point::new(Standing::Cost, TIME, ns));
    let alike = alike.of(settings.len() as f64);
    let of_run = Claim::of_run(&kind::FAULT_COST, (analysis, run), |_| true);
    Some(Claim {
        held: setting.clone(),
        ratio: Some(*ratio),
        ..of_run.with_points(numbers.into_iter().chain(cost).chain([alike]))
    })
}

/// The curves whose times are a fixed cost of a request and a bandwidth for its bytes.
pub(super) fn of_requests(analysis: &Analysis, run: usize) -> Vec<Claim> {
    let curves = bends::bendable(analysis).into_iter();
    let of_curve = |curve: Curve<'_>| {
        let model = bends::fixed_cost(analysis, &curve)?;
        // Bytes per ns are GB/s.
        let mb_s = model.bandwidth * 1e3;
        // Throughput is below half of the rate at all smaller sizes, and above it at all greater ones.
        let is_seen = |is_below: bool| {
            let points = curve.points.iter();
            let mut own = points.filter(|point| ((point.size as f64) < model.n_half) == is_below);
            own.clone().next().is_some()
                && own.all(|point| (point.summary.median < mb_s / 2.0) == is_below)
        };
        let half = (is_seen(true) && is_seen(false))
            .then(|| Point::new(Standing::Half, Quantity::Bytes, model.n_half));
        let numbers = [
            Point::main(TIME, model.t0),
            Point::main(Quantity::Of(Response::Throughput), mb_s),
            Point::main(Quantity::Share, model.relative_error_max),
        ];
        let ids = curve.points.iter().map(|point| point.cell.cell.id);
        let ids: Vec<i64> = ids.collect();
        let is_own = |cell: &CellAnalysis| ids.contains(&cell.cell.id);
        let claim = Claim::of_run(&kind::REQUEST_COST, (analysis, run), is_own);
        let first = curve.points.first()?;
        Some(Claim {
            held: held(analysis, first.cell, |factor| factor == curve.factor),
            ..claim.with_points(numbers.into_iter().chain(half))
        })
    };
    curves.filter_map(of_curve).collect()
}
