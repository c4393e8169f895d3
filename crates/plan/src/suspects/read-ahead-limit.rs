//! Limit of the kernel's read-ahead for buffered reads: the device gets requests of that size.

use iolab_workload::trial::{Advice, CacheState, Pattern, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

/// A limit beyond which a longer request gains little on any device, KiB.
const ENOUGH_KIB: u32 = 16 << 10;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "read-ahead-limit",
    what: "the most that the kernel reads ahead",
    change: "system=read_ahead_kb:16384",
    acts_on: ActsOn::Worse,
    order: 3,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let is_short = |bytes: u64| bytes > 0 && bytes < u64::from(ENOUGH_KIB) << 10;
    let reads_ahead = |trial: &TrialSpec| {
        trial.cache == CacheState::Cold
            && trial.read_percent > 0
            && trial.pattern == Pattern::Seq
            && trial.fadvise != Some(Advice::Random)
    };
    let is_limited = sides.machine.read_ahead_bytes.is_some_and(is_short);
    let can_cause = is_limited && sides.trials().into_iter().any(reads_ahead);
    match !sides.is_model && (can_cause || sides.differ_in(|system| system.read_ahead_kib)) {
        // If it is switched off there is no limit.
        true => sides.changed_system(|system| {
            system.read_ahead_kib = system.read_ahead_kib.or(Some(ENOUGH_KIB));
        }),
        false => Intervention::Irrelevant,
    }
}
