//! The order of trials, and the cells for which it matters: randomised complete blocks from a stored seed, and cells that find
//! what other cells have left on the storage.

use std::collections::BTreeSet;

use iolab_workload::names::TargetName;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, SyncPolicy, TrialSpec};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::experiment::design::{Design, INTERVAL_TRIALS, WarmUp};

/// The cells of a block in the order of their trials (Fisher-Yates shuffle).
///
/// Every block visits each cell once in a new random order, so that drift of the machine is not taken for an effect of a factor
/// (R. A. Fisher, The Design of Experiments, 1935). The order depends only on the seed and the number of the block, so that an
/// interrupted run resumes with the same plan.
pub fn block_order(seed: u64, block: u32, cells: usize) -> Vec<usize> {
    let mut rng = generator(seed, block, u64::MAX);
    let mut order: Vec<usize> = (0..cells).collect();
    for last in (1..cells).rev() {
        let bound = last as u64 + 1;
        // Multiplication maps the draw to the range; with at most 10,000 cells its bias is below 2^-50.
        let chosen = ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as usize;
        order.swap(last, chosen);
    }
    order
}

/// The seed of one trial: depends on the plan's seed, the cell and the block.
pub fn trial_seed(seed: u64, cell: usize, block: u32) -> u64 {
    // SQLite's integers are signed: 63 bits keep the stored number positive.
    generator(seed, block, cell as u64).next_u64() >> 1
}

/// The seed of a group of a trial, numbered from 1.
pub fn group_seed(trial_seed: u64, group: u32) -> u64 {
    generator(trial_seed, group, u64::MAX - 1).next_u64() >> 1
}

fn generator(seed: u64, block: u32, purpose: u64) -> Xoshiro256PlusPlus {
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..12].copy_from_slice(&block.to_le_bytes());
    bytes[12..20].copy_from_slice(&purpose.to_le_bytes());
    bytes[20..].copy_from_slice(b"iolab plan 1");
    let mut rng = Xoshiro256PlusPlus::from_seed(bytes);
    // Outputs of similar states are correlated for some steps.
    for _ in 0..32 {
        rng.next_u64();
    }
    rng
}

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
