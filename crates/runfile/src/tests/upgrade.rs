//! Files of earlier schema versions: read as they were, and of version 4 gone on with.

use super::*;
use iolab_record::{DeviceStat, Hardware, NoHardware, Region};
use iolab_spec::tool::Tool;

/// Runs that together fill what the schema versions brought.
const NAMES: [&str; 3] = ["uring-depth", "load-latency", "mixed-verified"];

/// What each schema version brought to the table of samples.
const ADDED: [(i64, &[&str]); 3] = [
    (
        2,
        &[
            "cycles",
            "instructions",
            "llc_misses",
            "dtlb_misses",
            "hardware_missing",
        ],
    ),
    (
        3,
        &[
            "bottom_read_ios",
            "bottom_read_merges",
            "bottom_read_bytes",
            "bottom_write_ios",
            "bottom_write_merges",
            "bottom_write_bytes",
            "bottom_flush_ios",
            "bottom_busy_ms",
            "bottom_in_file",
            "cpu_stall_ns",
            "io_stall_ns",
            "memory_stall_ns",
            "steal_ns",
            "suspended_ns",
            "cpu_khz",
            "cache_before_looked_bytes",
            "cache_before_bytes",
            "cache_before_dirty_bytes",
            "cache_before_writeback_bytes",
            "cache_after_looked_bytes",
            "cache_after_bytes",
            "cache_after_dirty_bytes",
            "cache_after_writeback_bytes",
            "extents_looked_bytes",
            "hole_bytes",
            "unwritten_bytes",
            "owed_sync_ns",
            "evidence_ns",
            "rate_wanted",
            "rate_achieved",
            "backlog_max",
            "backlog_end",
        ],
    ),
    (
        4,
        &[
            "verified_blocks",
            "verified_bytes",
            "verified_cached_bytes",
            "corrupted_blocks",
            "corrupted_first_offset",
            "misplaced_blocks",
            "misplaced_first_offset",
            "stale_blocks",
            "stale_first_offset",
            "torn_blocks",
            "torn_first_offset",
            "lost_blocks",
            "lost_first_offset",
            "device_queue_ms",
            "bottom_queue_ms",
        ],
    ),
];

/// Takes away what later schema versions brought.
fn make_older(path: &Path, version: i64) {
    alter(path, "DROP TABLE IF EXISTS series");
    let later = ADDED.into_iter().filter(|(since, _)| *since > version);
    for column in later.flat_map(|(_, columns)| columns) {
        alter(path, &format!("ALTER TABLE sample DROP COLUMN {column}"));
    }
    if version < 4 {
        for column in ["tool", "layout", "descriptors", "fresh", "verify"] {
            alter(path, &format!("ALTER TABLE cell DROP COLUMN {column}"));
        }
    }
    if version < 3 {
        for direction in ["read", "write"] {
            for what in ["response", "lateness"] {
                for part in ["mean", "p50", "p90", "p99", "p999", "max"] {
                    let column = format!("{direction}_{what}_{part}_ns");
                    alter(path, &format!("ALTER TABLE sample DROP COLUMN {column}"));
                }
            }
        }
        alter(path, "ALTER TABLE cell DROP COLUMN rate");
        alter(path, "ALTER TABLE cell DROP COLUMN arrivals");
    }
    if version < 2 {
        alter(path, "ALTER TABLE cell DROP COLUMN command");
    }
}

/// A stored file of version 4, or what an earlier one would have held of it.
fn of_version(bench: &Fixture, version: i64, name: &str) -> PathBuf {
    let path = bench.path(&format!("{name}-{version}.iolab"));
    unpack(4, name, &path);
    if version < 4 {
        make_older(&path, version);
        alter(&path, &format!("PRAGMA user_version = {version}"));
    }
    path
}

