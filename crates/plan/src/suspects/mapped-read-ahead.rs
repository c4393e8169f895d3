//! Read-ahead of the kernel around page faults of a mapping, which the advice on a file (`fadvise`) does not switch off.

use iolab_workload::trial::{Backend, CacheState, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "mapped-read-ahead",
    what: "read-ahead of the kernel for a mapping",
    change: "system=read_ahead_kb:0",
    acts_on: ActsOn::Either,
    order: 1,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let reads_ahead = |trial: &TrialSpec| {
        trial.backend == Backend::Mmap && trial.cache == CacheState::Cold && trial.read_percent > 0
    };
    match !sides.is_model && sides.trials().into_iter().any(reads_ahead) {
        true => sides.changed_system(|system| system.read_ahead_kib = Some(0)),
        false => Intervention::Irrelevant,
    }
}
