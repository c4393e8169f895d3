//! Idle time before a trial, in which caches of a drive empty, credits return, and data is tidied up.

use iolab_workload::settings::CellSpec;

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "recovery",
    what: "idle time before trials (caches of the drive empty, credits return, CPUs slow down)",
    change: "the same idle time on both sides",
    acts_on: ActsOn::Either,
    order: 3,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let longest = sides.base.idle.max(sides.other.idle);
    sides.changed(|cell: &mut CellSpec| cell.idle = longest)
}
