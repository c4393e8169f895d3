//! Disturbances around the trials: each rule once with a finding and once without.

use iolab_analysis::analysis::{CellAnalysis, DoubtKind, WriteOut, analyse};
use iolab_record::environment::KEYS;
use iolab_record::{
    Bottom, EndedBy, Extents, Region, Residency, RunRecord, Sample, ServedBy, TargetKind,
};
use iolab_report::findings::{Finding, doubts, not_durable, requests_in_pieces, written_out};
use iolab_workload::counters::{DeviceStat, Traffic};
use iolab_workload::trial::CacheState;

use proptest::prelude::*;

use crate::all_findings;
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

#[test]
fn a_cell_without_levels_is_not_named() {
    let mut record = record("read-size", &[]);
    add_cell(&mut record, &["bs=4KiB"], &around(100.0));
    for sample in &mut record.samples {
        sample.counters.device.as_mut().expect("there").read_bytes *= 3;
        sample.counters.pressure.cpu_stall_ns = Some(sample.elapsed_ns);
    }
    let analysis = analyse(&record);
    let told = text(&doubts(&analysis));
    insta::assert_snapshot!(told);
}

#[test]
fn quiet_trials_raise_nothing() {
    let record = one_cell(|_, sample| {
        let pressure = &mut sample.counters.pressure;
        pressure.steal_ns = Some(0);
        pressure.cpu_stall_ns = Some(sample.elapsed_ns / 50);
        pressure.suspended_ns = Some(120);
        sample.counters.bottom = sample.counters.device.map(|stat| Bottom {
            stat,
            in_file: false,
            passes_on: true,
        });
    });
    let cell = only_cell(&record);
    assert_eq!(cell.flags, []);
    assert_eq!(cell.disturbance.others, Some(0.0));
    assert_eq!(cell.disturbance.ios_per_request, Some(1.0));
    let analysis = analyse(&record);
    assert_eq!(
        [doubts(&analysis), requests_in_pieces(&analysis)].concat(),
        []
    );
}

