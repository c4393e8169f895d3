//! The best I/O size of a curve: which sizes may be the best, which are equivalent to it within the margin, and which are worse.

use std::collections::BTreeMap;

use iolab_plan::experiment::trials_to_compare;
use iolab_workload::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::is_rate;
use super::effect::{
    CellId, Estimate, MARGIN_UP, confidence, is_no_worse, judge, log_ratios, within_run,
};
use super::point::Standing;
use super::series::groups;
use super::simplicity::effort;
use crate::analysis::{Analysis, CellAnalysis, TRIALS_MIN};
use crate::curve::{Curve, by_size, held};
use crate::doubt::{Doubt, SideDoubts};
use crate::in_threads;
use crate::json;

/// Above this number of possibly best sizes, equivalence is not tested: the cost grows with the square.
const OPEN_MAX: usize = 40;

/// Factors whose combinations are ways to do one task. Listed cells that differ in other factors, such as jobs
/// of fio, need not be.
const WAYS: [&str; 3] = ["backend", "threads", "depth"];

/// One size of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// The cell of this size.
    pub cell: CellId,
    /// The I/O size, bytes.
    pub bs: u64,
    /// Median response of the candidate.
    pub median: f64,
    /// The medians of two groups of trials, if there are any: the median may lie between them, where no trial
    /// is.
    pub groups: Option<(f64, f64)>,
    /// Result of the comparison with the other sizes.
    pub standing: Standing,
    /// Ratio of its response to the best median of all sizes; `None` for that size itself, and without an
    /// interval.
    pub of_best: Option<Estimate>,
    /// Doubts that could reverse the result, for [`Standing::Doubtful`].
    pub doubts: Vec<Doubt>,
    /// Whether it is [`Standing::Open`] although it is worse in each shared block, because these are fewer than
    /// [`Best::blocks_needed`].
    pub is_worse_in_each_block: bool,
}

/// The best sizes of one curve.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Best {
    /// The quantity.
    #[serde(serialize_with = "json::name")]
    #[schemars(with = "String")]
    pub response: Response,
    /// Factors that are constant along the curve, with their levels.
    #[serde(serialize_with = "json::object")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub held: Vec<(String, String)>,
    /// Whether it compares ways to do one task, which an experiment lists, instead of sizes.
    pub is_of_ways: bool,
    /// The compared sizes in ascending order, or the compared ways.
    pub candidates: Vec<Candidate>,
    /// Index in `candidates` of the size with the best median.
    pub best: usize,
    /// Number of shared blocks from which a size that is worse in each of them is shown to be worse, among all
    /// pairs of the family.
    pub blocks_needed: usize,
}

impl Best {
    /// Whether the curve shows anything: a size that is worse, or one that is equivalent.
    pub fn shows(&self) -> bool {
        let all = self.candidates.iter();
        let mut shown = all.map(|one| one.standing);
        shown.any(|standing| standing == Standing::Worse)
            || self
                .candidates
                .iter()
                .all(|one| one.standing == Standing::Near)
    }
}

/// Comparison of one size with another.
struct Judged {
    estimate: Estimate,
    /// Doubts that could reverse a difference.
    doubts: Vec<Doubt>,
    /// Whether it is shown to be within the margin of the other, or better.
    is_near: bool,
}

/// The best sizes of each curve over I/O sizes of a run, in the order of the definition.
pub(super) fn best_of_curves(analysis: &Analysis, run: usize) -> Vec<Best> {
    let mut curves = by_size(analysis, "bs");
    // A rate that is kept decides the throughput, not the size.
    if is_rate(analysis.response) {
        let all = curves.iter_mut();
        all.for_each(|curve| curve.points.retain(|point| !point.cell.is_paced()));
        curves.retain(|curve| curve.points.len() > 1);
    }
    let pairs = curves.iter().map(|curve| pairs(curve.points.len()));
    let family = pairs.sum();
    let points = curves.iter().flat_map(|curve| &curve.points);
    let values = points.map(|point| point.cell.values.len()).sum();
    let best = |curve: &Curve<'_>| best(analysis, curve, run, family);
    let found = in_threads::map(&curves, values, best);
    found.into_iter().flatten().collect()
}

/// Number of pairs of `cells` cells. All pairs count, because the trials that judge the best median also choose
/// it, and several cells may be equally good.
fn pairs(cells: usize) -> usize {
    cells * cells.saturating_sub(1) / 2
}

fn best(analysis: &Analysis, curve: &Curve<'_>, run: usize, family: usize) -> Option<Best> {
    let points = &curve.points;
    let top = curve.best(analysis.response)?;
    let best = points.iter().position(|point| point.size == top.size)?;
    let cells: Vec<&CellAnalysis> = points.iter().map(|point| point.cell).collect();
    Some(Best {
        response: analysis.response,
        held: held(analysis, top.cell, |factor| factor == "bs"),
        is_of_ways: false,
        candidates: candidates(&cells, best, (analysis, run), family),
        best,
        blocks_needed: blocks_needed(family),
    })
}

