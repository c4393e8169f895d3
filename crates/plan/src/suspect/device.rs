//! Suspects in the requests that a device gets.
//!
//! Suspects in data that the kernel or the device reads ahead.
//!
//! Suspects in writes: space, caches, and waiting until data is durable.

use super::{ActsOn, BETWEEN, Check, Compared, Counted, Intervention, Suspect};
use iolab_workload::settings::CellSpec;
use iolab_workload::stages::Stage;
use iolab_workload::system_settings::SystemSetting;
use iolab_workload::trial::{
    Advice, Allocate, Backend, CacheState, Pattern, SyncPolicy, TrialSpec,
};

/// The I/O size whose bytes do not decide.
const UNLIMITED_BS: u64 = 4096;

/// The least size whose bytes may.
const LIMITED_BS_MIN: u64 = 16 << 10;

/// A limit of bytes per second, which requests in flight cannot raise.
pub(super) const BANDWIDTH: Suspect = Suspect {
    name: "bandwidth",
    what: "a limit of bytes per second",
    change: "bs=4KiB",
    counted: Some(Counted::Stage(Stage::Device)),
    take_off: |sides| {
        let in_flight = |trial: &TrialSpec| trial.threads * trial.depth;
        let is_large = |trial: &TrialSpec| trial.bs >= LIMITED_BS_MIN && trial.bs_mix.is_none();
        let can_cause = !sides.share(in_flight) && sides.trials().into_iter().all(is_large);
        sides.changed_if(can_cause, |cell| cell.trial.bs = UNLIMITED_BS)
    },
    ..Suspect::USUAL
};

/// Requests that wait for others in flight.
pub(super) const QUEUEING: Suspect = Suspect {
    name: "queueing",
    what: "requests that wait for others in flight",
    change: "threads=1, depth=1",
    explains: &[Compared::Quantiles],
    take_off: |sides| {
        // A rate that one thread cannot keep makes requests wait all the more, and one thread of several in sequence leaves one stream.
        let is_other = |trial: &TrialSpec| {
            trial.rate.is_some() || (trial.threads > 1 && trial.pattern != Pattern::Rand)
        };
        sides.changed_if(!sides.trials().into_iter().any(is_other), |cell| {
            cell.trial.threads = 1;
            cell.trial.depth = 1;
        })
    },
    ..Suspect::USUAL
};

/// The part of the region that is left, if that holds enough requests.
const REACH_SHARE: u64 = 64;

/// A larger rest of the region than one part in this many shows nothing about its size.
const REACH_MOST: u64 = 8;

/// Fewest requests of a thread that the rest of the region holds.
const REACH_REQUESTS_MIN: u64 = 64;

/// Requests so far apart that heads travel, or that caches and mapping tables do not cover them.
pub(super) const REACH: Suspect = Suspect {
    name: "reach",
    what: "the size of the region (reach of caches and mapping tables, length of random seeks)",
    change: "an 8th of the region or less, down to a 64th",
    order: 2,
    counted: Some(Counted::Stage(Stage::Device)),
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: |sides| {
        let is_scattered = |pattern: Pattern| !matches!(pattern, Pattern::Seq | Pattern::Reverse);
        let scattered = sides
            .trials()
            .iter()
            .any(|trial| is_scattered(trial.pattern));
        if !scattered || !sides.share(|trial| trial.region) {
            return Intervention::Irrelevant;
        }
        // An equal range on both sides; otherwise their reach would differ again.
        let stride =
            |cell: &CellSpec| (cell.trial.bs + cell.trial.skip) * u64::from(cell.trial.threads);
        let unit = stride(&sides.base).max(stride(&sides.other));
        let region = (sides.base.trial.region / REACH_SHARE).max(unit * REACH_REQUESTS_MIN);
        let is_smaller = region <= sides.base.trial.region / REACH_MOST;
        sides.changed_if(is_smaller, |cell| {
            cell.trial.region = cell.trial.region.min(region);
        })
    },
    ..Suspect::USUAL
};

