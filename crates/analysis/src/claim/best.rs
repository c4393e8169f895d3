//! The best I/O size of a curve, and the best setting for each kind of access.

use super::comparison::is_rate;
use super::effect::{
    Estimate, MARGIN, across_runs, confidence, is_no_worse, judge, log_ratios, within_run,
};
use super::kind::{self, BEST_SIZE, FASTEST_WAY, Role};
use super::series::id;
use super::{CellId, Claim, Point, Quantity, Standing};
use crate::analysis::{Analysis, CellAnalysis, TRIALS_MIN};
use crate::curve::{Curve, by_size, held};
use crate::doubt::{Doubt, DoubtKind, SideDoubts};
use iolab_plan::experiment::trials_to_compare;
use iolab_workload::names::TargetName;
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::Pattern;

/// Above this number of possibly best sizes, equivalence is not tested: the cost grows with the square.
const OPEN_MAX: usize = 40;

/// Factors whose combinations are ways to do one task. Listed cells that differ in other factors, such as jobs
/// of fio, need not be.
const WAYS: [&str; 3] = ["backend", "threads", "depth"];

/// Comparison of one size with another: the ratio, the doubts that could reverse a difference, and whether the size is shown
/// to be within the margin of the other, or better.
type Judged = (Estimate, Vec<Doubt>, bool);

impl Point {
    /// Whether its cell is shown to be better than the one that it is compared with.
    fn is_shown_better(&self, response: Response) -> bool {
        let interval = self.ratio.and_then(|ratio| ratio.interval);
        interval.is_some_and(|(low, high)| match response.more_is_better() {
            true => low > 1.0,
            false => high < 1.0,
        })
    }
}

impl Claim {
    /// The cells of which it states the best one, that one first; empty for other kinds.
    pub fn ranked(&self) -> impl Iterator<Item = &Point> + Clone {
        let is_ranked = self.of(Standing::Best).next().is_some();
        let all = self.points.iter();
        all.filter(move |point| is_ranked && point.cell.is_some())
    }

    /// Sets its kind by what its points show: a best cell, none that is better, or too few trials; or an effect.
    pub(super) fn settle(&mut self) {
        if self.comparison().is_some() {
            return self.settle_effects();
        }
        let rest = || self.ranked().skip(1).map(|point| point.standing);
        let are_all = |standing| rest().all(|one| one == standing);
        let shows = rest().any(|one| one == Standing::Worse) || are_all(Standing::Near);
        let place = match shows {
            true => 0,
            false if are_all(Standing::Unknown) => 2,
            false => 1,
        };
        let kinds = match self.kind.name == FASTEST_WAY[0].name {
            true => &FASTEST_WAY,
            false => &BEST_SIZE,
        };
        self.kind = &kinds[place];
        if !shows {
            self.role = Role::Nothing;
        }
    }
}

/// The best size of each curve over I/O sizes of a run, in the order of the definition.
pub(super) fn best_of_curves(analysis: &Analysis, run: usize) -> Vec<Claim> {
    let mut curves = by_size(analysis, "bs");
    // A rate that is kept decides the throughput, not the size.
    if is_rate(analysis.response) {
        let all = curves.iter_mut();
        all.for_each(|curve| curve.points.retain(|point| !point.cell.is_paced()));
        curves.retain(|curve| curve.points.len() > 1);
    }
    let family = curves.iter().map(|curve| pairs(curve.points.len())).sum();
    let best = |curve: &Curve<'_>| {
        let top = curve.best(analysis.response)?;
        let best = curve.points.iter().position(|one| one.size == top.size)?;
        let cells: Vec<&CellAnalysis> = curve.points.iter().map(|one| one.cell).collect();
        let claim = Claim {
            held: held(analysis, top.cell, |factor| factor == "bs"),
            ..Claim::new(&BEST_SIZE[0], Vec::new())
        };
        Some(ranking(claim, &cells, best, (analysis, run), family))
    };
    curves.iter().filter_map(best).collect()
}

/// Ranks the best sizes of several curves after the effects of what distinguishes these.
pub(super) fn among_settings(claims: &mut [Claim]) {
    let is_best = |claim: &&mut Claim| std::ptr::eq(claim.kind, &BEST_SIZE[0]);
    if claims.iter_mut().filter(is_best).count() > 1 {
        let all = claims.iter_mut().filter(is_best);
        all.for_each(|claim| claim.role = Role::BestInSettings);
    }
}