#[test]
fn a_file_before_version_4_is_read_but_not_gone_on_with() {
    let bench = Fixture::new();
    for (name, version) in NAMES
        .into_iter()
        .flat_map(|name| [1, 2, 3].map(|v| (name, v)))
    {
        let path = of_version(&bench, version, name);
        let (before, after) = (read(&of_version(&bench, 4, name)), read(&path));
        let (before, after) = (before.unwrap(), after.unwrap());
        assert_eq!(before.cells.len(), after.cells.len());
        for (was, is) in before.samples.iter().zip(&after.samples) {
            assert_eq!(
                (is.operations.read.latency, is.counters.usage),
                (was.operations.read.latency, was.counters.usage)
            );
            let cell = &after.cells[is.cell as usize];
            assert_eq!(cell.spec.tool, Tool::IOLAB);
            assert_eq!(is.verified, None);
            if version < 3 {
                assert_eq!((is.operations.read.response, is.rate_report), (None, None));
                assert_eq!((is.region, is.counters.bottom), (Region::default(), None));
            } else {
                assert_eq!((is.region, is.rate_report), (was.region, was.rate_report));
            }
            let device = was.counters.device.map(|device| DeviceStat {
                queue_ms: None,
                ..device
            });
            assert_eq!(is.counters.device, device);
            let hardware = match version {
                1 => Hardware::Missing(NoHardware::NotAsked),
                _ => was.counters.hardware,
            };
            assert_eq!(is.counters.hardware, hardware);
        }
        assert_eq!(after.series, []);
        assert_eq!(read_series(&path).unwrap().count(), 0);
        let error = RunFile::open_resume(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        assert!(error.message().contains("older iolab"), "{error}");
    }
}

#[test]
fn settings_without_a_column_are_those_of_the_definition() {
    let bench = Fixture::new();
    let record = read(&of_version(&bench, 4, "uring-depth")).unwrap();
    for cell in &record.cells {
        let trial = cell.trial();
        assert!(trial.hardware_counters && trial.registered);
        assert_eq!(trial.limit.bytes, Some(1 << 30));
        assert_eq!(trial.limit.time, Some(Duration::from_millis(500)));
    }
    let flags = &record.samples.last().unwrap().effective;
    assert!(flags.ring.is_empty() || flags.fixed_file, "{flags:?}");
}

#[test]
fn a_file_of_version_4_is_made_one_of_this_and_gone_on_with() {
    let bench = Fixture::new();
    for name in NAMES {
        let path = of_version(&bench, 4, name);
        let all = |path: &Path| -> (RunRecord, Vec<SampleLatency>, Vec<SampleSeries>) {
            let latencies: Result<_> = read_latency(path).unwrap().collect();
            let series: Result<_> = read_series(path).unwrap().collect();
            (read(path).unwrap(), latencies.unwrap(), series.unwrap())
        };
        let before = all(&path);
        let (mut file, record) = RunFile::open_resume(&path).unwrap();
        assert_eq!(record, before.0);
        assert!(all(&path) == before, "{name}");
        let block = 1 + record.samples.iter().map(|s| s.block).max().unwrap();
        let next = record.samples.last().unwrap().id + 1;
        assert_eq!(add(&mut file, &sample_row(0, block)), next);
        file.finish(RunStatus::Done, ENDED).unwrap();
        assert_eq!(read(&path).unwrap().samples.len(), record.samples.len() + 1);
        // It is one of ours now, with nothing of the old one in it.
        drop(RunFile::open_resume(&path).unwrap());
    }
}

#[test]
fn a_strangers_file_of_version_4_is_left_alone() {
    let bench = Fixture::new();
    for sql in [
        "CREATE TABLE own (text)",
        "ALTER TABLE event RENAME TO old_event; CREATE TABLE event AS SELECT * FROM old_event",
    ] {
        let path = of_version(&bench, 4, NAMES[0]);
        alter(&path, sql);
        let before = std::fs::read(&path).unwrap();
        RunFile::open_resume(&path).expect_err(sql);
        assert_eq!(std::fs::read(&path).unwrap(), before, "{sql}");
        assert!(read(&path).is_ok(), "{sql}");
    }
}
