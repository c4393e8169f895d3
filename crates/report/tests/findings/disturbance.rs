//! Disturbances around the trials: each with its flags and sentences, and where it is too small to count.

use iolab_analysis::analysis::{CellAnalysis, analyse};
use iolab_record::environment::KEYS;
use iolab_record::{Bottom, Extents, Region, Residency, RunRecord, Sample, ServedBy, TargetKind};
use iolab_report::findings::Finding;
use iolab_workload::counters::{DeviceStat, ProcessIo, Traffic};
use iolab_workload::trial::CacheState;

use proptest::prelude::*;

use crate::{all_findings, doubts, named};
use iolab_synthetic::{add_cell, around, record};

fn text(findings: &[Finding]) -> String {
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    texts.join("\n")
}

/// One cell of eight trials, each changed by `change`; the warm-up is number 0.
fn one_cell(change: impl Fn(usize, &mut Sample)) -> RunRecord {
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &around(100.0));
    for (i, sample) in record.samples.iter_mut().enumerate() {
        change(i, sample);
    }
    record
}

fn only_cell(record: &RunRecord) -> CellAnalysis {
    analyse(record).cells.remove(0)
}

/// Turns a cell's reads into buffered writes of which a part is still dirty.
fn buffered_writes(record: &mut RunRecord, sync: &str, still_dirty: f64) {
    record.cells[0].spec.trial.read_percent = 0;
    record.cells[0].spec.trial.cache = CacheState::Cold;
    record.cells[0].spec.trial.sync = sync.parse().expect("a value");
    for sample in &mut record.samples {
        sample.operations.write = std::mem::take(&mut sample.operations.read);
        let bytes = sample.operations.write.bytes;
        let io = sample.counters.process_io.as_mut().expect("there");
        (io.read_bytes, io.write_bytes) = (0, bytes);
        let device = sample.counters.device.as_mut().expect("there");
        (device.read_bytes, device.write_bytes) = (0, bytes);
        let seen = |dirty: f64| {
            Some(Residency {
                looked_bytes: bytes,
                resident_bytes: bytes,
                dirty_bytes: Some((bytes as f64 * dirty) as u64),
                writeback_bytes: Some(0),
            })
        };
        sample.region = Region {
            before: seen(0.0),
            after: seen(still_dirty),
            ..Region::default()
        };
    }
}