/// Number of pairs of `cells` cells. All pairs count, because the trials that judge the best median also choose
/// it, and several cells may be equally good.
fn pairs(cells: usize) -> usize {
    cells * cells.saturating_sub(1) / 2
}

/// Comparison of the ways to do one task that an experiment lists. `None` if the experiment asks anything else
/// about its cells.
pub(super) fn ways(analysis: &Analysis, run: usize) -> Option<Claim> {
    let response = analysis.response;
    let measured = analysis.cells.iter();
    let cells: Vec<&CellAnalysis> = measured.filter(|cell| cell.response.is_some()).collect();
    let worth = |place: &usize| response.worth(median(cells[*place]));
    let best = (0..cells.len()).max_by(|a, b| {
        let by_worth = worth(a).total_cmp(&worth(b));
        by_worth.then_with(|| effort(cells[*b]).cmp(&effort(cells[*a])))
    })?;
    let mut factors = analysis.factors.iter();
    let do_the_same = factors.all(|factor| WAYS.contains(&factor.as_str()));
    let claim = Claim::new(&FASTEST_WAY[0], Vec::new());
    (analysis.is_listed && do_the_same && cells.len() > 1)
        .then(|| ranking(claim, &cells, best, (analysis, run), pairs(cells.len())))
}

/// The simplest of the cells that tie with this one, which has the best median: the one that findings name as the best.
pub fn simplest<'a>(analysis: &'a Analysis, top: &'a CellAnalysis) -> &'a CellAnalysis {
    let ranks = |claim: &Claim| claim.ranked().any(|one| one.cell == Some(id(0, top)));
    let all = best_of_curves(analysis, 0).into_iter();
    let claim = all.chain(ways(analysis, 0)).find(ranks);
    let best = claim.and_then(|claim| analysis.cell(claim.ranked().next()?.cell?.cell));
    best.unwrap_or(top)
}

/// The median response of a cell.
fn median(cell: &CellAnalysis) -> f64 {
    cell.response.map_or(f64::NAN, |summary| summary.median)
}

/// The claim about these cells, of which the one at `top` has the best median. The best one is the simplest of those that tie with it:
/// that one first, then the others by their distance from it.
fn ranking(
    claim: Claim,
    cells: &[&CellAnalysis],
    top: usize,
    of: (&Analysis, usize),
    family: usize,
) -> Claim {
    let points = candidates(cells, top, of, family);
    let is_near = |place: &usize| points[*place].standing == Standing::Near;
    let is_tie = |place: &usize| points[*place].ratio.is_some_and(|ratio| ratio.is_of_tie());
    let tied = (0..cells.len()).filter(|place| is_near(place) && is_tie(place));
    let mut tied: Vec<usize> = tied.collect();
    tied.sort_by_key(|place| effort(cells[*place]));
    let simpler = tied.into_iter();
    let simpler = simpler.take_while(|place| effort(cells[*place]) < effort(cells[top]));
    // One that does not differ from the top may still be shown to be lower than others.
    let is_best = |(_, points): &(usize, Vec<Point>)| {
        let mut points = points.iter();
        !points.any(|one| one.is_shown_better(of.0.response))
    };
    let mut simpler = simpler.map(|place| (place, candidates(cells, place, of, family)));
    let (best, points) = simpler.find(is_best).unwrap_or((top, points));
    let mut points: Vec<(usize, Point)> = points.into_iter().enumerate().collect();
    points.sort_by_key(|(place, _)| place.abs_diff(best));
    let mut points: Vec<Point> = points.into_iter().map(|(_, point)| point).collect();
    let in_each = points.iter();
    let in_each = in_each.filter(|one| one.standing == Standing::WorseInEach);
    let blocks = in_each.filter_map(|one| one.ratio?.blocks).min();
    let needed = blocks.map(|blocks| {
        let all = Point::count(Standing::Measured, "block", blocks);
        all.of(trials_to_compare(family).into())
    });
    let ids: Vec<CellId> = points.iter().filter_map(|one| one.cell).collect();
    points.extend(needed);
    let mut claim = Claim {
        cells: ids,
        points,
        ..claim
    };
    claim.settle();
    claim
}

