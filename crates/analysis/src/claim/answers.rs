//! Claims other than comparisons and best sizes that answer the question of an experiment or explain its numbers.

use iolab_workload::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::effect::MARGIN_UP;
use super::kind::Role;
use super::{Claim, Payload, kind};
use super::{Point, Quantity, Standing};
use crate::analysis::{
    Analysis, CellAnalysis, CellRate, CellVerified, DoubtKind, HELD_FROM, OVERLOAD_TOLD,
};
use crate::doubt::{Direction, SideDoubts};
use crate::equivalence::{MARGINS, ProgramPair, program_pairs};

/// Two programs compared over the sizes of the file that they read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Programs {
    /// The results of both programs.
    pub pair: ProgramPair,
    /// Aspect that this claim covers.
    pub aspect: Aspect,
}

/// Aspect of two programs that a claim covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The ratio of their times.
    Ratio,
    /// The number of sizes at which a test finds a difference.
    Significance,
    /// The size from which they are equivalent within the margin at this index of [`MARGINS`].
    Equivalence(usize),
}

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
    let doubts = SideDoubts::of_values(named).turning([Direction::Equal; 2], MARGIN_UP);
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
    let latency = cell.latency.into_iter();
    let median = cell.response.and_then(|summary| summary.median_interval);
    let of = |response, value| Point {
        rate: Some(report.rate_wanted),
        ..Point::new(standing, Quantity::Of(response), value)
    };
    let both = latency.flat_map(|latency| {
        let p50 = of(Response::Latency, latency.p50_ns);
        let interval = median.map(|median| (median.low, median.high));
        [Point { interval, ..p50 }, of(Response::P99, latency.p99_ns)]
    });
    both.collect()
}

/// All claims about the programs of a run.
pub(super) fn programs(analysis: &Analysis, run: usize) -> Vec<Claim> {
    let of_pair = |pair: ProgramPair| {
        let first = pair.points.first();
        let has_ratio = first.is_some_and(|point| point.ratio.is_some());
        let mut tests = pair.points.iter().flat_map(|point| point.first_trials);
        let has_test = tests.any(|test| test.is_some());
        let equivalent = (0..MARGINS.len()).map(|margin| {
            let is_shown = pair.equivalent_from(margin).is_some();
            (
                Aspect::Equivalence(margin),
                true,
                &kind::PROGRAMS_EQUIVALENT,
                is_shown,
            )
        });
        let aspects = [
            (
                Aspect::Ratio,
                has_ratio,
                &kind::PROGRAMS_DIFFER,
                pair.differs(),
            ),
            (
                Aspect::Significance,
                has_test,
                &kind::PROGRAMS_SIGNIFICANCE,
                true,
            ),
        ];
        let aspects = aspects.into_iter().chain(equivalent);
        let made = aspects.filter(|(_, is_made, ..)| *is_made);
        let claims = made.map(|(aspect, _, kind, is_shown)| {
            let pair = pair.clone();
            let programs = Payload::Programs(Box::new(Programs { pair, aspect }));
            let role = if is_shown { kind.role } else { Role::Nothing };
            let claim = Claim::of_run(kind, (analysis, run), |_| true);
            claim.in_role(role).with_payload(programs)
        });
        claims.collect::<Vec<_>>()
    };
    let pairs = program_pairs(analysis).into_iter();
    pairs.flat_map(of_pair).collect()
}
