//! Pages of buffers that the address cache of a CPU does not cover.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{BufferInit, CacheState, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

/// Buffers of a thread below this size fit the address cache (TLB) of any CPU in small pages, bytes.
const COVERED: u64 = 1 << 20;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "tlb",
    what: "TLB misses of buffers in small pages",
    change: "buffer_init=huge",
    acts_on: ActsOn::Worse,
    order: 2,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let copies = |trial: &TrialSpec| trial.cache != CacheState::Direct;
    let is_large = |trial: &TrialSpec| trial.bs * u64::from(trial.depth) > COVERED;
    let trials = sides.trials();
    if sides.is_model || !trials.iter().all(|trial| copies(trial)) {
        return Intervention::Irrelevant;
    }
    if !trials.iter().any(|trial| is_large(trial)) {
        return Intervention::Irrelevant;
    }
    // Huge pages take away page faults too: the side compared with them must have none.
    if sides.have_faults() {
        return Intervention::After("page-faults");
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.buffer_init = BufferInit::Huge)
}
