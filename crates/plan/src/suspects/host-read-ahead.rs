//! Read-ahead of the kernel into the page cache.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Advice, Backend, CacheState};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "host-read-ahead",
    what: "read-ahead of the kernel",
    change: "fadvise=random",
    acts_on: ActsOn::Either,
    order: 1,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        let trial = &cell.trial;
        let reads_cold = trial.cache == CacheState::Cold && trial.read_percent > 0;
        // The advice is for calls that read.
        if reads_cold && trial.backend != Backend::Mmap {
            cell.trial.fadvise = Some(Advice::Random);
        }
    })
}
