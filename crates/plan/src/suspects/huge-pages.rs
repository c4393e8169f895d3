//! Huge pages that the kernel gives to buffers unasked, from 2 MiB on: their first touch clears 2 MiB at once.

use iolab_workload::system_settings::HugePageUse;
use iolab_workload::trial::{BufferInit, CacheState, HUGE_PAGE_MIN_BYTES, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "huge-pages",
    what: "huge pages that the kernel gives to buffers unasked",
    change: "system=transparent_hugepage:madvise",
    acts_on: ActsOn::Better,
    order: 1,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let gets_them = |trial: &TrialSpec| {
        trial.cache != CacheState::Direct
            && trial.bs * u64::from(trial.depth) >= HUGE_PAGE_MIN_BYTES
            && !matches!(trial.buffer_init, BufferInit::Huge | BufferInit::NoHuge)
    };
    let is_on = sides.machine.huge_pages == Some(HugePageUse::Always);
    let can_cause = is_on && sides.trials().into_iter().any(gets_them);
    match !sides.is_model && (can_cause || sides.differ_in(|system| system.huge_pages)) {
        true => sides.changed_system(|system| system.huge_pages = Some(HugePageUse::Madvise)),
        false => Intervention::Irrelevant,
    }
}
