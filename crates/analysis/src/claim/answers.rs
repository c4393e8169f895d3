//! Claims other than comparisons and best sizes that answer the question of an experiment or explain its numbers.

use iolab_workload::response::Response;

use super::effect::{CellId, Difference, MARGIN};
use super::kind::{self, Kind, Role};
use super::{Claim, Point, Quantity, Standing};
use crate::analysis::{
    Analysis, CellAnalysis, CellRate, CellVerified, DoubtKind, HELD_FROM, OVERLOAD_TOLD,
};
use crate::doubt::{Direction, SideDoubts};
use crate::equivalence::{MARGINS, ProgramPair, SizePoint, program_pairs};

/// The result of reading back; `None` where nothing was read back.
pub(super) fn verified(analysis: &Analysis, run: usize) -> Option<Claim> {
    let cells = analysis.cells.iter().filter_map(|c| c.verified.as_ref());
    let all = cells.fold(CellVerified::default(), CellVerified::plus);
    let is_wrong = |cell: &&CellAnalysis| cell.flags.contains(&DoubtKind::VerifyFailed);
    let writes =
        |cell: &&CellAnalysis| cell.cell.trial().writes() && !cell.cell.spec.runs_program();
    let unread = analysis.cells.iter().filter(writes).map(|cell| {
        let read = cell.verified.map_or(0, |verified| verified.trials);
        ((cell.n + cell.failed) as u64).saturating_sub(read)
    });
    let total = all.trials + unread.sum::<u64>();
    let wrong = analysis.cells.iter().filter(is_wrong).count();
    let bytes = |standing, bytes: u64| Point::new(standing, Quantity::Bytes, bytes as f64);
    let unknown = all.cache_unknown as usize;
    let count = |standing, one, value: usize, of: f64| Point::count(standing, one, value).of(of);
    let (kind, points) = match all.failed {
        0 => {
            let mut points = vec![
                bytes(Standing::Main, all.bytes),
                count(Standing::Main, "trial", all.whole as usize, total as f64),
            ];
            let cached = bytes(Standing::Cached, all.cached_bytes);
            points.extend((all.cached_bytes > 0).then_some(cached));
            let unknown = Point::count(Standing::CacheUnknown, "trial", unknown);
            points.extend((all.cache_unknown > 0).then_some(unknown));
            (&kind::VERIFIED, points)
        }
        _ => {
            let faults: u64 = all.kinds().map(|(_, blocks)| blocks).sum();
            let mut points = vec![
                count(Standing::Main, "cell", wrong, analysis.cells.len() as f64),
                count(Standing::Main, "block", faults as usize, all.blocks as f64),
            ];
            points.extend(all.kinds().map(|(kind, blocks)| {
                Point::new(Standing::Wrong, Quantity::Fault(kind), blocks as f64)
            }));
            (&kind::VERIFY_FAILED, points)
        }
    };
    let claim = Claim::of_run(kind, (analysis, run), |cell| cell.verified.is_some());
    (all.blocks > 0).then(|| claim.with_points(points))
}

/// A length of time, ns.
const ELAPSED: Quantity = Quantity::Of(Response::Elapsed);
/// The response times at the lowest and the highest rate that was reached.
pub(super) fn load(analysis: &Analysis, run: usize) -> Option<Claim> {
    if analysis.factors != ["rate"] || analysis.response != Response::Latency {
        return None;
    }
    let reports = || {
        let all = analysis.cells.iter();
        all.filter_map(|cell| Some((cell, cell.rate_report.as_ref()?)))
    };
    let by_rate =
        |a: &(_, &CellRate), b: &(_, &CellRate)| a.1.rate_wanted.total_cmp(&b.1.rate_wanted);
    let held = reports();
    let held = held.filter(|(cell, report)| report.not_held == 0 && cell.latency.is_some());
    let mut held: Vec<(&CellAnalysis, &CellRate)> = held.collect();
    held.sort_by(by_rate);
    let (kind, points, named) = match held.as_slice() {
        [] => {
            let (cell, report) = reports().min_by(by_rate)?;
            let rate = |value| Point::main(Quantity::Rate, value);
            let points = vec![
                Point::main(Quantity::Share, HELD_FROM),
                rate(report.rate_wanted),
                rate(report.rate_achieved),
            ];
            (&kind::LOAD_NOT_HELD, points, vec![cell])
        }
        [least, rest @ ..] => {
            let most = rest.last();
            let (last, report) = most.unwrap_or(least);
            let hides = report.hidden > OVERLOAD_TOLD;
            let standing = match reports().all(|(_, report)| report.not_held == 0) {
                _ if hides => Standing::NotTooHigh,
                true => Standing::HighestAsked,
                false => Standing::HighestHeld,
            };
            let hidden = [
                Point::new(Standing::Hidden, Quantity::Share, report.hidden),
                Point::new(Standing::Hidden, ELAPSED, report.span_ns),
            ];
            let stored = last.disturbance.left_in_storage_cache();
            let stored = stored.map(|share| Point::new(Standing::Stored, Quantity::Share, share));
            let of_most = most.into_iter().flat_map(|most| times(standing, *most));
            let points = times(Standing::Main, *least).into_iter().chain(of_most);
            let points = points.chain(hidden.into_iter().filter(|_| hides));
            let points = points.chain(stored);
            let named = [least, most.unwrap_or(least)].map(|(cell, _)| *cell);
            (&kind::LOAD, points.collect(), named.to_vec())
        }
    };
    // The claim is a value: a disturbance that can have changed it by more than the margin is a doubt.
    let doubts = SideDoubts::of_values(named).turning([Direction::Equal; 2], MARGIN);
    let role = if doubts.is_empty() {
        kind.role
    } else {
        Role::Nothing
    };
    let claim = Claim::of_run(kind, (analysis, run), |cell| cell.rate_report.is_some());
    Some(Claim {
        doubts,
        ..claim.in_role(role).with_points(points)
    })
}

