//! Effects of writes on later ones in storage: a cache that fills, data to move or to collect, a limit on writes.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{CacheState, SyncPolicy, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "written-data",
    what: "what writes leave or use up in the storage (a cache that fills, data to move or to collect, a limit on writes)",
    change: "reads instead of writes",
    acts_on: ActsOn::Either,
    order: 0,
    counted: None,
    check: Check::SameVolume,
    explains: &[Compared::Loads],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    // Reads from the page cache use up nothing of the storage.
    let is_direct = |trial: &TrialSpec| trial.cache == CacheState::Direct;
    if !sides.trials().into_iter().all(is_direct) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        if trial.writes() {
            trial.read_percent = 100;
            trial.sync = SyncPolicy::None;
            trial.sync_every = 1;
        }
    })
}