/// A disturbance of a run, and the change that makes it of a quiet one.
type Row = (&'static str, fn(&mut RunRecord));

const ROWS: [Row; 37] = [
    ("others write 40 % in half of the trials", |r| {
        each(r, |i, s| {
            device(s).write_bytes += part(s, if (1..5).contains(&i) { 0.4 } else { 0.0 })
        });
    }),
    ("others write 4 %", |r| {
        each(r, |_, s| device(s).write_bytes += part(s, 0.04))
    }),
    ("another partition is written as much", |r| {
        below(r, true, 1.0)
    }),
    ("a mirror writes as much", |r| below(r, false, 1.0)),
    ("below a mirror, a hundred times as much", |r| {
        below(r, false, 100.0)
    }),
    ("ext4 writes ten times as much", |r| {
        overhead(r, "ext4", "data=ordered", 0.0)
    }),
    ("ext4 with a journal of data", |r| {
        overhead(r, "ext4", "data=journal", 0.0)
    }),
    ("btrfs writes ten times as much", |r| {
        overhead(r, "btrfs", "rw", 0.0)
    }),
    ("btrfs reads although it is told to write", |r| {
        overhead(r, "btrfs", "rw", 1.0)
    }),
    ("whole folios beside 30 % of others", |r| folios(r, 0.3)),
    ("whole folios alone", |r| folios(r, 0.0)),
    ("a journal of syncs", |r| journal(r, "each", 1000)),
    ("a journal of O_SYNC", |r| journal(r, "osync", 0)),
    ("four times as much is fetched", |r| {
        fetched(r, CacheState::Cold, 4.0)
    }),
    ("4 % more is fetched", |r| {
        fetched(r, CacheState::Cold, 1.04)
    }),
    ("half of it is fetched", |r| {
        fetched(r, CacheState::Cold, 0.5)
    }),
    ("direct reads fetch more", |r| {
        fetched(r, CacheState::Direct, 4.0)
    }),
    ("holes in one and in many pieces", |r| {
        each(r, |i, s| {
            s.verdict.served_by = ServedBy::Hole;
            device(s).read_ios /= if i % 2 == 0 { 1000 } else { 30 };
        });
    }),
    ("two pieces in all trials", |r| {
        each(r, |i, s| {
            device(s).read_ios = device(s).read_ios * (200 + i as u64) / 100
        });
    }),
    ("twice the time owed to the page cache", |r| {
        owed(r, CacheState::Cold, 2.0)
    }),
    ("1 % owed to the page cache", |r| {
        owed(r, CacheState::Cold, 0.01)
    }),
    ("twice the time owed to the drive", |r| {
        owed(r, CacheState::Direct, 2.0)
    }),
    ("20 % owed to the drive", |r| {
        owed(r, CacheState::Direct, 0.2)
    }),
    // It stores its trees then, and a sync waits for the trees of other programs too.
    ("twice the time owed to btrfs", |r| {
        owed(r, CacheState::Direct, 2.0);
        r.environment.put(&KEYS.file_system, "btrfs".to_owned());
    }),
    ("twice the time owed beside others", |r| {
        owed(r, CacheState::Direct, 2.0);
        each(r, |_, s| device(s).write_bytes += part(s, 1.0));
    }),
    ("tasks wait for CPUs 40 % of the time", |r| {
        waits(r, 0.4, 0.0)
    }),
    ("tasks wait for CPUs all of the time", |r| {
        waits(r, 1.02, 0.0)
    }),
    ("the host takes 8 % of the CPUs", |r| waits(r, 0.0, 0.08)),
    ("tasks wait 10 %, the host takes 1 %", |r| {
        waits(r, 0.1, 0.01)
    }),
    ("a quota takes 12 %", |r| throttled(r, 0.12)),
    ("a quota takes 0.5 %", |r| throttled(r, 0.005)),
    ("95 % of a limit of the control group", |r| limited(r, 0.95)),
    ("half of a limit of the control group", |r| limited(r, 0.5)),
    ("preempted 5000 times per second", |r| {
        preempted(r, 5_000, None)
    }),
    ("preempted, and no task waits", |r| {
        preempted(r, 5_000, Some(0))
    }),
    ("never preempted", |r| preempted(r, 0, None)),
    ("suspended for 3 s", |r| {
        each(r, |i, s| {
            s.counters.pressure.suspended_ns = Some(if i == 2 { 3_000_000_000 } else { 90 })
        });
    }),
];

fn each(record: &mut RunRecord, mut change: impl FnMut(usize, &mut Sample)) {
    let samples = record.samples.iter_mut().enumerate();
    samples.for_each(|(number, sample)| change(number, sample));
}

fn device(sample: &mut Sample) -> &mut DeviceStat {
    sample.counters.device.as_mut().expect("there")
}

fn process(sample: &mut Sample) -> &mut ProcessIo {
    sample.counters.process_io.as_mut().expect("there")
}

/// A share of the bytes of a trial.
fn part(sample: &Sample, share: f64) -> u64 {
    (sample.bytes() as f64 * share) as u64
}

/// A share of the time of a trial, ns.
fn time(sample: &Sample, share: f64) -> Option<u64> {
    Some((sample.elapsed_ns as f64 * share) as u64)
}

/// Disks below the device write `factor` times what it reads.
fn below(record: &mut RunRecord, passes_on: bool, factor: f64) {
    each(record, |_, sample| {
        sample.counters.bottom = sample.counters.device.map(|device| Bottom {
            stat: DeviceStat {
                write_bytes: (device.read_bytes as f64 * factor) as u64,
                ..device
            },
            in_file: false,
            passes_on,
        });
    });
}

/// Durable writes for which the device carries eleven times as much, and reads.
fn overhead(record: &mut RunRecord, file_system: &str, options: &str, reads: f64) {
    buffered_writes(record, "each", 0.0);
    each(record, |_, sample| {
        device(sample).write_bytes += part(sample, 10.0);
        device(sample).read_bytes += part(sample, reads);
    });
    let environment = &mut record.environment;
    environment.put(&KEYS.file_system, file_system.to_owned());
    environment.put(&KEYS.mount_options, options.to_owned());
}

/// An account that counts each folio of the page cache as a whole: its bytes beyond the requests must not hide
/// others' traffic.
fn folios(record: &mut RunRecord, others: f64) {
    buffered_writes(record, "end", 0.0);
    each(record, |_, sample| {
        process(sample).write_bytes = part(sample, 14.0);
        device(sample).write_bytes += part(sample, others);
    });
}

fn journal(record: &mut RunRecord, sync: &str, syncs: u64) {
    buffered_writes(record, sync, 0.0);
    each(record, |_, sample| {
        sample.operations.sync.requests = syncs;
        device(sample).write_bytes += 12_000 * 1000;
    });
}

fn fetched(record: &mut RunRecord, cache: CacheState, ratio: f64) {
    record.cells[0].spec.trial.cache = cache;
    each(record, |_, sample| {
        process(sample).read_bytes = part(sample, ratio);
        device(sample).read_bytes = part(sample, ratio);
    });
}

/// Writes whose later sync takes this share of their time.
fn owed(record: &mut RunRecord, cache: CacheState, share: f64) {
    record.cells[0].spec.trial.read_percent = 0;
    record.cells[0].spec.trial.cache = cache;
    each(record, |_, sample| {
        sample.region.owed_sync_ns = time(sample, share)
    });
}

/// Tasks that wait for CPUs, and the share of two CPUs that the host takes.
fn waits(record: &mut RunRecord, stall: f64, steal: f64) {
    each(record, |_, sample| {
        sample.counters.pressure.cpu_stall_ns = time(sample, stall);
        sample.counters.pressure.steal_ns = time(sample, 2.0 * steal);
    });
}

fn throttled(record: &mut RunRecord, share: f64) {
    each(record, |_, sample| {
        sample.counters.pressure.throttled_ns = time(sample, 2.0 * share)
    });
}

fn limited(record: &mut RunRecord, share: f64) {
    let sample = &record.samples[1];
    let per_second = sample.bytes() as f64 / (sample.elapsed_ns as f64 / 1e9);
    let key = KEYS.device_limit(Traffic::ReadBytes);
    record.environment.put(key, (per_second / share) as u64);
}

fn preempted(record: &mut RunRecord, per_second: u64, stall: Option<u64>) {
    each(record, |_, sample| {
        let times = sample.elapsed_ns * per_second / 1_000_000_000;
        sample.counters.usage.involuntary_switches = times;
        sample.counters.pressure.cpu_stall_ns = stall;
    });
}

#[test]
fn each_disturbance_has_its_flags_and_sentence() {
    let mut flags = Vec::new();
    let told = ROWS.map(|(what, change)| {
        let mut record = one_cell(|_, _| {});
        change(&mut record);
        let analysis = analyse(&record);
        let cell = &analysis.cells[0];
        let noted = [doubts(&analysis), named("requests-in-pieces", &analysis)].concat();
        let share = |name: &str, share: Option<f64>| {
            let share = share.filter(|share| *share > 0.0);
            share.map_or_else(String::new, |share| format!(", {name} {share:.2}"))
        };
        let others = share("others", cell.disturbance.others);
        let ahead = share("read ahead", cell.disturbance.read_ahead);
        let is_first = !flags.contains(&(cell.flags.clone(), noted.is_empty()));
        flags.push((cell.flags.clone(), noted.is_empty()));
        let sentence = if is_first {
            text(&noted)
        } else {
            String::new()
        };
        let flags = &cell.flags;
        format!("{what}: {flags:?}{others}{ahead}\n{sentence}")
            .trim_end()
            .to_owned()
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn own_write_back_is_not_traffic_of_others() {
    let mut record = one_cell(|_, _| {});
    buffered_writes(&mut record, "none", 0.0);
    assert_eq!(only_cell(&record).disturbance.others, Some(0.0));
    // Half of our bytes are still dirty, and the device carried as much as all of them.
    buffered_writes(&mut record, "none", 0.0);
    let mut record = one_cell(|_, _| {});
    buffered_writes(&mut record, "none", 0.5);
    let others = only_cell(&record).disturbance.others.expect("known");
    assert!((others - 0.5).abs() < 1e-3, "{others}");
    // If the amount of dirty bytes is unknown, nothing is claimed.
    for sample in &mut record.samples {
        sample.region.after = None;
    }
    assert_eq!(only_cell(&record).disturbance.others, None);
}

#[test]
fn writes_without_durability_are_reported() {
    let with = |read_percent: u8, sync: &str, owed: u64| {
        let mut record = one_cell(|_, sample| {
            sample.region.owed_sync_ns = Some(sample.elapsed_ns * owed);
        });
        record.cells[0].spec.trial.read_percent = read_percent;
        record.cells[0].spec.trial.cache = CacheState::Cold;
        record.cells[0].spec.trial.sync = sync.parse().expect("a value");
        text(&named("not-durable", &analyse(&record)))
    };
    insta::assert_snapshot!(with(0, "none", 0), @"The only cell wrote without a sync (sync=none): a power failure may lose writes that are still in a cache. --set sync=end makes them durable, and includes that time.");
    assert_eq!(with(70, "none", 0), with(0, "none", 0));
    let mut imported = one_cell(|_, _| {});
    imported.cells[0].spec.trial.read_percent = 0;
    imported.run.target_kind = TargetKind::Imported;
    insta::assert_snapshot!(text(&named("not-durable", &analyse(&imported))), @"The only cell wrote without a sync (sync=none): a power failure may lose writes that are still in a cache. A sync at the end of each job makes them durable, and includes that time.");
    for (read_percent, sync, owed) in [(100, "none", 0), (0, "end", 0), (0, "none", 2)] {
        assert_eq!(with(read_percent, sync, owed), "");
    }
}

proptest! {
    #[test]
    fn any_counts_give_finite_sentences(
        numbers in proptest::collection::vec(0..u64::MAX >> 1, 12), cache in 0..3usize, write: bool,
    ) {
        let mut record = one_cell(|i, sample| {
            let n = |k: usize| numbers[(i + k) % numbers.len()];
            let device = sample.counters.device.as_mut().expect("there");
            (device.read_ios, device.read_bytes, device.write_bytes) = (n(0), n(1), n(2));
            sample.counters.process_io.as_mut().expect("there").write_bytes = n(3);
            let pressure = &mut sample.counters.pressure;
            (pressure.cpu_stall_ns, pressure.steal_ns) = (Some(n(4)), Some(n(5)));
            pressure.suspended_ns = Some(n(6) >> 8);
            sample.elapsed_ns = n(7) % 5_000;
            sample.region.owed_sync_ns = Some(n(8));
            sample.region.extents = Some(Extents { looked_bytes: n(9), hole_bytes: n(10), unwritten_bytes: Some(n(11)) });
            if write {
                sample.operations.write = std::mem::take(&mut sample.operations.read);
            }
        });
        record.cells[0].spec.trial.cache = [CacheState::Direct, CacheState::Cold, CacheState::Hot][cache];
        for finding in all_findings(&analyse(&record)) {
            prop_assert!(!finding.text.contains("NaN"), "{}", finding.text);
        }
    }
}
