//! Limits of requests or of bytes per second, which are the same for several sizes, and which more requests in
//! flight do not raise.

use std::collections::BTreeMap;

use iolab_stats::median;
use iolab_workload::response::Response;

use super::Claim;
use super::effect::{Difference, Estimate, MARGIN_UP, confidence, iops_within_run, judge};
use super::kind;
use super::point::{Point, Quantity};
use super::series::id;
use crate::analysis::{Analysis, CellAnalysis, DoubtKind};
use crate::curve::held;
use crate::doubt::SideDoubts;

/// Factors that a limit does not depend on.
const VARIED: [&str; 3] = ["bs", "depth", "threads"];
/// Least ratio of the largest size at a limit to the smallest one.
const SPAN_MIN: u64 = 4;
/// Least factor by which requests in flight must grow without raising the limit.
const DEEPER_MIN: u64 = 2;

/// The cell with the most requests in flight, of a size at which more requests in flight do not raise IOPS.
type Saturated<'a> = &'a CellAnalysis;

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
    let pairs: usize = groups.values().map(|cells| 3 * sizes(cells).len()).sum();
    let confidence = confidence(pairs);
    let found = groups.iter().flat_map(|(held, cells)| {
        let saturated = sizes(cells)
            .into_iter()
            .filter_map(|size| saturated(cells, size, confidence));
        let saturated: Vec<Saturated<'_>> = saturated.collect();
        [Response::Iops, Response::Throughput]
            .into_iter()
            .filter_map(move |of| limit(&saturated, of, (held, run), confidence))
    });
    found.collect()
}

/// Whether only the storage can limit a cell.
fn is_free(cell: &CellAnalysis) -> bool {
    let spec = &cell.cell.spec;
    let is_plain = !spec.has_groups() && !spec.runs_program() && !spec.tool.is_peer();
    is_plain && !cell.is_paced() && !cell.flags.contains(&DoubtKind::ToolBound) && cell.is_target()
}

/// The cell with this I/O size and the most requests in flight; `None` unless half of them or fewer give as many
/// IOPS.
fn saturated<'a>(cells: &[&'a CellAnalysis], size: u64, confidence: f64) -> Option<Saturated<'a>> {
    let flight = |cell: &CellAnalysis| cell.cell.trial().in_flight_of_all();
    let own = || {
        cells
            .iter()
            .copied()
            .filter(|cell| cell.cell.trial().bs == size)
    };
    let deepest = own().max_by_key(|cell| flight(cell))?;
    let fewer = own().filter(|cell| flight(cell) * DEEPER_MIN <= flight(deepest));
    let before = fewer.max_by_key(|cell| flight(cell))?;
    is_alike(before, deepest, Response::Iops, confidence).then_some(deepest)
}

/// Whether two cells are shown to have the same IOPS, or throughput, within the margin.
fn is_alike(base: &CellAnalysis, other: &CellAnalysis, of: Response, confidence: f64) -> bool {
    let Some(iops) = iops_within_run(base, other, confidence) else {
        return false;
    };
    let bytes = other.cell.trial().bs as f64 / base.cell.trial().bs as f64;
    let factor = if of == Response::Iops { 1.0 } else { bytes };
    let scaled = |ends: (f64, f64)| (ends.0 * factor, ends.1 * factor);
    let estimate = Estimate {
        ratio: iops.ratio * factor,
        interval: iops.interval.map(scaled),
        dependent_interval: iops.dependent_interval.map(scaled),
        groups: iops.groups.map(scaled),
        ..iops
    };
    let against = SideDoubts::of_cells(base, other, Response::Iops);
    judge(&estimate, MARGIN_UP, &against, true).0 == Difference::Equivalent
}

/// The limit over the longest run of sizes whose IOPS, or throughput, equal the first size's.
fn limit(
    saturated: &[Saturated<'_>],
    of: Response,
    (held, run): (&[(String, String)], usize),
    confidence: f64,
) -> Option<Claim> {
    let size = |cell: &CellAnalysis| cell.cell.trial().bs;
    let from = |first: usize| {
        let others = saturated[first + 1..].iter();
        let alike = others.take_while(|cell| is_alike(saturated[first], cell, of, confidence));
        &saturated[first..=first + alike.count()]
    };
    let longest = (0..saturated.len())
        .map(from)
        .max_by_key(|cells| cells.len())?;
    let (first, last) = (longest.first()?, longest.last()?);
    let value = |cell: &&CellAnalysis| {
        let iops = cell.median(Response::Iops)?;
        Some(match of {
            Response::Iops => iops,
            _ => iops * size(cell) as f64 / 1e6,
        })
    };
    let values: Vec<f64> = longest.iter().filter_map(value).collect();
    let bytes = |cell| Point::main(Quantity::Bytes, size(cell) as f64);
    let points = [
        Point::main(Quantity::Of(of), median(&values)?),
        bytes(first),
        bytes(last),
    ];
    let kind = match of {
        Response::Iops => &kind::REQUEST_LIMIT,
        _ => &kind::THROUGHPUT_LIMIT,
    };
    let cells = longest.iter().map(|cell| id(run, cell));
    (size(first) * SPAN_MIN <= size(last)).then(|| Claim {
        held: held.to_vec(),
        ..Claim::new(kind, cells.collect()).with_points(points)
    })
}