#[test]
fn traffic_of_others_is_reported() {
    let with = |share: f64, trials: usize| {
        one_cell(|i, sample| {
            let bytes = (sample.bytes() as f64 * share) as u64;
            if i > 0 && i <= trials {
                sample.counters.device.as_mut().expect("there").write_bytes += bytes;
            }
        })
    };
    // Other programs came in the middle of the run.
    let record = with(0.4, 4);
    assert_eq!(only_cell(&record).flags, [DoubtKind::OtherTraffic]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
    assert_eq!(only_cell(&with(0.04, 8)).flags, []);
}

#[test]
fn traffic_of_others_below_is_reported() {
    let share = |passes_on: bool, factor: f64| {
        let record = one_cell(|_, sample| {
            sample.counters.bottom = sample.counters.device.map(|device| Bottom {
                stat: DeviceStat {
                    write_bytes: (device.read_bytes as f64 * factor) as u64,
                    ..device
                },
                in_file: false,
                passes_on,
            });
        });
        let cell = only_cell(&record);
        (cell.disturbance.others, cell.flags)
    };
    // Another partition is written as much as this one is read.
    assert_eq!(share(true, 1.0), (Some(0.5), vec![DoubtKind::OtherTraffic]));
    // A mirror or a cache may write as much by itself, but not a hundred times as much.
    assert_eq!(share(false, 1.0), (Some(0.0), vec![]));
    let (others, flags) = share(false, 100.0);
    assert!(others.is_some_and(|share| share > 0.9), "{others:?}");
    assert_eq!(flags, [DoubtKind::OtherTraffic]);
}

#[test]
fn file_system_overhead_is_not_traffic_of_others() {
    let others = |file_system: &str, options: &str, read: u64| {
        let mut record = one_cell(|_, _| {});
        buffered_writes(&mut record, "each", 0.0);
        for sample in &mut record.samples {
            let bytes = sample.bytes();
            let device = sample.counters.device.as_mut().expect("there");
            device.write_bytes += 10 * bytes;
            device.read_bytes += read * bytes;
        }
        record
            .environment
            .put(&KEYS.file_system, file_system.to_owned());
        record
            .environment
            .put(&KEYS.mount_options, options.to_owned());
        only_cell(&record).flags.contains(&DoubtKind::OtherTraffic)
    };
    assert!(others("ext4", "rw,relatime,data=ordered", 0));
    assert!(!others("ext4", "rw,relatime,data=journal", 0));
    assert!(!others("btrfs", "rw,relatime", 0));
    assert!(
        others("btrfs", "rw,relatime", 1),
        "it was told to write only"
    );
}

/// An account counts each folio of the page cache as a whole. The bytes beyond the requests must not hide
/// others' traffic.
#[test]
fn whole_folios_hide_no_traffic_of_others() {
    let others = |others: f64| {
        let mut record = one_cell(|_, _| {});
        buffered_writes(&mut record, "end", 0.0);
        for sample in &mut record.samples {
            let bytes = sample.bytes();
            sample
                .counters
                .process_io
                .as_mut()
                .expect("there")
                .write_bytes = 14 * bytes;
            let device = sample.counters.device.as_mut().expect("there");
            device.write_bytes += (bytes as f64 * others) as u64;
        }
        only_cell(&record).flags.contains(&DoubtKind::OtherTraffic)
    };
    assert!(others(0.3));
    assert!(!others(0.0));
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
fn journal_of_durable_writes_is_not_others_traffic() {
    for (sync, syncs) in [("each", 1000), ("osync", 0)] {
        let mut record = one_cell(|_, _| {});
        buffered_writes(&mut record, sync, 0.0);
        for sample in &mut record.samples {
            sample.operations.sync.requests = syncs;
            sample.counters.device.as_mut().expect("there").write_bytes += 12_000 * 1000;
        }
        assert_eq!(only_cell(&record).disturbance.others, Some(0.0), "{sync}");
    }
}

#[test]
fn reading_ahead_is_reported() {
    let with = |cache: &str, ratio: f64| {
        let mut record = one_cell(|_, sample| {
            let fetched = (sample.operations.read.bytes as f64 * ratio) as u64;
            sample
                .counters
                .process_io
                .as_mut()
                .expect("there")
                .read_bytes = fetched;
            sample.counters.device.as_mut().expect("there").read_bytes = fetched;
        });
        record.cells[0].spec.trial.cache = cache.parse().expect("a state");
        record
    };
    let record = with("cold", 4.0);
    assert_eq!(only_cell(&record).flags, [DoubtKind::ReadAhead]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
    assert_eq!(only_cell(&with("cold", 1.04)).flags, []);
    // With a part in memory, unused read-ahead cannot be counted.
    assert_eq!(only_cell(&with("cold", 0.5)).disturbance.read_ahead, None);
    assert_eq!(only_cell(&with("direct", 4.0)).disturbance.read_ahead, None);
}

#[test]
fn two_groups_by_pieces_show_both_values() {
    let mut record = record("read-size", &["bs"]);
    add_cell(
        &mut record,
        &["bs=1MiB"],
        &[
            5000.0, 5010.0, 4000.0, 5020.0, 4010.0, 4020.0, 5030.0, 5040.0,
        ],
    );
    for sample in &mut record.samples {
        let slow = sample.throughput_mb_s() < 4500.0;
        let pieces = if slow { 2 } else { 1 };
        sample.counters.device.as_mut().expect("there").read_ios *= pieces;
    }
    let cell = only_cell(&record);
    assert_eq!(cell.flags, [DoubtKind::RequestsSplit]);
    let split = cell.disturbance.split.expect("two groups");
    assert_eq!((split.whole.trials, split.pieces.trials), (5, 3));
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
    assert_eq!(requests_in_pieces(&analyse(&record)), []);
}

#[test]
fn ios_of_holes_make_no_groups() {
    let record = one_cell(|i, sample| {
        sample.verdict.served_by = ServedBy::Hole;
        let pieces = if i % 2 == 0 { 1000 } else { 30 };
        sample.counters.device.as_mut().expect("there").read_ios /= pieces;
    });
    assert_eq!(only_cell(&record).disturbance.split, None);
}

#[test]
fn equally_fast_groups_are_not_flagged() {
    let record = one_cell(|i, sample| {
        sample.counters.device.as_mut().expect("there").read_ios *= 1 + (i % 2) as u64;
    });
    assert_eq!(only_cell(&record).flags, []);
}

#[test]
fn constant_splitting_is_reported_not_flagged() {
    let record = one_cell(|i, sample| {
        let device = sample.counters.device.as_mut().expect("there");
        device.read_ios = device.read_ios * (200 + i as u64) / 100;
    });
    assert_eq!(only_cell(&record).flags, []);
    let told = text(&requests_in_pieces(&analyse(&record)));
    insta::assert_snapshot!(told);
}

#[test]
fn one_odd_trial_makes_no_group() {
    let odd = one_cell(|i, sample| {
        if i == 3 {
            sample.counters.device.as_mut().expect("there").read_ios *= 2;
        }
    });
    assert_eq!(only_cell(&odd).disturbance.split, None);
    let disturbed = one_cell(|_, sample| {
        let device = sample.counters.device.as_mut().expect("there");
        device.read_ios *= 3;
        device.read_bytes *= 2;
    });
    assert_eq!(only_cell(&disturbed).disturbance.ios_per_request, None);
    // Large requests, and a few small I/Os of the file system, which outnumber them.
    let mut large = one_cell(|_, sample| {
        let requests = sample.requests();
        let device = sample.counters.device.as_mut().expect("there");
        device.write_bytes += 4096 * requests / 5;
        device.write_ios += requests / 5;
    });
    for sample in &mut large.samples {
        let times = |bytes: &mut u64| *bytes *= 64;
        times(&mut sample.operations.read.bytes);
        let (device, ours) = (&mut sample.counters.device, &mut sample.counters.process_io);
        times(&mut device.as_mut().expect("there").read_bytes);
        times(&mut ours.as_mut().expect("there").read_bytes);
    }
    let around = only_cell(&large).disturbance;
    assert!(around.traffic_of_others().is_none() && around.ios_per_request.is_none());
    let mut buffered = one_cell(|_, _| {});
    buffered.cells[0].spec.trial.cache = CacheState::Hot;
    assert_eq!(only_cell(&buffered).disturbance.ios_per_request, None);
}

#[test]
fn owed_write_back_is_reported_with_its_time() {
    let with = |share: f64, cache| {
        let mut record = one_cell(|_, sample| {
            sample.region.owed_sync_ns = Some((sample.elapsed_ns as f64 * share) as u64);
        });
        record.cells[0].spec.trial.read_percent = 0;
        record.cells[0].spec.trial.cache = cache;
        record
    };
    let record = with(2.0, CacheState::Cold);
    assert_eq!(only_cell(&record).flags, [DoubtKind::WriteBackOwed]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
    assert_eq!(only_cell(&with(0.01, CacheState::Cold)).flags, []);
    // This is the time for which the cache of the drive still had to write; a file system also needs time for a
    // sync.
    let record = with(2.0, CacheState::Direct);
    assert_eq!(only_cell(&record).flags, [DoubtKind::StorageCache]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told, @"The only cell: results exclude the time to store what was left in a cache of the storage (up to 200 % of a trial with 4 KiB). Set sync=end to include that time.");
    assert_eq!(only_cell(&with(0.2, CacheState::Direct)).flags, []);
    // btrfs stores its trees then, and a sync waits for the trees of other programs too.
    let mut amplified = with(2.0, CacheState::Direct);
    amplified
        .environment
        .put(&KEYS.file_system, "btrfs".to_owned());
    assert_eq!(only_cell(&amplified).flags, []);
    let mut shared = with(2.0, CacheState::Direct);
    for sample in &mut shared.samples {
        let bytes = sample.bytes();
        let device = sample.counters.device.as_mut().expect("there");
        device.write_bytes += bytes;
    }
    assert_eq!(only_cell(&shared).flags, [DoubtKind::OtherTraffic]);
}

#[test]
fn writing_out_is_reported_from_tenth_of_budget() {
    let with = |owed_s: u64| {
        let mut record = one_cell(|_, sample| {
            sample.region.owed_sync_ns = Some(owed_s * 1_000_000_000);
        });
        record.cells[0].spec.trial.read_percent = 0;
        record.cells[0].ended_by = Some(EndedBy::Budget);
        analyse(&record)
    };
    let short = with(0);
    assert_eq!(short.write_out, None);
    assert!(written_out(&short).is_empty());
    let long = with(3600);
    let found = long.write_out.expect("more than a tenth");
    assert!(found.cut_short && found.took_ns > found.trials_ns);
    assert_eq!(found.took_ns % 3_600_000_000_000, 0);
    assert_eq!(written_out(&long).len(), 1);
    // Trials of iolab fit end by their number.
    let mut counted = long;
    counted.write_out = Some(WriteOut {
        took_ns: 641_000_000_000,
        trials_ns: 35_100_000_000,
        cut_short: false,
        is_unpaid: true,
    });
    insta::assert_snapshot!(text(&written_out(&counted)), @"Writing out what trials had left in caches took 641 s, the trials themselves 35.1 s. The load that was asked for does not count the first.");
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
        text(&not_durable(&analyse(&record)))
    };
    insta::assert_snapshot!(with(0, "none", 0));
    insta::assert_snapshot!(with(70, "none", 0));
    let mut imported = one_cell(|_, _| {});
    imported.cells[0].spec.trial.read_percent = 0;
    imported.run.target_kind = TargetKind::Imported;
    insta::assert_snapshot!(text(&not_durable(&analyse(&imported))), @"The only cell wrote without a sync (sync=none): a power failure may lose writes that are still in a cache. A sync at the end of each job makes them durable, and includes that time.");
    for (read_percent, sync, owed) in [(100, "none", 0), (0, "end", 0), (0, "none", 2)] {
        assert_eq!(with(read_percent, sync, owed), "");
    }
}

#[test]
fn contended_cpus_are_reported() {
    let with = |stall: f64, steal: f64| {
        one_cell(|_, sample| {
            let part = |share: f64| Some((sample.elapsed_ns as f64 * share) as u64);
            sample.counters.pressure.cpu_stall_ns = part(stall);
            // Two CPUs.
            sample.counters.pressure.steal_ns = part(2.0 * steal);
        })
    };
    let told = [
        (0.4, 0.0, DoubtKind::CpuContended),
        (1.02, 0.0, DoubtKind::CpuContended),
        (0.0, 0.08, DoubtKind::Steal),
    ]
    .map(|(stall, steal, flag)| {
        let record = with(stall, steal);
        assert_eq!(only_cell(&record).flags, [flag]);
        text(&doubts(&analyse(&record)))
    });
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(only_cell(&with(0.1, 0.01)).flags, []);
}

#[test]
fn restricting_quota_is_reported() {
    let with = |share: f64| {
        one_cell(|_, sample| {
            // Two CPUs.
            let waited = 2.0 * share * sample.elapsed_ns as f64;
            sample.counters.pressure.throttled_ns = Some(waited as u64);
        })
    };
    let record = with(0.12);
    assert_eq!(only_cell(&record).flags, [DoubtKind::CpuQuota]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
    assert_eq!(only_cell(&with(0.005)).flags, []);
}

#[test]
fn reached_limit_of_control_group_is_reported() {
    let with = |share: f64| {
        let mut record = one_cell(|_, _| {});
        let sample = &record.samples[1];
        let per_second = sample.bytes() as f64 / (sample.elapsed_ns as f64 / 1e9);
        let limit = (per_second / share) as u64;
        let key = KEYS.device_limit(Traffic::ReadBytes);
        record.environment.put(key, limit);
        record
    };
    let record = with(0.95);
    assert_eq!(only_cell(&record).flags, [DoubtKind::IoLimit]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
    assert_eq!(only_cell(&with(0.5)).flags, []);
}

#[test]
fn preemptions_count_if_pressure_is_not_readable() {
    let with = |per_second: u64, stall: Option<u64>| {
        one_cell(|_, sample| {
            let times = sample.elapsed_ns * per_second / 1_000_000_000;
            sample.counters.usage.involuntary_switches = times;
            sample.counters.pressure.cpu_stall_ns = stall;
        })
    };
    let record = with(5_000, None);
    assert_eq!(only_cell(&record).flags, [DoubtKind::CpuContended]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
    assert_eq!(only_cell(&with(5_000, Some(0))).flags, []);
    assert_eq!(only_cell(&with(0, None)).flags, []);
}

#[test]
fn trial_during_a_suspend_is_reported() {
    let record = one_cell(|i, sample| {
        sample.counters.pressure.suspended_ns = Some(if i == 2 { 3_000_000_000 } else { 90 });
    });
    assert_eq!(only_cell(&record).flags, [DoubtKind::Suspended]);
    let told = text(&doubts(&analyse(&record)));
    insta::assert_snapshot!(told);
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
