//! The setting to choose for each kind of access: the one with the best throughput, and the simplest one shown to be within the
//! margin of it.

use iolab_workload::names::TargetName;
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::Pattern;

use super::effect::{CellId, across_runs, confidence, is_no_worse, within_run};
use super::point::{Point, Quantity, Standing};
use super::series::id;
use super::{Claim, kind};
use crate::analysis::{Analysis, CellAnalysis};
use crate::doubt::SideDoubts;

/// Properties of a workload that a user needs, and does not choose for speed, with their values.
type Access = Vec<(String, String)>;
/// A cell with the index of its run.
type Candidate<'a> = (usize, &'a CellAnalysis);

/// Settings that are compared by their values.
const COMPARED: [&str; 5] = ["pattern", "bs", "threads", "depth", "skip"];

/// The choice for each kind of access with several measured cells. Excludes cells not served by the target, cells with a rate,
/// and cells of programs or other tools.
pub fn choices(runs: &[&Analysis]) -> Vec<Claim> {
    // A path of the same name may be another disk.
    let mut accesses: Vec<((&str, Access), Vec<Candidate<'_>>)> = Vec::new();
    let is_meant = |run: &&&Analysis| run.response == Response::Throughput;
    for (run, analysis) in runs.iter().enumerate() {
        for cell in analysis
            .cells
            .iter()
            .filter(|cell| is_candidate(cell) && is_meant(&analysis))
        {
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
    let chosen = accesses.into_iter().filter(|(_, own)| own.len() > 1);
    chosen
        .filter_map(|((_, access), own)| choice(access, &own))
        .collect()
}

fn is_candidate(cell: &CellAnalysis) -> bool {
    let spec = &cell.cell.spec;
    cell.is_target()
        && !cell.values.is_empty()
        && !spec.runs_program()
        && !spec.tool.is_peer()
        && !cell.cell.trial().has_rate()
}

fn access(run: &Analysis, cell: &CellAnalysis) -> Option<Access> {
    let trial = cell.cell.spec.only_trial()?;
    let target = cell.cell.spec.target.as_ref();
    let target = target.map_or(run.target.as_str(), TargetName::as_str);
    let all = [
        ("target", target.to_owned()),
        ("read_percent", trial.read_percent.to_string()),
        ("cache", trial.cache.to_string()),
        ("sync", trial.sync.to_string()),
    ];
    // Reads are never synced.
    let told = all
        .into_iter()
        .filter(|(name, _)| *name != "sync" || trial.read_percent < 100);
    Some(told.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn choice(access: Access, candidates: &[Candidate<'_>]) -> Option<Claim> {
    let median = |(_, cell): &Candidate<'_>| cell.median(Response::Throughput).unwrap_or(0.0);
    let effort = |(_, cell): &Candidate<'_>| effort(cell);
    let best = candidates.iter().max_by(|a, b| {
        let by_worth = median(a).total_cmp(&median(b));
        by_worth.then_with(|| effort(b).cmp(&effort(a)))
    })?;
    let confidence = confidence(candidates.len() * (candidates.len() - 1) / 2);
    let is_near = |one: &&Candidate<'_>| {
        let estimate = match one.0 == best.0 {
            true => within_run(best.1, one.1, confidence),
            false => across_runs(best.1, one.1, confidence),
        };
        let against = SideDoubts::of_cells(best.1, one.1, Response::Throughput);
        estimate.is_some_and(|estimate| is_no_worse(&estimate, &against, true))
    };
    let simpler = candidates.iter().filter(|one| effort(one) < effort(best));
    let simplest = simpler.filter(is_near).min_by_key(|one| effort(one));
    let point = |standing, one: &Candidate<'_>| Point {
        cell: Some(id(one.0, one.1)),
        ..Point::new(standing, Quantity::Of(Response::Throughput), median(one))
    };
    let trials = Point::count(Standing::MedianOf, "trial", best.1.values.len());
    let points = [point(Standing::Main, best), trials]
        .into_iter()
        .chain(simplest.map(|one| point(Standing::Near, one)));
    let cells: Vec<CellId> = candidates.iter().map(|one| id(one.0, one.1)).collect();
    Some(Claim {
        held: access,
        ..Claim::new(&kind::BEST_SETTING, cells).with_points(points)
    })
}

/// Effort that a setting takes in the program that uses it, in ascending order: sequential before other
/// patterns, default before other settings, fewer requests in flight, smaller requests, a smaller skip.
pub(super) fn effort(cell: &CellAnalysis) -> impl Ord + use<> {
    let spec = &cell.cell.spec;
    let trial = cell.cell.trial();
    let is_sequential = spec.shared(|trial| trial.pattern) == Some(Pattern::Seq);
    let default = CellSpec::default();
    let others = SETTINGS
        .iter()
        .filter(|setting| !COMPARED.contains(&setting.name));
    let changed = others.filter(|setting| setting.value(spec) != setting.value(&default));
    (
        !is_sequential,
        changed.count(),
        trial.in_flight_of_all(),
        trial.bs,
        trial.skip,
    )
}
