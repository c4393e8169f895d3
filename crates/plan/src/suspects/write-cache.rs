//! Writes that complete before they are on the medium.

use iolab_workload::stages::Stage;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{CacheState, SyncPolicy};

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "write-cache",
    what: "a write cache",
    change: "sync=odsync",
    acts_on: ActsOn::Better,
    order: 0,
    counted: Some(Counted::Stage(Stage::Device)),
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    // Durable writes wait for more than the medium, with which any two sides that write are more alike.
    if sides.share(|trial| trial.writes()) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        let is_direct = trial.cache == CacheState::Direct;
        if is_direct && trial.writes() && matches!(trial.sync, SyncPolicy::None | SyncPolicy::End) {
            trial.sync = SyncPolicy::Odsync;
        }
    })
}
