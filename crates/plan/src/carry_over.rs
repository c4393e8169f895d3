//! Cells that find what other cells have left on the storage.

use std::collections::BTreeSet;

use iolab_workload::names::TargetName;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, SyncPolicy, TrialSpec};

use crate::experiment::design::{Design, INTERVAL_TRIALS, WarmUp};

/// Whether the order of these cells may decide their results. It may if cells share a target, without a warm-up, and trials
/// are too few to average over orders. A warm-up would absorb the leftovers of the cell before: a full cache, heat, used-up
/// burst credits.
pub fn depends_on_order<'a>(design: &Design, cells: impl Iterator<Item = &'a CellSpec>) -> bool {
    if design.warmup != WarmUp::None || design.trials_max >= INTERVAL_TRIALS {
        return false;
    }
    let mut used: BTreeSet<Option<&TargetName>> = BTreeSet::new();
    cells.filter(|cell| !cell.runs_program()).any(|cell| {
        let targets: BTreeSet<Option<&TargetName>> = cell.targets().into_iter().collect();
        let is_used = targets.iter().any(|target| used.contains(target));
        used.extend(targets);
        is_used
    })
}

/// Places of the cells that only read, from a target to which others write without a sync and whose cache `may_hold`
/// writes. The storage may still be writing that data while these cells read. `None` stands for the target of the run.
pub fn reads_after_writes<'a>(
    cells: impl Iterator<Item = &'a CellSpec>,
    may_hold: impl Fn(Option<&TargetName>) -> bool,
) -> Vec<usize> {
    let cells: Vec<(usize, &CellSpec)> = cells
        .enumerate()
        .filter(|(_, cell)| !cell.runs_program())
        .collect();
    let leaves = |(_, cell): &&(usize, &CellSpec)| leaves_writes(cell);
    let left: BTreeSet<Option<&TargetName>> = cells
        .iter()
        .filter(leaves)
        .flat_map(|(_, cell)| cell.targets())
        .filter(|target| may_hold(*target))
        .collect();
    let finds = |(_, cell): &&(usize, &CellSpec)| {
        let mut targets = cell.targets().into_iter();
        !writes(cell) && targets.any(|target| left.contains(&target))
    };
    let finding = cells.iter().filter(finds);
    finding.map(|(place, _)| *place).collect()
}

/// Whether trials of a cell write without a sync, so that a cache may hold their data.
pub(crate) fn leaves_writes(cell: &CellSpec) -> bool {
    let mut trials = cell.trials().into_iter();
    !cell.runs_program()
        && trials.any(|trial| {
            trial.writes() && trial.sync == SyncPolicy::None && trial.backend != Backend::Null
        })
}

/// Whether trials of a cell may end with writes that no sync of their own has made durable: trials without a sync, and
/// trials that end between two syncs.
pub(crate) fn may_end_unsynced(cell: &CellSpec) -> bool {
    let ends_between = |trial: &TrialSpec| {
        trial.writes() && trial.sync_every > 1 && trial.backend != Backend::Null
    };
    leaves_writes(cell) || !cell.runs_program() && cell.trials().into_iter().any(ends_between)
}

fn writes(cell: &CellSpec) -> bool {
    cell.trials().into_iter().any(|trial| trial.writes())
}
