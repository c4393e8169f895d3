//! Suspects in data that the kernel or the device reads ahead.

use iolab_workload::settings::CellSpec;
use iolab_workload::stages::Stage;
use iolab_workload::trial::{Advice, Backend, CacheState, Pattern, TrialSpec};

use super::{ActsOn, Counted, Intervention, Sides, Suspect};

/// Read-ahead of the kernel into the page cache.
pub(super) const HOST_READ_AHEAD: Suspect = Suspect {
    name: "host-read-ahead",
    what: "read-ahead of the kernel",
    change: "fadvise=random",
    acts_on: ActsOn::Either,
    order: 1,
    take_off: host_read_ahead,
    ..Suspect::USUAL
};

fn host_read_ahead(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        let trial = &cell.trial;
        let reads_cold = trial.cache == CacheState::Cold && trial.read_percent > 0;
        // The advice is for calls that read.
        if reads_cold && trial.backend != Backend::Mmap {
            cell.trial.fadvise = Some(Advice::Random);
        }
    })
}

/// Read-ahead of the kernel around page faults of a mapping, which the advice on a file (`fadvise`) does not switch off.
pub(super) const MAPPED_READ_AHEAD: Suspect = Suspect {
    name: "mapped-read-ahead",
    what: "read-ahead of the kernel for a mapping",
    change: "system=read_ahead_kb:0",
    acts_on: ActsOn::Either,
    order: 1,
    take_off: mapped_read_ahead,
    ..Suspect::USUAL
};

fn mapped_read_ahead(sides: &Sides) -> Intervention {
    let reads_ahead = |trial: &TrialSpec| {
        trial.backend == Backend::Mmap && trial.cache == CacheState::Cold && trial.read_percent > 0
    };
    match !sides.is_model && sides.trials().into_iter().any(reads_ahead) {
        true => sides.changed_system(|system| system.read_ahead_kib = Some(0)),
        false => Intervention::Irrelevant,
    }
}

/// Data that is read before it is asked for, because reads follow each other in ascending order.
pub(super) const READ_AHEAD: Suspect = Suspect {
    name: "read-ahead",
    what: "read-ahead of sequential reads",
    change: "sequential reads in reverse order",
    acts_on: ActsOn::Better,
    order: 1,
    counted: Some(Counted::Stage(Stage::Device)),
    take_off: read_ahead,
    ..Suspect::USUAL
};

fn read_ahead(sides: &Sides) -> Intervention {
    let of = |state: CacheState| move |trial: &&TrialSpec| trial.cache == state;
    let trials = sides.trials();
    if trials.iter().all(of(CacheState::Hot)) {
        return Intervention::Irrelevant;
    }
    // Reverse order takes away read-ahead of the kernel as well.
    let by_kernel = |cell: &&CellSpec| {
        let trial = &cell.trial;
        let is_off = trial.fadvise.is_some() || cell.system.read_ahead_kib == Some(0);
        trial.cache == CacheState::Cold && !is_off
    };
    if let Some(cell) = [&sides.base, &sides.other].into_iter().find(by_kernel) {
        return Intervention::After(match cell.trial.backend {
            Backend::Mmap => "mapped-read-ahead",
            _ => "host-read-ahead",
        });
    }
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.pattern == Pattern::Seq && cell.trial.read_percent > 0 {
            cell.trial.pattern = Pattern::Reverse;
        }
    })
}

/// A limit beyond which a longer request gains little on any device, KiB.
const ENOUGH_KIB: u32 = 16 << 10;

/// Limit of the kernel's read-ahead for buffered reads: the device gets requests of that size.
pub(super) const READ_AHEAD_LIMIT: Suspect = Suspect {
    name: "read-ahead-limit",
    what: "the most that the kernel reads ahead",
    change: "system=read_ahead_kb:16384",
    order: 3,
    take_off: read_ahead_limit,
    ..Suspect::USUAL
};

fn read_ahead_limit(sides: &Sides) -> Intervention {
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
