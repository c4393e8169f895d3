//! Limits of a machine: of its control groups, and sizes at which it changes its behaviour.

use schemars::JsonSchema;
use serde::Serialize;

use crate::disturbance::{Accounting, BEYOND_OURS, Surroundings};
use iolab_record::environment::{Cache, Environment, Holds, KEYS};
use iolab_record::{Cell, RunRecord, Sample};
use iolab_workload::counters::{DeviceStat, Traffic};
use iolab_workload::trial::{CacheState, TrialSpec};

/// Share of a limit of control groups from which it determines a trial's rate. Below 1, because limits count in
/// steps of time, and some requests lie outside the timed span.
const LIMIT_REACHED: f64 = 0.7;

/// A limit of control groups that the trials reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReachedLimit {
    /// The limited kind of traffic.
    pub what: Traffic,
    /// The limit per second.
    pub per_second: u64,
}

/// The limit of control groups that the successful trials of a cell reached.
pub(crate) fn reached_limit(
    record: &RunRecord,
    cell: &Cell,
    trials: &[&Sample],
) -> Option<ReachedLimit> {
    let ok: Vec<&Sample> = trials.iter().copied().filter(|s| s.ok).collect();
    if ok.is_empty() || cell.spec.runs_program() {
        return None;
    }
    limit(cell, &ok, &record.environment_of(cell))
}

/// The limit of control groups to which the trials of a cell came closest; `None` if they did not reach it.
pub(crate) fn limit(
    cell: &Cell,
    samples: &[&Sample],
    environment: &Environment,
) -> Option<ReachedLimit> {
    let accounting = Accounting::of(cell, Surroundings::of(environment));
    let seconds = samples.iter().map(|sample| sample.elapsed_ns as f64 / 1e9);
    let elapsed: f64 = seconds.sum();
    let reached = |what: Traffic| {
        let per_second = environment.get(KEYS.device_limit(what))?;
        let used = samples.iter();
        let used = used.map(|sample| traffic(what, cell, sample, &accounting));
        let share = used.sum::<Option<f64>>()? / elapsed / per_second as f64;
        (share >= LIMIT_REACHED).then_some((share, ReachedLimit { what, per_second }))
    };
    let all = Traffic::ALL.iter().filter_map(|what| reached(*what));
    let most = all.max_by(|(a, _), (b, _)| a.total_cmp(b));
    most.map(|(_, limit)| limit)
}

/// iolab's part of a kind of traffic with the device in a trial, per second. Uses the counters of the device if
/// nothing else used it, otherwise what certainly reached it; `None` if neither is known.
fn traffic(what: Traffic, cell: &Cell, sample: &Sample, accounting: &Accounting) -> Option<f64> {
    let own = |counted: fn(&DeviceStat) -> u64| {
        let device = sample.counters.device.as_ref()?;
        let others = accounting.share_of_others(sample);
        let is_shared = others.is_some_and(|share| share > BEYOND_OURS);
        (!is_shared).then(|| counted(device) as f64)
    };
    let is_direct = |trial: &TrialSpec| trial.cache == CacheState::Direct;
    // A write with its own sync reaches the device as a write too.
    let reaches =
        |trial: &TrialSpec| is_direct(trial) || trial.sync.is_per_write() && trial.sync_every == 1;
    let is_known = cell.spec.unknown.is_empty();
    let reads_directly = is_known && cell.spec.reading_trials().into_iter().all(is_direct);
    let writes_through = is_known && cell.spec.writing_trials().into_iter().all(reaches);
    let (reads, writes) = (&sample.operations.read, &sample.operations.write);
    let (counted, asked, reaches): (fn(&DeviceStat) -> u64, u64, bool) = match what {
        Traffic::ReadBytes => (|stat| stat.read_bytes, reads.bytes, reads_directly),
        Traffic::WriteBytes => (|stat| stat.write_bytes, writes.bytes, writes_through),
        Traffic::Reads => {
            let counted = |stat: &DeviceStat| stat.read_ios.saturating_add(stat.read_merges);
            (counted, reads.requests, reads_directly)
        }
        // A flush counts as a write of no bytes.
        Traffic::Writes => {
            let counted = |stat: &DeviceStat| {
                let merged = stat.write_ios.saturating_add(stat.write_merges);
                merged.saturating_add(stat.flush_ios)
            };
            (counted, writes.requests, writes_through)
        }
    };
    own(counted).or(reaches.then_some(asked as f64))
}

/// A size at which a machine changes its behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineThreshold {
    /// Name of the threshold in sentences: `L2 cache`.
    pub name: &'static str,
    /// Size of the cache or memory, bytes.
    pub bytes: u64,
}

/// The thresholds in an environment, in ascending order of bytes.
pub fn machine_thresholds(environment: &Environment) -> Vec<MachineThreshold> {
    let cache = |level, holds| KEYS.cache_bytes.of(Cache { level, holds });
    let known = [
        (&KEYS.cache_line_bytes, "cache line"),
        (&cache(1, Holds::Data), "L1d cache"),
        (&cache(2, Holds::Both), "L2 cache"),
        (&cache(3, Holds::Both), "L3 cache"),
        (&KEYS.page_bytes, "page"),
        (&KEYS.huge_page_bytes, "huge page"),
        (&KEYS.tlb_l1d_reach_bytes, "reach of the L1 data TLB"),
        (&KEYS.tlb_l2_reach_bytes, "reach of the L2 TLB"),
        (&KEYS.memory_bytes, "memory"),
    ];
    let size = |key| environment.get(key).filter(|bytes| *bytes > 0);
    let sizes = known.into_iter().filter_map(|(key, name)| {
        let bytes = size(key)?;
        Some(MachineThreshold { name, bytes })
    });
    let mut found: Vec<MachineThreshold> = sizes.collect();
    found.sort_by_key(|threshold| threshold.bytes);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn known_thresholds_are_named_in_order_of_size() {
        let environment = environment(&[
            ("cpu_model", "x"),
            ("page_bytes", "4096"),
            ("cache_l3_bytes", "33554432"),
            ("cache_line_bytes", "64"),
        ]);
        let names: Vec<_> = machine_thresholds(&environment)
            .iter()
            .map(|t| (t.name, t.bytes))
            .collect();
        assert_eq!(
            names,
            [("cache line", 64), ("page", 4096), ("L3 cache", 32 << 20)]
        );
    }
}
