//! Writes that complete before they are on the medium.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::SyncPolicy;

use super::{Check, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "write-cache",
    what: "a write cache",
    change: "sync=odsync",
    order: 0,
    check: Check::Settings,
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        if trial.writes() && matches!(trial.sync, SyncPolicy::None | SyncPolicy::End) {
            trial.sync = SyncPolicy::Odsync;
        }
    })
}
