//! The setting to choose for each kind of access: the one with the best throughput, and the simplest one shown to be within the
//! margin of it.

use iolab_workload::names::TargetName;
use iolab_workload::response::Response;
use iolab_workload::trial::{CacheState, SyncPolicy};

use super::effect::{CellId, Estimate, across_runs, confidence, is_no_worse, within_run};
use super::simplicity::effort;
use crate::analysis::{Analysis, CellAnalysis};
use crate::doubt::SideDoubts;

/// Properties of a workload that a user needs, and does not choose for speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The target.
    pub target: String,
    /// Identity of the storage, as in [`Analysis::storage`]: a path of the same name may be another disk.
    pub storage: String,
    /// Share of reads, %.
    pub read_percent: u8,
    /// Point at which writes are durable.
    pub sync: SyncPolicy,
    /// The cache state.
    pub cache: CacheState,
}

/// The setting to choose for a kind of access.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The kind of access.
    pub access: Access,
    /// The cell with the best median throughput.
    pub best: CellId,
    /// The median throughput of that cell, MB/s.
    pub throughput_mb_s: f64,
    /// The simplest cell among those shown to be within the margin of the best, with the ratio of its throughput
    /// to the best. `None` if no simpler cell is shown to be.
    pub simplest: Option<(CellId, Estimate)>,
    /// Number of cells compared.
    pub cells: usize,
}

/// The choice for each kind of access with several measured cells. Excludes cells not served by the target, cells with a rate,
/// and cells of programs or other tools.
pub fn choices(runs: &[&Analysis]) -> Vec<Choice> {
    let mut accesses: Vec<(Access, Vec<Candidate<'_>>)> = Vec::new();
    for (run, analysis) in runs.iter().enumerate() {
        if analysis.response != Response::Throughput {
            continue;
        }
        for cell in analysis.cells.iter().filter(|cell| is_candidate(cell)) {
            let Some(access) = access(analysis, cell) else {
                continue;
            };
            let candidate = Candidate { run, cell };
            match accesses.iter_mut().find(|(other, _)| *other == access) {
                Some((_, own)) => own.push(candidate),
                None => accesses.push((access, vec![candidate])),
            }
        }
    }
    let chosen = accesses.into_iter().filter(|(_, own)| own.len() > 1);
    chosen
        .filter_map(|(access, own)| choice(access, &own))
        .collect()
}

#[derive(Clone, Copy)]
struct Candidate<'a> {
    run: usize,
    cell: &'a CellAnalysis,
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
    Some(Access {
        target: target
            .map_or(run.target.as_str(), TargetName::as_str)
            .to_owned(),
        storage: run.storage.clone(),
        read_percent: trial.read_percent,
        sync: trial.sync,
        cache: trial.cache,
    })
}

fn choice(access: Access, candidates: &[Candidate<'_>]) -> Option<Choice> {
    let median = |one: &Candidate<'_>| one.cell.median(Response::Throughput).unwrap_or(0.0);
    let effort = |one: &Candidate<'_>| effort(one.cell);
    let best = candidates.iter().max_by(|a, b| {
        let by_worth = median(a).total_cmp(&median(b));
        by_worth.then_with(|| effort(b).cmp(&effort(a)))
    })?;
    let confidence = confidence(candidates.len() * (candidates.len() - 1) / 2);
    let near = |one: &Candidate<'_>| {
        let estimate = match one.run == best.run {
            true => within_run(best.cell, one.cell, confidence)?,
            false => across_runs(best.cell, one.cell, confidence)?,
        };
        let against = SideDoubts::of_cells(best.cell, one.cell, Response::Throughput);
        is_no_worse(&estimate, &against, true).then_some(estimate)
    };
    let simpler = candidates.iter().filter(|one| effort(one) < effort(best));
    let near = simpler.filter_map(|one| Some((one, near(one)?)));
    let simplest = near.min_by_key(|(one, _)| effort(one));
    Some(Choice {
        access,
        best: best.id(),
        throughput_mb_s: median(best),
        simplest: simplest.map(|(one, estimate)| (one.id(), estimate)),
        cells: candidates.len(),
    })
}

impl Candidate<'_> {
    fn id(&self) -> CellId {
        CellId {
            run: self.run,
            cell: self.cell.cell.id,
        }
    }
}
