//! Suspects in writes: space, caches, and waiting until data is durable.

use iolab_workload::settings::CellSpec;
use iolab_workload::stages::Stage;
use iolab_workload::trial::{Allocate, CacheState, SyncPolicy, TrialSpec};

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

/// Space that writes to a new file are given while they wait.
pub(super) const ALLOCATION: Suspect = Suspect {
    name: "allocation",
    what: "allocation of space for a new file",
    change: "writes to space that was written before",
    order: 1,
    take_off: allocation,
    ..Suspect::USUAL
};

fn allocation(sides: &Sides) -> Intervention {
    if sides.is_model {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        if trial.starts_fresh() {
            trial.allocate = Some(Allocate::Recycled);
        }
    })
}

/// Waiting until each write is durable: flushes, and the revolution that a platter needs until the next block comes round.
pub(super) const DURABILITY: Suspect = Suspect {
    name: "durability",
    what: "waiting until each write is durable",
    change: "sync=none",
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: durability,
    ..Suspect::USUAL
};

fn durability(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        if trial.writes() && !matches!(trial.sync, SyncPolicy::None | SyncPolicy::End) {
            trial.sync = SyncPolicy::None;
            trial.sync_every = 1;
        }
    })
}

/// Idle time before a trial, in which caches of a drive empty, credits return, and data is tidied up.
pub(super) const RECOVERY: Suspect = Suspect {
    name: "recovery",
    what: "idle time before trials (caches of the drive empty, credits return, CPUs slow down)",
    change: "the same idle time on both sides",
    acts_on: ActsOn::Either,
    order: 3,
    take_off: recovery,
    ..Suspect::USUAL
};

fn recovery(sides: &Sides) -> Intervention {
    let longest = sides.base.idle.max(sides.other.idle);
    sides.changed(|cell: &mut CellSpec| cell.idle = longest)
}

/// Writes that complete in the page cache, and are written back later.
pub(super) const WRITE_BACK: Suspect = Suspect {
    name: "write-back",
    what: "writes that complete in the page cache and are written back later",
    change: "sync=odsync",
    acts_on: ActsOn::Better,
    check: Check::FromStorage,
    take_off: write_back,
    ..Suspect::USUAL
};

fn write_back(sides: &Sides) -> Intervention {
    // If both sides write, the wait for storage makes any two of them more alike.
    if sides.is_model || sides.share(|trial| trial.writes()) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        let is_deferred = matches!(trial.sync, SyncPolicy::None | SyncPolicy::End);
        if trial.cache != CacheState::Direct && trial.writes() && is_deferred {
            trial.sync = SyncPolicy::Odsync;
        }
    })
}

/// Writes that complete before they are on the medium.
pub(super) const WRITE_CACHE: Suspect = Suspect {
    name: "write-cache",
    what: "a write cache",
    change: "sync=odsync",
    acts_on: ActsOn::Better,
    counted: Some(Counted::Stage(Stage::Device)),
    take_off: write_cache,
    ..Suspect::USUAL
};

fn write_cache(sides: &Sides) -> Intervention {
    // Durable writes wait for more than the medium, with which any two sides that write are more alike.
    if sides.share(|trial| trial.writes()) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        let is_direct = trial.cache == CacheState::Direct;
        if is_direct && trial.writes() && matches!(trial.sync, SyncPolicy::None | SyncPolicy::End) {
            trial.sync = SyncPolicy::Odsync;
        }
    })
}

/// Effects of writes on later ones in storage: a cache that fills, data to move or to collect, a limit on writes.
pub(super) const WRITTEN_DATA: Suspect = Suspect {
    name: "written-data",
    what: "what writes leave or use up in the storage (a cache that fills, data to move or to collect, a limit on writes)",
    change: "reads instead of writes",
    acts_on: ActsOn::Either,
    check: Check::SameVolume,
    explains: &[Compared::Loads],
    take_off: written_data,
    ..Suspect::USUAL
};

fn written_data(sides: &Sides) -> Intervention {
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
