//! Why a time that was measured may say nothing of the storage.

use iolab_record::environment::{Environment, KEYS};
use iolab_record::{Cell, RunRecord, Sample, ServedBy, Verdict};
use iolab_stats::median;

/// A sync whose median takes at most this many times that of the write before it may do nothing at all.
const SYNC_OVER_WRITE: f64 = 1.0;

/// Why the times of a cell cannot answer for the storage, each reason once; none where they can.
pub fn doubts<'a>(
    cell: &Cell,
    samples: impl Iterator<Item = &'a Sample>,
    environment: &Environment,
) -> Vec<String> {
    let samples: Vec<&Sample> = samples.collect();
    let mut doubts: Vec<String> = Vec::new();
    let mut add = |doubt: Option<String>| {
        if let Some(doubt) = doubt.filter(|doubt| !doubts.contains(doubt)) {
            doubts.push(doubt);
        }
    };
    let trial = cell.trial();
    let unsynced = trial.writes() && !trial.sync.is_per_write();
    add(unsynced.then(|| {
        format!(
            "nothing makes the writes durable (sync={}): they may stay in a cache",
            trial.sync
        )
    }));
    for sample in &samples {
        add(served(cell, sample));
    }
    add(answered_elsewhere(cell, &samples));
    add(no_flush(cell, &samples, environment));
    doubts
}

/// Why the times of any cell of a run cannot answer for the storage, each reason once.
pub fn doubts_of_run(record: &RunRecord) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (cell, samples) in record.measured() {
        for doubt in doubts(cell, samples.into_iter(), &record.environment_of(cell)) {
            if !all.contains(&doubt) {
                all.push(doubt);
            }
        }
    }
    all
}

/// What the verdict on where the bytes went leaves open.
fn served(cell: &Cell, sample: &Sample) -> Option<String> {
    let verdict = &sample.verdict;
    let trial = cell.trial();
    let told = || {
        Some(format!(
            "served by {}: {}",
            verdict.served_by, verdict.reason
        ))
    };
    match verdict.served_by {
        ServedBy::Device | ServedBy::Model => None,
        ServedBy::NotStorage | ServedBy::PageCache | ServedBy::Hole => told(),
        // What a log has written may be in the page cache and on the device.
        ServedBy::Mixed if !trial.reads() && trial.sync.follows_writes() => None,
        ServedBy::Mixed => told(),
        ServedBy::Unknown if trial.reads() && verdict.reason == Verdict::ELSEWHERE => None,
        ServedBy::Unknown if trial.reads() => told(),
        ServedBy::Unknown => None,
    }
}

/// Whether a sync does anything is not seen where no device is: then it must at least take time.
fn answered_elsewhere(cell: &Cell, samples: &[&Sample]) -> Option<String> {
    let unseen = |sample: &&&Sample| sample.verdict.served_by == ServedBy::Unknown;
    let reason = &samples.iter().find(unseen)?.verdict.reason;
    let trial = cell.trial();
    if trial.reads() {
        return None;
    }
    if trial.sync.is_in_write() {
        return Some(format!(
            "no device is seen, and nothing shows that sync={} is honoured: {reason}",
            trial.sync
        ));
    }
    let share = |sample: &&Sample| {
        let (writes, syncs) = (sample.writes.latency?, sample.sync_latency?);
        // The median write holds a sync where every write has one.
        let alone = match trial.sync_every {
            1 => writes.p50_ns.saturating_sub(syncs.p50_ns),
            _ => writes.p50_ns,
        };
        Some(syncs.p50_ns as f64 / alone.max(1) as f64)
    };
    let shares: Vec<f64> = samples.iter().filter_map(share).collect();
    (median(&shares)? <= SYNC_OVER_WRITE).then(|| {
        format!(
            "a sync takes no longer than a write, and nothing shows that it makes anything durable: {reason}"
        )
    })
}

