//! Read-ahead of the kernel into the page cache.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Advice, CacheState};

use super::{Check, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "host-read-ahead",
    what: "read-ahead of the kernel",
    change: "fadvise=random",
    order: 1,
    check: Check::Settings,
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.cache == CacheState::Cold && cell.trial.read_percent > 0 {
            cell.trial.fadvise = Some(Advice::Random);
        }
    })
}