/// The median of the response time at a rate, and its 99th percentile.
fn times(standing: Standing, (cell, report): (&CellAnalysis, &CellRate)) -> Vec<Point> {
    let median = cell.response.and_then(|summary| summary.median_interval);
    let interval = median.map(|median| (median.low, median.high));
    let of = |(response, interval)| {
        Some(Point {
            rate: Some(report.rate_wanted),
            interval,
            ..Point::new(standing, Quantity::Of(response), cell.latency?[response]?)
        })
    };
    let both = [(Response::Latency, interval), (Response::P99, None)];
    both.into_iter().filter_map(of).collect()
}

/// All claims about the programs of a run: how their times differ, and from which size on they are equivalent.
pub(super) fn programs(analysis: &Analysis, run: usize) -> Vec<Claim> {
    let of_pair = |pair: ProgramPair| {
        let claim = |kind: &'static Kind, is_shown: bool, points: Vec<Point>| {
            let cells = pair.cells.iter().map(|cell| CellId { run, cell: *cell });
            let claim = Claim {
                held: pair.held.clone(),
                ..Claim::new(kind, cells.collect())
            };
            let role = if is_shown { kind.role } else { Role::Nothing };
            claim.in_role(role).with_points(points)
        };
        let first = pair.points.first();
        let has_ratio = first.is_some_and(|point| point.ratio.is_some());
        let differ = || claim(&kind::PROGRAMS_DIFFER, pair.differs(), differences(&pair));
        let equivalent = (0..MARGINS.len()).map(|margin| {
            let is_shown = pair.equivalent_from(margin).is_some();
            let (kind, points) = equivalence(&pair, margin);
            claim(kind, is_shown, points)
        });
        let differ = has_ratio.then(differ).into_iter();
        differ.chain(equivalent).collect::<Vec<_>>()
    };
    let pairs = program_pairs(analysis).into_iter();
    pairs.flat_map(of_pair).collect()
}

/// The times at the smallest and the largest size, and where they differ most.
fn differences(pair: &ProgramPair) -> Vec<Point> {
    let size = |point: &SizePoint| point.ratio.map_or(0.0, |ratio| ratio.ratio.ln().abs());
    let differing = pair.points.iter().filter(|point| point.differs());
    let most = differing.max_by(|a, b| size(a).total_cmp(&size(b)));
    let ends = [pair.points.first(), most, pair.points.last()];
    let mut told: Vec<&SizePoint> = ends.into_iter().flatten().collect();
    told.dedup_by_key(|point| point.size);
    let point = |own: &SizePoint| {
        let standing = match own.difference {
            Difference::Higher | Difference::Lower => Standing::Differs,
            Difference::Equivalent | Difference::NotFound => Standing::NotFound,
            Difference::CannotTell if own.doubts.is_empty() => Standing::Unknown,
            Difference::CannotTell => Standing::Doubtful,
        };
        Point {
            doubts: own.doubts.clone(),
            ..both_times(pair, own, standing)
        }
    };
    told.into_iter().map(point).collect()
}

/// Whether two programs are equivalent within a margin, by the test and by the ratio alone.
fn equivalence(pair: &ProgramPair, margin: usize) -> (&'static Kind, Vec<Point>) {
    let (shown, naive) = (pair.equivalent_from(margin), pair.naive_from(margin));
    let doubted = pair.doubted(margin).filter(|_| shown.is_none());
    let [is_shown, is_doubted, is_near, is_open] = &kind::PROGRAMS_EQUIVALENT;
    let kind = match (doubted, naive) {
        _ if shown.is_some() => is_shown,
        (Some(_), _) => is_doubted,
        (None, Some(_)) => is_near,
        (None, None) => is_open,
    };
    let from = |standing, size: u64| Point::new(standing, Quantity::Size, size as f64);
    let doubted = doubted.map(|point| Point {
        doubts: point.against_equivalence[margin].clone(),
        ..both_times(pair, point, Standing::Doubtful)
    });
    let last = pair.points.last().map(|point| {
        let standing = match point.ratio {
            Some(_) => Standing::AsMeasured,
            None => Standing::Unknown,
        };
        both_times(pair, point, standing)
    });
    let has_sizes = pair.has_files && pair.points.len() > 1;
    let alone = naive.filter(|_| has_sizes);
    let points = [
        Some(Point::main(Quantity::Share, MARGINS[margin])),
        shown
            .filter(|_| has_sizes)
            .map(|size| from(Standing::From, size)),
        doubted,
        alone.map_or(last, |size| Some(from(Standing::Alone, size))),
    ];
    (kind, points.into_iter().flatten().collect())
}

/// The times of both programs at a size, with their ratio; the size alone if one has none.
fn both_times(pair: &ProgramPair, point: &SizePoint, standing: Standing) -> Point {
    let Some((base, new)) = point.medians_ns else {
        return match pair.has_files {
            true => Point::new(standing, Quantity::Size, point.size as f64),
            false => Point::count(standing, "program", 2),
        };
    };
    Point {
        ratio: point.ratio,
        size: pair.has_files.then_some(point.size),
        ..Point::new(standing, ELAPSED, new).of(base)
    }
}