/// The largest request that the kernel sends to a device: larger ones are split.
pub(super) const REQUEST_LIMIT: Suspect = Suspect {
    name: "request-limit",
    what: "the largest request that the kernel sends to the device",
    change: "system=max_sectors_kb:max",
    counted: Some(Counted::DeviceIos),
    check: Check::FewerDeviceIos,
    take_off: |sides| {
        let limit = sides.machine.request_max_bytes;
        let is_split = |trial: &&TrialSpec| {
            trial.cache == CacheState::Direct
                && limit.is_some_and(|limit| trial.largest_request() > limit)
        };
        let differ = !sides.share(TrialSpec::largest_request);
        let can_cause = differ && sides.trials().iter().any(is_split);
        sides.with_system(can_cause, SystemSetting::RequestLimit, "max")
    },
    ..Suspect::USUAL
};

/// The time that each request takes whatever its size, beside the time of its bytes.
pub(super) const REQUEST_TIME: Suspect = Suspect {
    name: BETWEEN,
    what: "the fixed time of a request",
    change: "four sizes between, fitted as a fixed time and a rate",
    take_off: |sides| {
        let is_one_at_a_time = |trial: &TrialSpec| {
            trial.in_flight() == 1 && trial.rate.is_none() && trial.bs_mix.is_none()
        };
        let can_cause = sides.trials().into_iter().all(is_one_at_a_time);
        let between = sides.between().filter(|_| can_cause);
        between.map_or(Intervention::Irrelevant, Intervention::Between)
    },
    ..Suspect::USUAL
};

/// The I/O scheduler of the device, which sorts requests, merges them, and holds some back for others.
pub(super) const SCHEDULER: Suspect = Suspect {
    name: "scheduler",
    what: "the I/O scheduler",
    change: "system=scheduler:none",
    order: 3,
    counted: Some(Counted::Stage(Stage::Queue)),
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: |sides| {
        let own = sides.machine.scheduler.as_deref();
        let has_one = own.is_some_and(|name| name != "none");
        let mut trials = sides.trials().into_iter();
        let reaches_device = trials.any(|trial| trial.cache != CacheState::Hot || trial.writes());
        let can_cause = has_one && reaches_device;
        sides.with_system(can_cause, SystemSetting::Scheduler, "none")
    },
    ..Suspect::USUAL
};

/// The largest request that a cloud volume counts as one.
const LARGE_BS: u64 = 256 << 10;

/// Larger requests are few already.
const SMALL_BS: u64 = 64 << 10;

/// Fewest large requests of a load that ends by its bytes: the first one waits for no other, which makes a shorter load look faster.
const LARGE_REQUESTS_MIN: u64 = 32;

/// Costs of each request, however small: credits of IOPS, or time in which a cache does not drain. The same bytes in few
/// requests use up little.
pub(super) const SMALL_REQUESTS: Suspect = Suspect {
    name: "small-requests",
    what: "many small requests (credits of IOPS, throttling, or a cost of each request in what drains a cache)",
    change: "bs=256KiB",
    check: Check::SameVolume,
    explains: &[Compared::Loads],
    take_off: |sides| {
        let is_small =
            |trial: &TrialSpec| trial.largest_request() < SMALL_BS && trial.bs_mix.is_none();
        let has_many = |trial: &TrialSpec| {
            let bytes = trial.limit.bytes;
            bytes.is_none_or(|bytes| bytes >= LARGE_REQUESTS_MIN * LARGE_BS)
        };
        let can = |trial: &TrialSpec| is_small(trial) && has_many(trial);
        let can_cause = sides.trials().into_iter().all(can);
        sides.changed_if(can_cause, |cell| cell.trial.bs = LARGE_BS)
    },
    ..Suspect::USUAL
};

/// Read-ahead of the kernel into the page cache.
pub(super) const HOST_READ_AHEAD: Suspect = Suspect {
    name: "host-read-ahead",
    what: "read-ahead of the kernel",
    change: "fadvise=random",
    acts_on: ActsOn::Better,
    order: 1,
    take_off: |sides| {
        sides.changed(|cell| {
            let trial = &cell.trial;
            let reads_cold = trial.cache == CacheState::Cold && trial.read_percent > 0;
            // The advice is for calls that read.
            if reads_cold && trial.backend != Backend::Mmap {
                cell.trial.fadvise = Some(Advice::Random);
            }
        })
    },
    ..Suspect::USUAL
};

