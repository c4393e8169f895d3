//! Suspects in the requests that a device gets.

use iolab_workload::settings::CellSpec;
use iolab_workload::stages::Stage;
use iolab_workload::system_settings::{RequestLimit, SchedulerName};
use iolab_workload::trial::{CacheState, Pattern, TrialSpec};

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

/// The I/O size whose bytes do not decide.
const UNLIMITED_BS: u64 = 4096;
/// The least size whose bytes may.
const LIMITED_BS_MIN: u64 = 16 << 10;

/// A limit of bytes per second, which requests in flight cannot raise.
pub(super) const BANDWIDTH: Suspect = Suspect {
    name: "bandwidth",
    what: "a limit of bytes per second",
    change: "bs=4KiB",
    acts_on: ActsOn::Either,
    counted: Some(Counted::Stage(Stage::Device)),
    take_off: bandwidth,
    ..Suspect::USUAL
};

fn bandwidth(sides: &Sides) -> Intervention {
    let in_flight = |trial: &TrialSpec| trial.threads * trial.depth;
    let is_large = |trial: &TrialSpec| trial.bs >= LIMITED_BS_MIN && trial.bs_mix.is_none();
    if sides.share(in_flight) || !sides.trials().into_iter().all(is_large) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.bs = UNLIMITED_BS)
}

/// Requests that wait for others in flight.
pub(super) const QUEUEING: Suspect = Suspect {
    name: "queueing",
    what: "requests that wait for others in flight",
    change: "threads=1, depth=1",
    acts_on: ActsOn::Either,
    explains: &[Compared::Quantiles],
    take_off: queueing,
    ..Suspect::USUAL
};

fn queueing(sides: &Sides) -> Intervention {
    // A rate that one thread cannot keep makes requests wait all the more, and one thread of several in sequence leaves one stream.
    let is_other = |trial: &TrialSpec| {
        trial.rate.is_some() || (trial.threads > 1 && trial.pattern != Pattern::Rand)
    };
    if sides.trials().into_iter().any(is_other) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        cell.trial.threads = 1;
        cell.trial.depth = 1;
    })
}

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
    take_off: reach,
    ..Suspect::USUAL
};

fn reach(sides: &Sides) -> Intervention {
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
    if region > sides.base.trial.region / REACH_MOST {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.region = cell.trial.region.min(region))
}

/// The largest request that the kernel sends to a device: larger ones are split.
pub(super) const REQUEST_LIMIT: Suspect = Suspect {
    name: "request-limit",
    what: "the largest request that the kernel sends to the device",
    change: "system=max_sectors_kb:max",
    counted: Some(Counted::DeviceIos),
    check: Check::FewerDeviceIos,
    take_off: request_limit,
    ..Suspect::USUAL
};

fn request_limit(sides: &Sides) -> Intervention {
    let limit = sides.machine.request_max_bytes;
    let is_split = |trial: &&TrialSpec| {
        trial.cache == CacheState::Direct
            && limit.is_some_and(|limit| trial.largest_request() > limit)
    };
    let differ = !sides.share(TrialSpec::largest_request);
    let can_cause = differ && sides.trials().iter().any(is_split);
    match !sides.is_model && (can_cause || sides.differ_in(|system| system.request_limit)) {
        true => sides.changed_system(|system| system.request_limit = Some(RequestLimit::Greatest)),
        false => Intervention::Irrelevant,
    }
}

/// The I/O scheduler of the device, which sorts requests, merges them, and holds some back for others.
pub(super) const SCHEDULER: Suspect = Suspect {
    name: "scheduler",
    what: "the I/O scheduler",
    change: "system=scheduler:none",
    acts_on: ActsOn::Either,
    order: 3,
    counted: Some(Counted::Stage(Stage::Queue)),
    check: Check::Settings,
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off: scheduler,
};

fn scheduler(sides: &Sides) -> Intervention {
    let none = SchedulerName::none();
    let has_one = sides
        .machine
        .scheduler
        .as_deref()
        .is_some_and(|name| name != none.name());
    let mut trials = sides.trials().into_iter();
    let reaches_device = trials.any(|trial| trial.cache != CacheState::Hot || trial.writes());
    let can_cause = has_one && reaches_device;
    match !sides.is_model && (can_cause || sides.differ_in(|system| system.scheduler.clone())) {
        true => sides.changed_system(|system| system.scheduler = Some(none.clone())),
        false => Intervention::Irrelevant,
    }
}

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
    acts_on: ActsOn::Either,
    check: Check::SameVolume,
    explains: &[Compared::Loads],
    take_off: small_requests,
    ..Suspect::USUAL
};

fn small_requests(sides: &Sides) -> Intervention {
    let is_small = |trial: &TrialSpec| trial.largest_request() < SMALL_BS && trial.bs_mix.is_none();
    let has_many = |trial: &TrialSpec| {
        let bytes = trial.limit.bytes;
        bytes.is_none_or(|bytes| bytes >= LARGE_REQUESTS_MIN * LARGE_BS)
    };
    let can = |trial: &TrialSpec| is_small(trial) && has_many(trial);
    if !sides.trials().into_iter().all(can) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.bs = LARGE_BS)
}
