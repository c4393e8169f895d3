//! Suspects in the threads of a trial: their CPUs, their locks and their calls.
//!
//! Suspects in the memory of buffers.

use super::{ActsOn, Check, Compared, Counted, Intervention, Obstacle, Suspect};
use iolab_workload::settings::CellSpec;
use iolab_workload::stages::Stage;
use iolab_workload::system_settings::{Placement, SystemSetting};
use iolab_workload::trial::{
    Backend, Batch, BufferInit, BufferMemory, CacheState, DEPTH_MAX, Descriptors, FileLayout,
    HUGE_PAGE_MIN_BYTES, NICE, SyncPolicy, TrialSpec,
};

/// Threads that wait for the CPU that they are bound to while another one is free.
pub(super) const CPU_BINDING: Suspect = Suspect {
    name: "cpu-binding",
    what: "threads that wait for the CPU that they are bound to",
    change: "threads free to run on any CPU",
    take_off: |sides| {
        sides.changed_if(!sides.is_model, |cell| {
            cell.trial.cpus = None;
            cell.trial.placement = Placement::Float;
        })
    },
    ..Suspect::USUAL
};

/// Above the real-time priorities of ordinary systems, below the kernel's own.
const REALTIME: u8 = 50;

/// The share of their time in which threads wait for others on any machine.
const USUAL: f64 = 0.05;

/// Threads that wait for a CPU which other programs use.
pub(super) const CPU_WAITING: Suspect = Suspect {
    name: "cpu-waiting",
    what: "threads that wait for a CPU which others use",
    change: "nice=-20, or realtime=50 with --change-system",
    acts_on: ActsOn::Worse,
    order: 2,
    counted: Some(Counted::CpuWait),
    check: Check::LessCpuWait,
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: |sides| {
        let waited = sides.machine.cpu_wait.is_some_and(|share| share > USUAL);
        if sides.is_model || !waited {
            return Intervention::Irrelevant;
        }
        // A nice value is none among real-time threads, before which only others of their kind come; these can keep all else from a CPU.
        // With a kernel thread that polls, threads of that kind keep it from the CPU; and they have no nice value.
        let excludes = |cell: &CellSpec| cell.trial.sqpoll || cell.trial.nice.is_some();
        let machine = &sides.machine;
        if machine.may_change_system
            && machine.may_be_realtime
            && !excludes(&sides.base)
            && !excludes(&sides.other)
        {
            return sides.changed(|cell| cell.trial.realtime = Some(REALTIME));
        }
        match sides.changed(|cell| cell.trial.nice = Some(*NICE.start())) {
            Intervention::Settings(_) if !machine.may_raise_nice => {
                Intervention::Lacks(Obstacle::NeedsRoot)
            }
            intervention => intervention,
        }
    },
};

/// A lock of the file, which writes of several threads wait for.
pub(super) const FILE_LOCK: Suspect = Suspect {
    name: "file-lock",
    what: "a lock of the file or descriptor that threads share",
    change: "files and descriptors of their own",
    order: 1,
    counted: Some(Counted::Stage(Stage::Admission)),
    take_off: |sides| {
        let mut trials = sides.trials().into_iter();
        let write_together = trials.any(|trial| trial.threads > 1 && trial.writes());
        sides.changed_if(!sides.is_model && write_together, |cell| {
            cell.trial.layout = FileLayout::Private;
            cell.trial.descriptors = Descriptors::Private;
        })
    },
    ..Suspect::USUAL
};

/// One file position for all threads.
pub(super) const SHARED_DESCRIPTOR: Suspect = Suspect {
    name: "shared-descriptor",
    what: "the file descriptor that threads share",
    change: "descriptors=private",
    counted: Some(Counted::Stage(Stage::Admission)),
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: |sides| {
        let uses_threads = sides.trials().iter().any(|trial| trial.threads > 1);
        sides.changed_if(uses_threads && !sides.is_model, |cell| {
            cell.trial.descriptors = Descriptors::Private;
        })
    },
    ..Suspect::USUAL
};

/// The largest request whose copy does not hide the cost of a system call. A mapping has costs of its own for each page.
const SMALL_BS: u64 = 4096;

/// The time of a system call, which small requests have per few bytes.
pub(super) const SYSTEM_CALLS: Suspect = Suspect {
    name: "system-calls",
    what: "the time of a system call per request",
    change: "backend=mmap, which makes none",
    take_off: |sides| {
        let is_in_memory = |trial: &TrialSpec| {
            trial.cache == CacheState::Hot && trial.read_percent == 100 && trial.depth == 1
        };
        let per_byte_alike = sides.share(|trial| trial.bs) && sides.share(|trial| trial.backend);
        let counts = sides.trials().iter().any(|trial| trial.bs <= SMALL_BS);
        let can_cause = !sides.is_model
            && !per_byte_alike
            && counts
            && sides.trials().into_iter().all(is_in_memory);
        sides.changed_if(can_cause, |cell| cell.trial.backend = Backend::Mmap)
    },
    ..Suspect::USUAL
};

/// Requests in flight with which latency no longer decides.
const WAITING_DEPTH: u32 = 16;

/// Bytes in flight with which it does not either, and which any machine has as buffers.
const WAITING_BYTES: u64 = 16 << 20;

/// The most requests in flight with which it may.
const FEW_THREADS: u32 = 4;