/// Comparison of each cell with the one at `best`, to which none is shown to be superior. Intervals are simultaneous over
/// all pairs of the family.
fn candidates(
    cells: &[&CellAnalysis],
    best: usize,
    (analysis, run): (&Analysis, usize),
    family: usize,
) -> Vec<Point> {
    let response = analysis.response;
    let confidence = confidence(family);
    let against = |i: usize, j: usize| {
        let estimate = within_run(cells[j], cells[i], confidence)?;
        estimate.interval?;
        let against = SideDoubts::of_cells(cells[j], cells[i], response);
        let more_is_better = response.more_is_better();
        let (_, doubts) = judge(&estimate, MARGIN, &against, more_is_better);
        let is_near = is_no_worse(&estimate, &against, more_is_better);
        Some((estimate.bounded(&against, more_is_better), doubts, is_near))
    };
    let of_best = |i: usize| if i == best { None } else { against(i, best) };
    let of_best: Vec<Option<Judged>> = (0..cells.len()).map(of_best).collect();
    // A loss within the margin also counts as a loss.
    let is_worse = |i: usize| {
        of_best[i].as_ref().is_some_and(|(estimate, doubts, _)| {
            let (low, high) = estimate.interval.unwrap_or((0.0, f64::INFINITY));
            let is_lower = match response.more_is_better() {
                true => high < 1.0,
                false => low > 1.0,
            };
            is_lower && doubts.is_empty()
        })
    };
    // Any cell that is not worse than this one may be the best.
    let open: Vec<usize> = (0..cells.len()).filter(|i| !is_worse(*i)).collect();
    let is_near = |i: usize| {
        let mut others = open.iter().filter(|j| **j != i);
        let near = |j: &usize| against(i, *j).is_some_and(|(.., is_near)| is_near);
        open.len() <= OPEN_MAX && others.all(near)
    };
    // With fewer blocks than an exact interval needs, one odd trial of the best cell can hide a result that all
    // other blocks show.
    let worse_in_each = |i: usize| {
        let logs = log_ratios(cells[best].trials(), cells[i].trials());
        let few = TRIALS_MIN..trials_to_compare(family) as usize;
        let loss = if response.more_is_better() { -1.0 } else { 1.0 };
        few.contains(&logs.len()) && logs.values().all(|log| loss * log > 0.0)
    };
    let all = cells.iter().enumerate().map(|(i, cell)| {
        let (ratio, doubts) = match &of_best[i] {
            Some((estimate, doubts, _)) => (Some(*estimate), doubts.clone()),
            None => (None, Vec::new()),
        };
        let standing = match ratio {
            _ if i == best => Standing::Best,
            None => Standing::Unknown,
            _ if is_near(i) => Standing::Near,
            _ if is_worse(i) => Standing::Worse,
            _ if !doubts.is_empty() => Standing::Doubtful,
            _ if worse_in_each(i) => Standing::WorseInEach,
            _ => Standing::Open,
        };
        Point {
            cell: Some(id(run, cell)),
            ratio,
            doubts,
            ..Point::new(standing, Quantity::Of(response), median(cell))
        }
    });
    all.collect()
}

/// Properties of a workload that a user needs, and does not choose for speed, with their values.
type Access = Vec<(String, String)>;

/// A cell with the index of its run.
type Candidate<'a> = (usize, &'a CellAnalysis);

/// Settings that are compared by their values.
const COMPARED: [&str; 5] = ["pattern", "bs", "threads", "depth", "skip"];

