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

/// Whether trials of a cell write without a sync, so that a cache may hold their data.
pub fn leaves_writes(cell: &CellSpec) -> bool {
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