/// Read-ahead of the kernel around page faults of a mapping, which the advice on a file (`fadvise`) does not switch off.
pub(super) const MAPPED_READ_AHEAD: Suspect = Suspect {
    name: "mapped-read-ahead",
    what: "read-ahead of the kernel for a mapping",
    change: "system=read_ahead_kb:0",
    acts_on: ActsOn::Better,
    order: 1,
    take_off: |sides| {
        let reads_ahead = |trial: &TrialSpec| {
            trial.backend == Backend::Mmap
                && trial.cache == CacheState::Cold
                && trial.read_percent > 0
        };
        match sides.trials().into_iter().any(reads_ahead) {
            true => sides.changed_system(|system| system.set(SystemSetting::ReadAhead, "0")),
            false => Intervention::Irrelevant,
        }
    },
    ..Suspect::USUAL
};

/// Data that is read before it is asked for, because reads follow each other in ascending order.
pub(super) const READ_AHEAD: Suspect = Suspect {
    name: "read-ahead",
    what: "read-ahead of sequential reads",
    change: "sequential reads in reverse order",
    acts_on: ActsOn::Better,
    order: 1,
    counted: Some(Counted::Stage(Stage::Device)),
    take_off: |sides| {
        let of = |state: CacheState| move |trial: &&TrialSpec| trial.cache == state;
        let trials = sides.trials();
        if trials.iter().all(of(CacheState::Hot)) {
            return Intervention::Irrelevant;
        }
        // Reverse order takes away read-ahead of the kernel as well.
        let by_kernel = |cell: &&CellSpec| {
            let trial = &cell.trial;
            let is_off =
                trial.fadvise.is_some() || cell.system.get(SystemSetting::ReadAhead) == Some("0");
            trial.cache == CacheState::Cold && !is_off
        };
        if let Some(cell) = [&sides.base, &sides.other].into_iter().find(by_kernel) {
            return Intervention::After(match cell.trial.backend {
                Backend::Mmap => "mapped-read-ahead",
                _ => "host-read-ahead",
            });
        }
        sides.changed(|cell| {
            if cell.trial.pattern == Pattern::Seq && cell.trial.read_percent > 0 {
                cell.trial.pattern = Pattern::Reverse;
            }
        })
    },
    ..Suspect::USUAL
};

/// A limit beyond which a longer request gains little on any device, KiB.
const ENOUGH_KIB: u64 = 16 << 10;

/// Limit of the kernel's read-ahead for buffered reads: the device gets requests of that size.
pub(super) const READ_AHEAD_LIMIT: Suspect = Suspect {
    name: "read-ahead-limit",
    what: "the most that the kernel reads ahead",
    change: "system=read_ahead_kb:16384",
    order: 3,
    take_off: |sides| {
        let is_short = |bytes: u64| bytes > 0 && bytes < ENOUGH_KIB << 10;
        let reads_ahead = |trial: &TrialSpec| {
            trial.cache == CacheState::Cold
                && trial.read_percent > 0
                && trial.pattern == Pattern::Seq
                && trial.fadvise != Some(Advice::Random)
        };
        let is_limited = sides.machine.read_ahead_bytes.is_some_and(is_short);
        let can_cause = is_limited && sides.trials().into_iter().any(reads_ahead);
        match can_cause || sides.differ_in(SystemSetting::ReadAhead) {
            // If it is switched off there is no limit.
            true => sides.changed_system(|system| {
                if system.get(SystemSetting::ReadAhead).is_none() {
                    system.set(SystemSetting::ReadAhead, &ENOUGH_KIB.to_string());
                }
            }),
            false => Intervention::Irrelevant,
        }
    },
    ..Suspect::USUAL
};