/// A volatile cache that was never flushed holds what was written.
fn no_flush(cell: &Cell, samples: &[&Sample], environment: &Environment) -> Option<String> {
    let syncs: u64 = samples.iter().map(|sample| sample.syncs).sum();
    let is_volatile = environment
        .get(&KEYS.device_write_cache)
        .is_some_and(|cache| cache == "write back");
    if !cell.trial().sync.follows_writes() || syncs == 0 || !is_volatile {
        return None;
    }
    let flushes = samples.iter().map(|sample| {
        let counters = &sample.counters;
        let bottom = counters.bottom.map(|bottom| bottom.stat);
        bottom.or(counters.device).map(|stat| stat.flush_ios)
    });
    let flushed: u64 = flushes.collect::<Option<Vec<u64>>>()?.into_iter().sum();
    (flushed == 0).then(|| {
        format!("the device has a volatile write cache, and none of {syncs} syncs flushed it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_record::{Counters, Direction, LatencySummary};
    use iolab_spec::counters::DeviceStat;
    use iolab_spec::settings::{CellSpec, Setting};

    fn cell(sets: &[(&str, &str)]) -> Cell {
        let mut spec = CellSpec::default();
        for (name, value) in sets {
            let setting = Setting::find(name).expect("a setting");
            setting.set(&mut spec, value).expect("a value");
        }
        Cell {
            spec,
            ..Cell::default()
        }
    }

    fn sample(served_by: ServedBy, reason: &str, write_us: f64, sync_us: f64) -> Sample {
        let times = |us: f64| LatencySummary {
            p50_ns: (us * 1e3) as u64,
            ..LatencySummary::default()
        };
        Sample {
            writes: Direction {
                requests: 100,
                latency: Some(times(write_us + sync_us)),
                ..Direction::default()
            },
            syncs: 100,
            sync_latency: Some(times(sync_us)),
            verdict: Verdict {
                served_by,
                device_fraction: None,
                reason: reason.to_owned(),
            },
            ..Sample::default()
        }
    }

    fn of(cell: &Cell, sample: Sample, environment: &Environment) -> Vec<String> {
        doubts(cell, [sample.clone(), sample].iter(), environment)
    }

    #[test]
    fn what_did_not_reach_storage_answers_for_nothing() {
        let log = cell(&[("read_percent", "0"), ("sync", "fdatasync")]);
        let nothing = Environment::default();
        for served_by in [ServedBy::NotStorage, ServedBy::PageCache, ServedBy::Hole] {
            let found = of(&log, sample(served_by, "because", 5.0, 200.0), &nothing);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("because"));
        }
        let found = of(&log, sample(ServedBy::Device, "", 5.0, 200.0), &nothing);
        assert!(found.is_empty(), "{found:?}");
        for sync in ["none", "end"] {
            let never = cell(&[("read_percent", "0"), ("sync", sync)]);
            let found = of(&never, sample(ServedBy::Device, "", 5.0, 0.0), &nothing);
            assert!(found[0].contains("durable"), "{found:?}");
        }
        let reads = cell(&[]);
        assert!(of(&reads, sample(ServedBy::Device, "", 0.0, 0.0), &nothing).is_empty());
        assert_eq!(
            of(&reads, sample(ServedBy::Mixed, "x", 0.0, 0.0), &nothing).len(),
            1
        );
    }

    #[test]
    fn where_no_device_is_seen_a_sync_has_to_take_time() {
        let nothing = Environment::default();
        let unknown = |write, sync| sample(ServedBy::Unknown, Verdict::ELSEWHERE, write, sync);
        let log = cell(&[("read_percent", "0"), ("sync", "fdatasync")]);
        assert!(of(&log, unknown(40.0, 8000.0), &nothing).is_empty());
        let found = of(&log, unknown(40.0, 30.0), &nothing);
        assert!(found[0].contains("no longer than a write"), "{found:?}");
        let flagged = cell(&[("read_percent", "0"), ("sync", "odsync")]);
        let found = of(&flagged, unknown(8000.0, 0.0), &nothing);
        assert!(found[0].contains("sync=odsync"), "{found:?}");
    }

    #[test]
    fn a_volatile_cache_has_to_be_flushed() {
        let mut environment = Environment::default();
        environment.put(&KEYS.device_write_cache, Some("write back".to_owned()));
        let log = cell(&[("read_percent", "0"), ("sync", "fdatasync")]);
        let with = |flush_ios| Sample {
            counters: Counters {
                device: Some(DeviceStat {
                    flush_ios,
                    ..DeviceStat::default()
                }),
                ..Counters::default()
            },
            ..sample(ServedBy::Device, "", 5.0, 200.0)
        };
        assert!(of(&log, with(100), &environment).is_empty());
        let found = of(&log, with(0), &environment);
        assert!(found[0].contains("none of 200 syncs"), "{found:?}");
        assert!(of(&log, with(0), &Environment::default()).is_empty());
    }
}
