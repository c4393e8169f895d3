//! Suspects in the threads of a trial: their CPUs, their locks and their calls.

use iolab_workload::cpus::Placement;
use iolab_workload::settings::CellSpec;
use iolab_workload::stages::Stage;
use iolab_workload::trial::{
    Backend, CacheState, Descriptors, FileLayout, NICE, SyncPolicy, TrialSpec,
};

use super::{ActsOn, Check, Compared, Counted, Intervention, Obstacle, Sides, Suspect};

/// Threads that wait for the CPU that they are bound to while another one is free.
pub(super) const CPU_BINDING: Suspect = Suspect {
    name: "cpu-binding",
    what: "threads that wait for the CPU that they are bound to",
    change: "threads free to run on any CPU",
    take_off: cpu_binding,
    ..Suspect::USUAL
};

fn cpu_binding(sides: &Sides) -> Intervention {
    if sides.is_model {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        cell.trial.cpus = None;
        cell.trial.placement = Placement::Float;
    })
}

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
    take_off: cpu_waiting,
};

fn cpu_waiting(sides: &Sides) -> Intervention {
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
}

/// A lock of the file, which writes of several threads wait for.
pub(super) const FILE_LOCK: Suspect = Suspect {
    name: "file-lock",
    what: "a lock of the file or descriptor that threads share",
    change: "files and descriptors of their own",
    order: 1,
    counted: Some(Counted::Stage(Stage::Admission)),
    take_off: file_lock,
    ..Suspect::USUAL
};

fn file_lock(sides: &Sides) -> Intervention {
    let mut trials = sides.trials().into_iter();
    if sides.is_model || !trials.any(|trial| trial.threads > 1 && trial.writes()) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        cell.trial.layout = FileLayout::Private;
        cell.trial.descriptors = Descriptors::Private;
    })
}

/// One file position for all threads.
pub(super) const SHARED_DESCRIPTOR: Suspect = Suspect {
    name: "shared-descriptor",
    what: "the file descriptor that threads share",
    change: "descriptors=private",
    counted: Some(Counted::Stage(Stage::Admission)),
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: shared_descriptor,
    ..Suspect::USUAL
};

fn shared_descriptor(sides: &Sides) -> Intervention {
    let uses_threads = sides.trials().iter().any(|trial| trial.threads > 1);
    match uses_threads && !sides.is_model {
        true => sides.changed(|cell: &mut CellSpec| cell.trial.descriptors = Descriptors::Private),
        false => Intervention::Irrelevant,
    }
}

/// The largest request whose copy does not hide the cost of a system call. A mapping has costs of its own for each page.
const SMALL_BS: u64 = 4096;

/// The time of a system call, which small requests have per few bytes.
pub(super) const SYSTEM_CALLS: Suspect = Suspect {
    name: "system-calls",
    what: "the time of a system call per request",
    change: "backend=mmap, which makes none",
    take_off: system_calls,
    ..Suspect::USUAL
};

fn system_calls(sides: &Sides) -> Intervention {
    let is_in_memory = |trial: &TrialSpec| {
        trial.cache == CacheState::Hot && trial.read_percent == 100 && trial.depth == 1
    };
    let per_byte_alike = sides.share(|trial| trial.bs) && sides.share(|trial| trial.backend);
    let counts = sides.trials().iter().any(|trial| trial.bs <= SMALL_BS);
    if sides.is_model || per_byte_alike || !counts || !sides.trials().into_iter().all(is_in_memory)
    {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.backend = Backend::Mmap)
}

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
    take_off: waiting,
    ..Suspect::USUAL
};

fn waiting(sides: &Sides) -> Intervention {
    let in_flight = |trial: &TrialSpec| trial.threads * trial.depth;
    let can = |trial: &TrialSpec| {
        trial.cache == CacheState::Direct
            && trial.rate.is_none()
            && (!trial.writes() || matches!(trial.sync, SyncPolicy::None | SyncPolicy::End))
    };
    let trials = sides.trials();
    if !sides.share(in_flight) || in_flight(trials[0]) > FEW_THREADS || !trials.into_iter().all(can)
    {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
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
}