/// Space that writes to a new file are given while they wait.
pub(super) const ALLOCATION: Suspect = Suspect {
    name: "allocation",
    what: "allocation of space for a new file",
    change: "writes to space that was written before",
    order: 1,
    take_off: |sides| {
        sides.changed_if(!sides.is_model, |cell| {
            let trial = &mut cell.trial;
            if trial.starts_fresh() {
                trial.allocate = Some(Allocate::Recycled);
            }
        })
    },
    ..Suspect::USUAL
};

/// Waiting until each write is durable: flushes, and the revolution that a platter needs until the next block comes round.
pub(super) const DURABILITY: Suspect = Suspect {
    name: "durability",
    what: "waiting until each write is durable",
    change: "sync=none",
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: |sides| {
        sides.changed(|cell| {
            let trial = &mut cell.trial;
            if trial.writes() && !matches!(trial.sync, SyncPolicy::None | SyncPolicy::End) {
                trial.sync = SyncPolicy::None;
                trial.sync_every = 1;
            }
        })
    },
    ..Suspect::USUAL
};

/// Idle time before a trial, in which caches of a drive empty, credits return, and data is tidied up: the worse side had less.
pub(super) const RECOVERY: Suspect = Suspect {
    name: "recovery",
    what: "idle time before trials (caches of the drive empty, credits return)",
    change: "the same idle time on both sides",
    order: 3,
    take_off: |sides| {
        let longest = sides.base.idle.max(sides.other.idle);
        sides.changed(|cell| cell.idle = longest)
    },
    ..Suspect::USUAL
};

/// Writes that complete in the page cache, and are written back later.
pub(super) const WRITE_BACK: Suspect = Suspect {
    name: "write-back",
    what: "writes that complete in the page cache and are written back later",
    change: "sync=odsync",
    acts_on: ActsOn::Better,
    check: Check::FromStorage,
    take_off: |sides| {
        // If both sides write, the wait for storage makes any two of them more alike.
        let can_cause = !sides.is_model && !sides.share(TrialSpec::writes);
        sides.changed_if(can_cause, |cell| {
            let trial = &mut cell.trial;
            let is_deferred = matches!(trial.sync, SyncPolicy::None | SyncPolicy::End);
            if trial.cache != CacheState::Direct && trial.writes() && is_deferred {
                trial.sync = SyncPolicy::Odsync;
            }
        })
    },
    ..Suspect::USUAL
};

/// Writes that complete before they are on the medium.
pub(super) const WRITE_CACHE: Suspect = Suspect {
    name: "write-cache",
    what: "a write cache",
    change: "sync=odsync",
    acts_on: ActsOn::Better,
    counted: Some(Counted::Stage(Stage::Device)),
    take_off: |sides| {
        // Durable writes wait for more than the medium, with which any two sides that write are more alike.
        sides.changed_if(!sides.share(TrialSpec::writes), |cell| {
            let trial = &mut cell.trial;
            let is_direct = trial.cache == CacheState::Direct;
            if is_direct
                && trial.writes()
                && matches!(trial.sync, SyncPolicy::None | SyncPolicy::End)
            {
                trial.sync = SyncPolicy::Odsync;
            }
        })
    },
    ..Suspect::USUAL
};

/// Effects of writes on later ones in storage: a cache that fills, data to move or to collect, a limit on writes.
pub(super) const WRITTEN_DATA: Suspect = Suspect {
    name: "written-data",
    what: "what writes leave or use up in the storage (a cache that fills, data to move or to collect, a limit on writes)",
    change: "reads instead of writes",
    check: Check::SameVolume,
    explains: &[Compared::Loads],
    take_off: |sides| {
        // Reads from the page cache use up nothing of the storage.
        let is_direct = |trial: &TrialSpec| trial.cache == CacheState::Direct;
        sides.changed_if(sides.trials().into_iter().all(is_direct), |cell| {
            let trial = &mut cell.trial;
            if trial.writes() {
                trial.read_percent = 100;
                trial.sync = SyncPolicy::None;
                trial.sync_every = 1;
            }
        })
    },
    ..Suspect::USUAL
};
