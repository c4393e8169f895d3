//! Time limits of trials on slow storage.

use std::time::Duration;

use iolab_workload::trial::{CacheState, TrialSpec};

/// How long a rank waits for a short answer.
pub const ANSWER: Duration = Duration::from_secs(60);

/// Least throughput of all ranks together, bytes per second.
const BYTES: u64 = 4 << 20;
/// Least rate of all ranks together, requests per second.
const REQUESTS: u64 = 25;

/// Time limits of a rank for each step of a trial, after which it counts as lost.
///
/// Giving up too early ends a sound run; giving up late costs time. So the limits suit slow storage, a hard disk or a network file
/// system, shared by all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Limit for preparing the trial.
    pub preparing: Duration,
    /// Limit for running the trial.
    pub carrying: Duration,
    /// Limit for the rest: written data is synced, trimmed blocks filled again, data read back.
    pub settling: Duration,
}

/// Time limit for ranks to move `bytes` together.
pub fn moving(bytes: u64) -> Duration {
    ANSWER + Duration::from_secs(bytes / BYTES)
}

impl Timeouts {
    /// Time limits of a trial by `ranks` ranks.
    pub fn of(trial: &TrialSpec, ranks: usize) -> Self {
        let ranks = ranks as u64;
        // Work that each rank does on the whole of a shared region.
        let by_each = trial.region.saturating_mul(ranks);
        let only_if = |does: bool, bytes: u64| if does { bytes } else { 0 };
        // Direct writes too, which the drive may keep in its cache until a sync.
        let dirty = only_if(trial.writes_data(), trial.region);
        let warmed = only_if(trial.cache == CacheState::Hot, by_each);
        let refilled = only_if(trial.trims(), by_each);
        let read_back = only_if(trial.verify, trial.region);
        // Requests in progress at the time limit, and dirty pages that a writer waits for, or syncs at the end.
        let workers = ranks.saturating_mul(trial.in_flight());
        let late = workers.saturating_mul(trial.largest_request());
        let span = trial.limit.time.unwrap_or_else(|| slowest(trial, ranks));
        Self {
            preparing: moving(trial.region.max(warmed)),
            carrying: span.saturating_add(moving(late.saturating_add(dirty))),
            settling: moving(dirty.saturating_add(refilled).saturating_add(read_back)),
        }
    }
}

/// Duration on the slowest storage of a trial limited by a number of requests, or by its rate.
fn slowest(trial: &TrialSpec, ranks: u64) -> Duration {
    let requests = trial.requests_bound().unwrap_or(0);
    let bytes = requests.saturating_mul(trial.largest_request());
    let busy = Duration::from_secs((bytes / BYTES).max(requests / REQUESTS));
    let paced = trial.time_foreseen().unwrap_or_default();
    let pauses = trial.thinktime.map_or(Duration::ZERO, |each| {
        let workers = u64::from(trial.threads.max(1)).saturating_mul(ranks.max(1));
        let by_worker = requests.div_ceil(workers);
        each.saturating_mul(u32::try_from(by_worker).unwrap_or(u32::MAX))
    });
    busy.max(paced).saturating_add(pauses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::settings;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Time limits of a trial of 10 s that reads 200 GB directly, with other settings.
    fn of(sets: &str, ranks: usize) -> Timeouts {
        let trial = settings(&format!("region=200000000000 time=10s {sets}"));
        Timeouts::of(&trial, ranks)
    }

    #[test]
    fn bounded_trials_take_as_long_as_slow_storage() {
        for (sets, ranks, wanted) in [
            ("", 4, 70),
            ("time=none bs=1M bytes=1G", 1, 60 + 256),
            // Small requests count by their number.
            ("time=none bytes=1G", 1, 60 + (1 << 18) / 25),
            ("time=none rate=100000 bytes=400000k", 1, 60 + 4000),
            ("time=none rate=1 bytes=4000k", 1, 60 + 1000),
            // 100 requests of each of 10 workers.
            ("time=none thinktime=3s threads=5 bytes=4000k", 2, 400),
        ] {
            assert_eq!(of(sets, ranks).carrying, seconds(wanted), "{sets}");
        }
        assert_eq!(of("", 4).settling, ANSWER);
    }

    #[test]
    fn dirty_pages_are_waited_for() {
        let writes = "region=50000000000 read_percent=0 sync=none";
        let timeouts = of(&format!("{writes} cache=cold"), 4);
        // At 150 MB/s; within the span too, because a writer waits if too many pages are dirty.
        let disk = seconds(50_000 / 150);
        assert!(timeouts.settling > disk, "{timeouts:?}");
        assert!(timeouts.carrying > seconds(10) + disk, "{timeouts:?}");
        assert_eq!(of(writes, 4), timeouts);
    }

    #[test]
    fn reading_back_and_filling_again_are_waited_for() {
        let disk = seconds(200_000 / 150);
        assert!(of("read_percent=0 verify=true", 2).settling > disk);
        // Each rank fills all of it.
        let trimmed = |ranks| of("read_percent=0 trim_percent=100", ranks).settling;
        assert!(trimmed(1) > disk && trimmed(4) > disk * 4);
    }
}