/// The choice for each kind of access with several measured cells. Excludes cells not served by the target, or by a cache in it;
/// cells with too few trials for an interval, with a rate or with a mix of sizes; and cells of programs or other tools.
pub fn choices(runs: &[&Analysis]) -> Vec<Claim> {
    // A path of the same name may be another disk.
    let mut accesses: Vec<((&str, Access), Vec<Candidate<'_>>)> = Vec::new();
    let is_meant = |run: &&&Analysis| run.response == Response::Throughput;
    for (run, analysis) in runs.iter().enumerate().filter(|(_, run)| is_meant(run)) {
        for cell in analysis.cells.iter().filter(|cell| is_candidate(cell)) {
            let Some(access) = access(analysis, cell) else {
                continue;
            };
            let key = (analysis.storage.as_str(), access);
            match accesses.iter_mut().find(|(other, _)| *other == key) {
                Some((_, own)) => own.push((run, cell)),
                None => accesses.push((key, vec![(run, cell)])),
            }
        }
    }
    let several = accesses.into_iter().filter(|(_, own)| own.len() > 1);
    let chosen = several.filter_map(|((_, access), own)| choice(access, &own));
    chosen.collect()
}

fn is_candidate(cell: &CellAnalysis) -> bool {
    let spec = &cell.cell.spec;
    cell.is_target()
        && cell.values.len() >= TRIALS_MIN
        && !cell.flags.contains(&DoubtKind::StorageCache)
        && !spec.runs_program()
        && !spec.tool.is_peer()
        && !cell.cell.trial().has_rate()
}

fn access(run: &Analysis, cell: &CellAnalysis) -> Option<Access> {
    let trial = cell.cell.spec.only_trial()?;
    trial.request_size()?;
    let target = cell.cell.spec.target.as_ref();
    let target = target.map_or(run.target.as_str(), TargetName::as_str);
    let all = [
        ("target", target.to_owned()),
        ("read_percent", trial.read_percent.to_string()),
        ("cache", trial.cache.to_string()),
        ("sync", trial.sync.to_string()),
    ];
    // Reads are never synced.
    let is_told = |name: &str| name != "sync" || trial.read_percent < 100;
    let told = all.into_iter().filter(|(name, _)| is_told(name));
    Some(told.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn choice(access: Access, candidates: &[Candidate<'_>]) -> Option<Claim> {
    let median = |(_, cell): &Candidate<'_>| cell.median(Response::Throughput).unwrap_or(0.0);
    let effort = |(_, cell): &Candidate<'_>| effort(cell);
    let top = candidates.iter().max_by(|a, b| {
        let by_worth = median(a).total_cmp(&median(b));
        by_worth.then_with(|| effort(b).cmp(&effort(a)))
    })?;
    let confidence = confidence(pairs(candidates.len()));
    let near = |best: &Candidate<'_>, one: &Candidate<'_>| {
        let estimate = match one.0 == best.0 {
            true => within_run(best.1, one.1, confidence),
            false => across_runs(best.1, one.1, confidence),
        };
        let against = SideDoubts::of_cells(best.1, one.1, Response::Throughput);
        estimate.filter(|estimate| is_no_worse(estimate, &against, true))
    };
    let is_above = |one: &Candidate<'_>, other: &Candidate<'_>| {
        let interval = near(one, other).and_then(|estimate| estimate.interval);
        interval.is_some_and(|(low, _)| low > 1.0)
    };
    let ties = |one: &&Candidate<'_>| {
        near(top, one).is_some_and(|estimate| estimate.is_of_tie())
            && !candidates.iter().any(|other| is_above(one, other))
    };
    let tied = candidates.iter().filter(ties).chain([top]);
    let best = tied.min_by_key(|one| effort(one))?;
    let simpler = candidates.iter().filter(|one| effort(one) < effort(best));
    let simplest = simpler.filter(|one| near(best, one).is_some());
    let simplest = simplest.min_by_key(|one| effort(one));
    let point = |standing, one: &Candidate<'_>| Point {
        cell: Some(id(one.0, one.1)),
        ..Point::new(standing, Quantity::Of(Response::Throughput), median(one))
    };
    let trials = Point::count(Standing::MedianOf, "trial", best.1.values.len());
    let simplest = simplest.map(|one| point(Standing::Near, one));
    let points = [point(Standing::Main, best), trials].into_iter();
    let points = points.chain(simplest);
    let cells: Vec<CellId> = candidates.iter().map(|one| id(one.0, one.1)).collect();
    Some(Claim {
        held: access,
        ..Claim::new(&kind::BEST_SETTING, cells).with_points(points)
    })
}

/// Effort that a setting takes in the program that uses it, in ascending order: sequential before other
/// patterns, default before other settings, fewer requests in flight, smaller requests, a smaller skip.
fn effort(cell: &CellAnalysis) -> impl Ord + use<> {
    let spec = &cell.cell.spec;
    let trial = cell.cell.trial();
    let is_sequential = spec.shared(|trial| trial.pattern) == Some(Pattern::Seq);
    let default = CellSpec::default();
    let others = SETTINGS.iter();
    let others = others.filter(|setting| !COMPARED.contains(&setting.name));
    let changed = others.filter(|setting| setting.value(spec) != setting.value(&default));
    (
        !is_sequential,
        changed.count(),
        trial.in_flight_of_all(),
        trial.bs,
        trial.skip,
    )
}