/// Comparison of the ways to do one task that an experiment lists. `None` if the experiment asks anything else
/// about its cells.
pub(super) fn ways(analysis: &Analysis, run: usize) -> Option<Best> {
    let response = analysis.response;
    let measured = analysis.cells.iter();
    let cells: Vec<&CellAnalysis> = measured.filter(|cell| cell.response.is_some()).collect();
    let median = |cell: &CellAnalysis| cell.response.map_or(f64::NAN, |summary| summary.median);
    let worth = |place: &usize| response.worth(median(cells[*place]));
    let best = (0..cells.len()).max_by(|a, b| {
        let by_worth = worth(a).total_cmp(&worth(b));
        by_worth.then_with(|| effort(cells[*b]).cmp(&effort(cells[*a])))
    })?;
    let do_the_same = analysis
        .factors
        .iter()
        .all(|factor| WAYS.contains(&factor.as_str()));
    (analysis.is_listed && do_the_same && cells.len() > 1).then(|| Best {
        response,
        held: Vec::new(),
        is_of_ways: true,
        candidates: candidates(&cells, best, (analysis, run), pairs(cells.len())),
        best,
        blocks_needed: blocks_needed(pairs(cells.len())),
    })
}

/// The fewest shared blocks with simultaneous exact intervals for `family` pairs.
fn blocks_needed(family: usize) -> usize {
    trials_to_compare(family) as usize
}

/// Comparison of each cell with the one at `best`, which has the best median. Intervals are simultaneous over
/// all pairs of the family.
fn candidates(
    cells: &[&CellAnalysis],
    best: usize,
    (analysis, run): (&Analysis, usize),
    family: usize,
) -> Vec<Candidate> {
    let response = analysis.response;
    let confidence = confidence(family);
    let against = |i: usize, j: usize| {
        let estimate = within_run(cells[j], cells[i], confidence)?;
        estimate.interval?;
        let against = SideDoubts::of_cells(cells[j], cells[i], response);
        let more_is_better = response.more_is_better();
        Some(Judged {
            is_near: is_no_worse(&estimate, &against, more_is_better),
            doubts: judge(&estimate, MARGIN_UP, &against, more_is_better).1,
            estimate: estimate.bounded(&against),
        })
    };
    let of_best: Vec<Option<Judged>> = (0..cells.len())
        .map(|i| (i != best).then(|| against(i, best)).flatten())
        .collect();
    // A loss within the margin also counts as a loss.
    let is_lower = |estimate: &Estimate| {
        let (low, high) = estimate.interval.unwrap_or((0.0, f64::INFINITY));
        match response.more_is_better() {
            true => high < 1.0,
            false => low > 1.0,
        }
    };
    let is_worse = |i: usize| {
        let judged = of_best[i].as_ref();
        judged.is_some_and(|one| is_lower(&one.estimate) && one.doubts.is_empty())
    };
    // Any cell that is not worse than the one with the best median may be the best.
    let open: Vec<usize> = (0..cells.len()).filter(|i| !is_worse(*i)).collect();
    let is_near = |i: usize| {
        let mut others = open.iter().filter(|j| **j != i);
        let near = |j: &usize| against(i, *j).is_some_and(|judged| judged.is_near);
        open.len() <= OPEN_MAX && others.all(near)
    };
    // With fewer blocks than an exact interval needs, one odd trial of the best cell can hide a result that all
    // other blocks show.
    let worse_in_each = |i: usize| {
        let logs = log_ratios(cells[best].trials(), cells[i].trials());
        let is_worse = |log: &f64| match response.more_is_better() {
            true => *log < 0.0,
            false => *log > 0.0,
        };
        let few = TRIALS_MIN..blocks_needed(family);
        few.contains(&logs.len()) && logs.values().all(is_worse)
    };
    let has_interval = (0..cells.len()).any(|i| of_best[i].is_some());
    let all = cells.iter().enumerate().map(|(i, cell)| {
        let judged = of_best[i].as_ref();
        let doubts = judged.map_or(Vec::new(), |one| one.doubts.clone());
        let standing = match judged {
            None if i != best || !has_interval => Standing::Unknown,
            _ if is_near(i) => Standing::Near,
            _ if is_worse(i) => Standing::Worse,
            _ if !doubts.is_empty() => Standing::Doubtful,
            _ => Standing::Open,
        };
        Candidate {
            cell: CellId {
                run,
                cell: cell.cell.id,
            },
            bs: cell.cell.trial().bs,
            median: cell.response.map_or(f64::NAN, |summary| summary.median),
            groups: groups(analysis, cell).map(|levels| (levels.low_median, levels.high_median)),
            standing,
            of_best: judged.map(|one| one.estimate),
            doubts,
            is_worse_in_each_block: standing == Standing::Open && i != best && worse_in_each(i),
        }
    });
    all.collect()
}
