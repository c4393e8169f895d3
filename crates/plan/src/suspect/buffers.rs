//! Suspects in the memory of buffers.

use iolab_workload::settings::CellSpec;
use iolab_workload::system_settings::HugePageUse;
use iolab_workload::trial::{
    Backend, Batch, BufferInit, BufferMemory, CacheState, DEPTH_MAX, HUGE_PAGE_MIN_BYTES, TrialSpec,
};

use super::{ActsOn, Check, Counted, Intervention, Sides, Suspect};

/// Below this I/O size the cost of a system call decides, and another call is another cost.
const BS_MIN: u64 = 16 << 10;

/// Buffers that the caches of a CPU do not hold: copies to them go to memory.
pub(super) const BUFFER_FOOTPRINT: Suspect = Suspect {
    name: "buffer-footprint",
    what: "buffers larger than a cache of the CPU",
    change: "as much buffer memory on both sides, used in turn (libaio)",
    acts_on: ActsOn::Better,
    order: 1,
    take_off: buffer_footprint,
    ..Suspect::USUAL
};

fn buffer_footprint(sides: &Sides) -> Intervention {
    let one_at_a_time = |trial: &TrialSpec| {
        trial.cache != CacheState::Direct
            && trial.bs_mix.is_none()
            && trial.bs >= BS_MIN
            && trial.depth == 1
    };
    let trials = sides.trials();
    let is_alike = sides.share(|trial| trial.threads) && sides.share(|trial| trial.read_percent);
    if sides.is_model || !is_alike || !trials.into_iter().all(one_at_a_time) {
        return Intervention::Irrelevant;
    }
    let footprint = trials.map(|trial| trial.bs).into_iter().max().unwrap_or(0);
    let divides = |trial: &&TrialSpec| {
        footprint % trial.bs == 0 && footprint / trial.bs <= u64::from(DEPTH_MAX)
    };
    if sides.share(|trial| trial.bs) || !trials.iter().all(divides) {
        return Intervention::Irrelevant;
    }
    // Memory that is new on both sides would take the difference in page faults with it.
    if sides.have_faults() {
        return Intervention::After("page-faults");
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        trial.backend = Backend::Libaio;
        trial.depth = (footprint / trial.bs) as u32;
        // A buffer is used again when all others have been.
        trial.batch = Batch::All;
    })
}

/// Buffers in many pieces of physical memory, for which the kernel splits requests.
pub(super) const BUFFER_PIECES: Suspect = Suspect {
    name: "buffer-pieces",
    what: "requests split because buffers lie in many pieces",
    change: "buffer_memory=contiguous",
    order: 2,
    counted: Some(Counted::DeviceIos),
    take_off: buffer_pieces,
    ..Suspect::USUAL
};

fn buffer_pieces(sides: &Sides) -> Intervention {
    if sides.is_model {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.cache == CacheState::Direct {
            cell.trial.buffer_memory = BufferMemory::Contiguous;
        }
    })
}

/// Huge pages that the kernel gives to buffers unasked, from 2 MiB on: their first touch clears 2 MiB at once.
pub(super) const HUGE_PAGES: Suspect = Suspect {
    name: "huge-pages",
    what: "huge pages that the kernel gives to buffers unasked",
    change: "system=transparent_hugepage:madvise",
    acts_on: ActsOn::Better,
    order: 1,
    take_off: huge_pages,
    ..Suspect::USUAL
};

fn huge_pages(sides: &Sides) -> Intervention {
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

/// Page faults of buffers that were never touched.
pub(super) const PAGE_FAULTS: Suspect = Suspect {
    name: "page-faults",
    what: "page faults of buffers that were never touched",
    change: "buffer_init=populated",
    order: 1,
    counted: Some(Counted::PageFaults),
    check: Check::FewerFaults,
    take_off: page_faults,
    ..Suspect::USUAL
};

fn page_faults(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.buffer_init == BufferInit::Untouched {
            cell.trial.buffer_init = BufferInit::Populated;
        }
    })
}

/// Buffers of a thread below this size fit the address cache (TLB) of any CPU in small pages, bytes.
const COVERED: u64 = 1 << 20;

/// Pages of buffers that the address cache of a CPU does not cover.
pub(super) const TLB: Suspect = Suspect {
    name: "tlb",
    what: "TLB misses of buffers in small pages",
    change: "buffer_init=huge",
    order: 2,
    take_off: tlb,
    ..Suspect::USUAL
};

fn tlb(sides: &Sides) -> Intervention {
    let copies = |trial: &TrialSpec| trial.cache != CacheState::Direct;
    let is_large = |trial: &TrialSpec| trial.bs * u64::from(trial.depth) > COVERED;
    let trials = sides.trials();
    if sides.is_model || !trials.iter().all(|trial| copies(trial)) {
        return Intervention::Irrelevant;
    }
    if !trials.iter().any(|trial| is_large(trial)) {
        return Intervention::Irrelevant;
    }
    // Huge pages take away page faults too: the side compared with them must have none.
    if sides.have_faults() {
        return Intervention::After("page-faults");
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.buffer_init = BufferInit::Huge)
}
