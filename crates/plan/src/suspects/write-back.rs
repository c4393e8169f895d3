//! Writes that complete in the page cache, and are written back later.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{CacheState, SyncPolicy};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "write-back",
    what: "writes that complete in the page cache and are written back later",
    change: "sync=odsync",
    acts_on: ActsOn::Better,
    order: 0,
    counted: None,
    check: Check::FromStorage,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    // If both sides write, the wait for storage makes any two of them more alike.
    if sides.is_model || sides.share(|trial| trial.writes()) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        let is_deferred = matches!(trial.sync, SyncPolicy::None | SyncPolicy::End);
        if trial.cache != CacheState::Direct && trial.writes() && is_deferred {
            trial.sync = SyncPolicy::Odsync;
        }
    })
}
