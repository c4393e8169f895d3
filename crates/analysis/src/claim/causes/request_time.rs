//! The fixed time of a request as the explanation of a difference between two sizes.

use iolab_plan::experiment::Inquiry;
use iolab_plan::suspect::BETWEEN;
use iolab_stats::fit_latency_bandwidth;

use super::doubts::each_kind_once;
use super::{Estimate, Point, Quantity, Standing, cell, sides};
use crate::analysis::{Analysis, CellAnalysis, Response, TRIALS_MIN};
use crate::doubt::{Direction, Doubt, SideDoubts};

/// Largest error of the model at any size, as a share of the time.
const ERROR_MAX: f64 = 0.1;

/// Least ratio of the times of both sides: beyond the error of each.
const TIMES_MIN: f64 = (1.0 + ERROR_MAX) / (1.0 - ERROR_MAX);

/// The points and the ratio of a request's fixed time that explains the difference, or the point of one that does not; `None`
/// for an inquiry without sizes between its sides.
///
/// `T(s) = t0 + s / B` is fitted to the sizes between. It explains the difference if it predicts both sides, to which it is
/// not fitted, and if their times differ by more than its error: under a limit of requests per second all sizes take as long.
/// Doubts about any of the cells that could hide a greater error open the verdict.
pub(super) fn of_sizes_between(
    analysis: &Analysis,
    inquiry: &Inquiry,
) -> Option<Result<(Vec<Point>, Estimate), Point>> {
    inquiry.between.first()?;
    let between = inquiry.between.iter();
    let between: Option<Vec<_>> = between.map(|label| cell(analysis, label)).collect();
    let sides = sides(analysis, inquiry, &[]);
    let found = sides.zip(between).and_then(|(sides, between)| {
        let (time, error) = request_time(sides, &between)?;
        Some((time, doubts(&[&sides[..], &between[..]].concat(), error)))
    });
    let open = |doubts| Point {
        suspects: vec![BETWEEN.to_owned()],
        doubts,
        ..Point::count(Standing::Undecided, "size", inquiry.between.len())
    };
    Some(match found {
        Some((explains, doubts)) if doubts.is_empty() => Ok(explains),
        Some((_, doubts)) => Err(open(doubts)),
        None => Err(open(Vec::new())),
    })
}

/// Doubts about the cells, each kind once, that could take the error of the model beyond what it may be. The model holds for all
/// sizes alike, so that each cell must be as good as measured.
fn doubts(cells: &[&CellAnalysis], error: f64) -> Vec<Doubt> {
    let pairs = cells.windows(2);
    let pairs = pairs.map(|two| SideDoubts::of_cells(two[0], two[1], Response::Throughput));
    let room = (1.0 + ERROR_MAX) / (1.0 + error);
    each_kind_once(SideDoubts::of_any(pairs).turning([Direction::Equal; 2], room))
}

/// Explanation of both sides, with its largest error at any size.
fn request_time(
    sides: [&CellAnalysis; 2],
    between: &[&CellAnalysis],
) -> Option<((Vec<Point>, Estimate), f64)> {
    // Bytes, and the ns of a request.
    let point = |cell: &CellAnalysis| {
        let bytes = cell.cell.trial().bs as f64;
        let mb_s = cell.median(Response::Throughput)?;
        (cell.n >= TRIALS_MIN).then_some((bytes, bytes * 1e3 / mb_s))
    };
    let points = between.iter().map(|cell| point(cell));
    let (sizes, times): (Vec<f64>, Vec<f64>) = points.collect::<Option<_>>()?;
    let fit = fit_latency_bandwidth(&sizes, &times)?;
    let [base, other] = sides.map(point);
    let (base, other) = base.zip(other)?;
    let predicted = |(bytes, _): (f64, f64)| fit.t0 + bytes / fit.bandwidth;
    let errors = [base, other].map(|side| (predicted(side) / side.1 - 1.0).abs());
    let error = errors.into_iter().fold(fit.relative_error_max, f64::max);
    let ratio = (predicted(base) / predicted(other)).ln().abs();
    let fixed = Point {
        suspects: vec![BETWEEN.to_owned()],
        ..Point::main(Quantity::Of(Response::Latency), fit.t0)
    };
    let rate = Quantity::Of(Response::Throughput);
    let points = vec![
        fixed,
        Point::main(rate, fit.bandwidth * 1e3),
        Point::count(Standing::Main, "size", sizes.len()),
    ];
    let predicts = other.0 / predicted(other) / (base.0 / predicted(base));
    let explains = (points, Estimate::of(predicts, None));
    (error <= ERROR_MAX && ratio >= TIMES_MIN.ln()).then_some((explains, error))
}
