//! Costs that explain a curve: of a request whatever its size, and of page faults in untouched buffers.

use iolab_workload::response::Response;

use super::Claim;
use super::kind;
use super::point::{Point, Quantity, Standing};
use crate::analysis::{Analysis, CellAnalysis};
use crate::bends;
use crate::buffer_preparation::{PreparationPoint, preparation};
use crate::curve::{Curve, held};

/// A time, ns.
const TIME: Quantity = Quantity::Of(Response::Latency);

/// The cost of page faults in untouched buffers; `None` if there is none. If these are slower without more page faults, the
/// comparison alone says so.
pub(super) fn of_faults(analysis: &Analysis, run: usize) -> Option<Claim> {
    let points = preparation(analysis);
    let settings = points.len();
    let is_told = |point: &&PreparationPoint| point.is_slower() && point.has_more_faults();
    let slower: Vec<&PreparationPoint> = points.iter().filter(is_told).collect();
    let by_ratio =
        |a: &&&PreparationPoint, b: &&&PreparationPoint| a.ratio.ratio.total_cmp(&b.ratio.ratio);
    let most = slower.iter().min_by(by_ratio)?;
    let median = |value| Point::main(Quantity::Of(analysis.response), value);
    let faults = |value| Point::new(Standing::Faults, Quantity::Count("page fault"), value);
    let cost = most
        .ns_per_fault
        .map(|ns| Point::new(Standing::Cost, TIME, ns));
    let numbers = [
        median(most.medians.1),
        median(most.medians.0),
        faults(most.faults.0),
        faults(most.faults.1),
    ];
    let alike = Point::count(Standing::Alike, "setting", slower.len()).of(settings as f64);
    let of_run = Claim::of_run(&kind::FAULT_COST, (analysis, run), |_| true);
    Some(Claim {
        held: most.held.clone(),
        ratio: Some(most.ratio),
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
            let own = curve.points.iter();
            let mut own = own
                .filter(|point| ((point.size as f64) < model.n_half) == is_below)
                .map(|point| (point.summary.median < mb_s / 2.0) == is_below)
                .peekable();
            own.peek().is_some() && own.all(|agrees| agrees)
        };
        let half = (is_seen(true) && is_seen(false))
            .then(|| Point::new(Standing::Half, Quantity::Bytes, model.n_half));
        let numbers = [
            Point::main(TIME, model.t0),
            Point::main(Quantity::Of(Response::Throughput), mb_s),
            Point::main(Quantity::Share, model.relative_error_max),
        ];
        let is_own = |cell: &CellAnalysis| {
            let mut points = curve.points.iter();
            points.any(|point| point.cell.cell.id == cell.cell.id)
        };
        let claim = Claim::of_run(&kind::REQUEST_COST, (analysis, run), is_own);
        let first = curve.points.first()?;
        Some(Claim {
            held: held(analysis, first.cell, |factor| factor == curve.factor),
            ..claim.with_points(numbers.into_iter().chain(half))
        })
    };
    curves.filter_map(of_curve).collect()
}