/// Time of a request that passes while nothing else is done: latency that further requests in flight would overlap.
pub(super) const WAITING: Suspect = Suspect {
    name: "waiting",
    what: "few requests in flight, which the storage could overlap or sort",
    change: "16 requests, or 16 MiB, in flight",
    check: Check::InFlight,
    take_off: |sides| {
        let in_flight = |trial: &TrialSpec| trial.threads * trial.depth;
        let can = |trial: &TrialSpec| {
            trial.cache == CacheState::Direct
                && trial.rate.is_none()
                && (!trial.writes() || matches!(trial.sync, SyncPolicy::None | SyncPolicy::End))
        };
        let trials = sides.trials();
        let can_cause = sides.share(in_flight)
            && in_flight(trials[0]) <= FEW_THREADS
            && trials.into_iter().all(can);
        sides.changed_if(can_cause, |cell| {
            let trial = &mut cell.trial;
            let depth = WAITING_DEPTH.min((WAITING_BYTES / trial.largest_request().max(1)) as u32);
            if depth <= trial.depth {
                return;
            }
            if !trial.backend.is_asynchronous() {
                trial.backend = Backend::Libaio;
            }
            trial.depth = depth;
        })
    },
    ..Suspect::USUAL
};

/// Below this I/O size the cost of a system call decides, and another call is another cost.
const BS_MIN: u64 = 16 << 10;

/// Buffers that the caches of a CPU do not hold: copies to them go to memory.
pub(super) const BUFFER_FOOTPRINT: Suspect = Suspect {
    name: "buffer-footprint",
    what: "buffers larger than a cache of the CPU",
    change: "as much buffer memory on both sides, used in turn (libaio)",
    acts_on: ActsOn::Better,
    order: 1,
    take_off: |sides| {
        let one_at_a_time = |trial: &TrialSpec| {
            trial.cache != CacheState::Direct
                && trial.bs_mix.is_none()
                && trial.bs >= BS_MIN
                && trial.depth == 1
        };
        let trials = sides.trials();
        let is_alike =
            sides.share(|trial| trial.threads) && sides.share(|trial| trial.read_percent);
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
        sides.changed(|cell| {
            let trial = &mut cell.trial;
            trial.backend = Backend::Libaio;
            trial.depth = (footprint / trial.bs) as u32;
            // A buffer is used again when all others have been.
            trial.batch = Batch::All;
        })
    },
    ..Suspect::USUAL
};

/// Buffers in many pieces of physical memory, for which the kernel splits requests.
pub(super) const BUFFER_PIECES: Suspect = Suspect {
    name: "buffer-pieces",
    what: "requests split because buffers lie in many pieces",
    change: "buffer_memory=contiguous",
    order: 2,
    counted: Some(Counted::DeviceIos),
    take_off: |sides| {
        sides.changed_if(!sides.is_model, |cell| {
            if cell.trial.cache == CacheState::Direct {
                cell.trial.buffer_memory = BufferMemory::Contiguous;
            }
        })
    },
    ..Suspect::USUAL
};

/// Huge pages that the kernel gives to buffers unasked, from 2 MiB on: their first touch clears 2 MiB at once.
pub(super) const HUGE_PAGES: Suspect = Suspect {
    name: "huge-pages",
    what: "huge pages that the kernel gives to buffers unasked",
    change: "system=transparent_hugepage:madvise",
    acts_on: ActsOn::Better,
    order: 1,
    take_off: |sides| {
        let gets_them = |trial: &TrialSpec| {
            trial.cache != CacheState::Direct
                && trial.bs * u64::from(trial.depth) >= HUGE_PAGE_MIN_BYTES
                && !matches!(trial.buffer_init, BufferInit::Huge | BufferInit::NoHuge)
        };
        let is_on = sides.machine.huge_pages.as_deref() == Some("always");
        let can_cause = is_on && sides.trials().into_iter().any(gets_them);
        sides.with_system(can_cause, SystemSetting::HugePages, "madvise")
    },
    ..Suspect::USUAL
};

/// Page faults of buffers that were never touched.
pub(super) const PAGE_FAULTS: Suspect = Suspect {
    name: "page-faults",
    what: "page faults of buffers that were never touched",
    change: "buffer_init=populated",
    order: 1,
    counted: Some(Counted::PageFaults),
    check: Check::FewerFaults,
    take_off: |sides| {
        sides.changed(|cell| {
            if cell.trial.buffer_init == BufferInit::Untouched {
                cell.trial.buffer_init = BufferInit::Populated;
            }
        })
    },
    ..Suspect::USUAL
};

/// Buffers of a thread below this size fit the address cache (TLB) of any CPU in small pages, bytes.
const COVERED: u64 = 1 << 20;

/// Pages of buffers that the address cache of a CPU does not cover.
pub(super) const TLB: Suspect = Suspect {
    name: "tlb",
    what: "TLB misses of buffers in small pages",
    change: "buffer_init=huge",
    order: 2,
    take_off: |sides| {
        let copies = |trial: &TrialSpec| trial.cache != CacheState::Direct;
        let is_large = |trial: &TrialSpec| trial.bs * u64::from(trial.depth) > COVERED;
        let trials = sides.trials();
        if sides.is_model || !trials.into_iter().all(copies) || !trials.into_iter().any(is_large) {
            return Intervention::Irrelevant;
        }
        // Huge pages take away page faults too: the side compared with them must have none.
        if sides.have_faults() {
            return Intervention::After("page-faults");
        }
        sides.changed(|cell| cell.trial.buffer_init = BufferInit::Huge)
    },
    ..Suspect::USUAL
};
