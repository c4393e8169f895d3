//! Why a time that was measured may say nothing of the storage.

use std::borrow::Cow;

use iolab_record::environment::{Environment, KEYS};
use iolab_record::{Cell, RunRecord, Sample, ServedBy, Verdict};
use iolab_stats::median;

/// A sync whose median takes at most this many times that of the write before it may do nothing at all.
const SYNC_OVER_WRITE: f64 = 1.0;

/// A cell with its measured trials and the environment that holds for it.
type Measured<'a> = (&'a Cell, Vec<&'a Sample>, Cow<'a, Environment>);

/// Why the times of a cell cannot answer for the storage, each reason once; none where they can.
pub fn doubts<'a>(
    cell: &'a Cell,
    samples: impl Iterator<Item = &'a Sample>,
    environment: &'a Environment,
) -> Vec<String> {
    of_cells(&[(cell, samples.collect(), Cow::Borrowed(environment))])
}

/// Why the times of any cell of a run cannot answer for the storage, each reason once.
pub fn doubts_of_run(record: &RunRecord) -> Vec<String> {
    let measured = record.measured();
    let cells = measured.map(|(cell, samples)| (cell, samples, record.environment_of(cell)));
    of_cells(&cells.collect::<Vec<_>>())
}

fn of_cells(cells: &[Measured<'_>]) -> Vec<String> {
    let mut doubts: Vec<String> = Vec::new();
    let unsynced = cells.iter().filter_map(|(cell, ..)| unsynced(cell));
    let served = served_elsewhere(cells).into_iter();
    let answered = cells.iter().filter_map(answered_elsewhere);
    for doubt in unsynced
        .chain(served)
        .chain(answered)
        .chain(no_flush(cells))
    {
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    doubts
}

fn unsynced(cell: &Cell) -> Option<String> {
    let trial = cell.trial();
    let unsynced = trial.writes() && !trial.sync.is_per_write();
    unsynced.then(|| {
        format!(
            "nothing makes the writes durable (sync={}): they may stay in a cache",
            trial.sync
        )
    })
}

/// What the verdicts on where the bytes went leave open, a sentence for each kind of verdict.
fn served_elsewhere(cells: &[Measured<'_>]) -> Vec<String> {
    let all: usize = cells.iter().map(|(_, samples, _)| samples.len()).sum();
    let mut kinds: Vec<Vec<&Verdict>> = Vec::new();
    for (cell, samples, _) in cells {
        let open = samples.iter().map(|sample| &sample.verdict);
        for verdict in open.filter(|verdict| is_open(cell, verdict)) {
            let same = |kind: &&mut Vec<&Verdict>| kind[0].served_by == verdict.served_by;
            match kinds.iter_mut().find(same) {
                Some(kind) => kind.push(verdict),
                None => kinds.push(vec![verdict]),
            }
        }
    }
    let sentence = |kind: &Vec<&Verdict>| {
        let (first, n) = (kind[0], kind.len());
        let is_one = kind.iter().all(|verdict| verdict.reason == first.reason);
        let trials = match n == all && is_one {
            true => String::new(),
            false => format!(" in {n} of {all} trials"),
        };
        let which = if is_one { ":" } else { "; the first:" };
        format!(
            "served by {}{trials}{which} {}",
            first.served_by, first.reason
        )
    };
    kinds.iter().map(sentence).collect()
}

/// Whether a trial's bytes may not have been carried by the storage.
fn is_open(cell: &Cell, verdict: &Verdict) -> bool {
    let trial = cell.trial();
    match verdict.served_by {
        ServedBy::Device | ServedBy::Model => false,
        ServedBy::NotStorage | ServedBy::PageCache | ServedBy::Hole => true,
        // What a log has written may be in the page cache and on the device.
        ServedBy::Mixed => trial.reads() || !trial.sync.follows_writes(),
        ServedBy::Unknown => trial.reads() && !verdict.reason.contains(Verdict::ELSEWHERE),
    }
}

/// Whether a sync does anything is not seen where no device is: then it must at least take time.
fn answered_elsewhere((cell, samples, _): &Measured<'_>) -> Option<String> {
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
        let (writes, syncs) = (
            sample.operations.write.latency?,
            sample.operations.sync.latency?,
        );
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
fn no_flush(cells: &[Measured<'_>]) -> Option<String> {
    let never = cells.iter().filter(|(cell, samples, environment)| {
        let cache = environment.get(&KEYS.device_write_cache);
        let mut flushes = samples.iter().map(|sample| {
            let counters = &sample.counters;
            let bottom = counters.bottom.map(|bottom| bottom.stat);
            bottom.or(counters.device).map(|stat| stat.flush_ios)
        });
        cell.trial().sync.follows_writes()
            && cache.is_some_and(|cache| cache == "write back")
            && flushes.all(|flushes| flushes == Some(0))
    });
    let syncs = never
        .flat_map(|(_, samples, _)| samples)
        .fold(0_u64, |sum, sample| {
            sum.saturating_add(sample.operations.sync.requests)
        });
    (syncs > 0).then(|| {
        format!("the device has a volatile write cache, and none of {syncs} syncs flushed it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_record::{Counters, LatencySummary, OperationSummary, PerOperation};
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
        let done = |us: f64| OperationSummary {
            requests: 100,
            latency: Some(LatencySummary {
                p50_ns: (us * 1e3) as u64,
                ..LatencySummary::default()
            }),
            ..OperationSummary::default()
        };
        Sample {
            operations: PerOperation {
                write: done(write_us + sync_us),
                sync: done(sync_us),
                ..PerOperation::default()
            },
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
    fn a_kind_of_verdict_is_one_doubt_whatever_its_numbers() {
        let reads = cell(&[]);
        let mixed = |share: &str| sample(ServedBy::Mixed, share, 0.0, 0.0);
        let samples = [
            mixed("17 %"),
            mixed("42 %"),
            sample(ServedBy::Device, "", 0.0, 0.0),
        ];
        let found = doubts(&reads, samples.iter(), &Environment::default());
        assert_eq!(found, ["served by mixed in 2 of 3 trials; the first: 17 %"]);
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
