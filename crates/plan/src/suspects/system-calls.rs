//! The time of a system call, which small requests have per few bytes.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, CacheState, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

/// The largest request whose copy does not hide the cost of a system call. A mapping has costs of its own for each page.
const SMALL: u64 = 4096;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "system-calls",
    what: "the time of a system call per request",
    change: "backend=mmap, which makes none",
    acts_on: ActsOn::Worse,
    order: 0,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let is_in_memory = |trial: &TrialSpec| {
        trial.cache == CacheState::Hot && trial.read_percent == 100 && trial.depth == 1
    };
    let per_byte_alike = sides.share(|trial| trial.bs) && sides.share(|trial| trial.backend);
    let counts = sides.trials().iter().any(|trial| trial.bs <= SMALL);
    if sides.is_model || per_byte_alike || !counts || !sides.trials().into_iter().all(is_in_memory) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.backend = Backend::Mmap)
}
