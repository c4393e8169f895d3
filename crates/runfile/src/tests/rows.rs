//! Rows whose numbers all differ, so that swapped columns are detected.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, StageSummary, SyncCounts, TraceCounts, TraceSummary,
};
use iolab_workload::trial::{Allocate, Backend, Pattern, Rate, SyncPolicy, TrialLimit, TrialSpec};

use iolab_record::{
    Arrivals, Bottom, ClockDomain, Counters, Effective, Ended, Extents, Faults, Hardware,
    HardwareEvents, LatencySummary, Moved, OperationSummary, PerOperation, Pressure, RankActivity,
    RateReport, Region, Residency, RingFlag, ServedBy, ServedVerdict, TargetKind, Verified,
};
use iolab_workload::response::Response;
use iolab_workload::settings::CellSpec;

use super::super::*;

pub(super) const BEGAN: &str = "2025-11-21T10:00:00Z";
pub(super) const ENDED: &str = "2025-11-21T10:02:00Z";

pub(super) fn run_row() -> Run {
    Run {
        status: RunStatus::Running,
        tool_version: "0.1.0".to_owned(),
        started_utc: BEGAN.to_owned(),
        ended_utc: None,
        target: "/somewhere".to_owned(),
        target_kind: TargetKind::BlockDevice,
        target_bytes: 1 << 30,
        seed: 42,
        clock_domain: ClockDomain::Virtual,
        clock_cost_ns: Some(11.5),
        clock_resolution_ns: Some(0.5),
        clock_source: "tsc: invariant".to_owned(),
        floor_ns: Some(30.25),
    }
}

pub(super) fn experiment_row() -> ExperimentRecord {
    ExperimentRecord {
        name: "mine".to_owned(),
        question: "Why?".to_owned(),
        response_group: None,
        asked: None,
        response: Response::Iops,
        toml: "name = 'mine'\n".to_owned(),
        factors: vec!["pattern".to_owned(), "bs".to_owned()],
        precision: 0.05,
        budget_ns: 60_000_000_000,
        trials_min: 5,
        trials_max: 30,
    }
}

pub(super) fn cell_row(id: i64) -> Cell {
    Cell {
        id,
        levels: vec!["rand".to_owned(), format!("{}KiB", 4 << id)],
        spec: CellSpec {
            trial: TrialSpec {
                backend: Backend::IoUring,
                pattern: Pattern::Zipf(1.2),
                bs: 4096 << id,
                offset: 4096,
                region: 1 << 29,
                threads: 2,
                depth: 32,
                read_percent: 70,
                sync: SyncPolicy::Fdatasync,
                sync_every: 3,
                allocate: Some(Allocate::Preallocated),
                verify: id == 1,
                rate: Some(Rate::Requests(5000 + id as u64)),
                arrivals: Arrivals::Poisson,
                limit: TrialLimit {
                    bytes: Some(1 << 28),
                    time: Some(Duration::from_nanos(250_000_001)),
                },
                latency: false,
                hardware_counters: true,
                sqpoll: true,
                iopoll: true,
                ..TrialSpec::default()
            },
            ..CellSpec::default()
        },
        ended_by: None,
    }
}

fn latency(from: u64) -> LatencySummary {
    LatencySummary {
        mean_ns: from as f64 + 0.5,
        p50_ns: from + 1,
        p90_ns: from + 2,
        p99_ns: from + 3,
        p999_ns: from + 4,
        p9999_ns: Some(from + 6),
        p99999_ns: Some(from + 7),
        max_ns: from + 5,
    }
}

fn residency(from: u64) -> Residency {
    Residency {
        looked_bytes: from,
        resident_bytes: from + 1,
        dirty_bytes: Some(from + 2),
        writeback_bytes: Some(from + 3),
    }
}

fn operations() -> PerOperation<OperationSummary> {
    PerOperation {
        read: OperationSummary {
            requests: 1001,
            bytes: 1002,
            short_transfers: 1003,
            latency: Some(latency(1010)),
            response: Some(Box::new(latency(1020))),
            lateness: Some(Box::new(latency(1030))),
        },
        write: OperationSummary {
            requests: 2001,
            bytes: 2002,
            short_transfers: 2003,
            latency: Some(latency(2010)),
            response: Some(Box::new(latency(2020))),
            lateness: Some(Box::new(latency(2030))),
        },
        sync: OperationSummary {
            requests: 1,
            latency: Some(latency(2040)),
            ..OperationSummary::default()
        },
        trim: OperationSummary {
            requests: 31,
            bytes: 32,
            latency: Some(LatencySummary {
                mean_ns: 33.5,
                p50_ns: 34,
                p90_ns: 35,
                p99_ns: 36,
                p999_ns: 37,
                p9999_ns: Some(39),
                p99999_ns: Some(40),
                max_ns: 38,
            }),
            ..OperationSummary::default()
        },
    }
}

fn counters() -> Counters {
    Counters {
        nfs: Some(numbers_from(31)),
        usage: numbers_from(4001),
        process_io: Some(numbers_from(5001)),
        device: Some(numbers_from(6001)),
        hardware: Hardware::Counted(HardwareEvents {
            llc_misses: None,
            ..numbers_from(7001)
        }),
        bottom: Some(Bottom {
            stat: numbers_from(8001),
            in_file: true,
            passes_on: true,
        }),
        pressure: Pressure {
            memory_stall_ns: None,
            ..numbers_from(9001)
        },
        buffer_piece_bytes: Some(9016),
        drive_millidegrees: Some(45_850),
    }
}

fn traced() -> TraceSummary {
    TraceSummary {
        counts: TraceCounts {
            joined: 12_001,
            unjoined: 12_002,
            split: 12_003,
            carried: 12_004,
            others: 12_005,
            flushes: 12_006,
            flush_waits: 12_007,
            lost: 12_008,
            syncs: SyncCounts {
                syncs: 11_901,
                commits: 11_902,
                shared_commits: 11_903,
                flushes: 11_904,
                shared_flushes: 11_905,
            },
        },
        note: "a note".to_owned(),
        carried_by: CarriedBy::Layers,
        journal: Some(Journal::Commits),
        stages: PerStage::from_fn(|stage| {
            let from = 12_010 + 10 * stage as u64;
            Some(StageSummary {
                mean_ns: from as f64 + 0.5,
                p50_ns: from + 1,
                p99_ns: from + 2,
                tail_mean_ns: from as f64 + 3.5,
            })
        }),
    }
}

/// A sample whose numbers all differ, so that swapped columns are detected.
pub(super) fn sample_row(cell: i64, block: u32) -> Sample {
    Sample {
        group: 0,
        client: 0,
        start_ns: 0,
        id: 0,
        cell,
        block,
        position: 7,
        warmup: block == 0,
        ok: true,
        started_utc: BEGAN.to_owned(),
        operations: operations(),
        unsplit: Moved {
            requests: 71,
            bytes: 72 << 12,
        },
        errors: 2,
        failure: None,
        ended: Ended::Time,
        elapsed_ns: 3001,
        all_active_ns: 3002,
        in_flight: Some(3.5),
        end_sync_ns: 3003,
        paused_ns: 3005,
        request_sizes: "read 4096 601,write 65536 299".parse().unwrap(),
        cpus_used: "0-3,8".parse().unwrap(),
        run_delay_ns: Some(3008),
        wall_ns: 3004,
        clock_drift_ppm: Some(-1.5),
        seed: i64::MAX as u64,
        counters: counters(),
        region: Region {
            before: Some(residency(10_001)),
            after: Some(residency(10_011)),
            extents: Some(Extents {
                looked_bytes: 10_021,
                hole_bytes: 10_022,
                unwritten_bytes: Some(10_023),
            }),
            owed_sync_ns: Some(10_031),
            evidence_ns: 10_032,
        },
        rate_report: Some(RateReport {
            rate_wanted: 7001.5,
            rate_achieved: 7002.5,
            backlog_max: 7003,
            backlog_end: 7004,
        }),
        traced: Some(Box::new(traced())),
        verified: Some(Verified {
            blocks: 11_001,
            bytes: 11_002,
            cached_bytes: Some(11_003),
            faults: std::array::from_fn(|kind| Faults {
                blocks: 10_900 + kind as u64,
                first_offset: 11_020 + kind as u64,
            }),
        }),
        effective: Effective {
            fixed_file: true,
            fixed_buffers: false,
            ring: vec![RingFlag::SingleIssuer, RingFlag::Iopoll],
            polled: true,
            command: Some("fio-3.39: fio".to_owned()),
            note: "no ring".to_owned(),
        },
        verdict: ServedVerdict {
            served_by: ServedBy::Mixed,
            device_fraction: Some(0.75),
            reason: "read-ahead".to_owned(),
        },
        together: Some(RankActivity {
            elapsed_error_ns: 6001,
            start_skew_ns: 6002,
            start_skew_error_ns: 6003,
            all_active_least_bytes: 6004,
            all_active_most_bytes: 6005,
        }),
        drives: Vec::new(),
    }
}

/// Counts of a drive in the sample of this number.
pub(super) fn drive_row(sample: i64, drive: &str) -> DriveLog {
    DriveLog {
        sample,
        drive: drive.to_owned(),
        host_read_bytes: Some(12_001),
        host_write_bytes: Some(12_002),
        media_write_bytes: Some(12_003),
        light_throttles: Some(12_004),
        heavy_throttles: Some(12_005),
        light_throttle_s: Some(12_006),
        heavy_throttle_s: Some(12_007),
        throttle_events: None,
        warning_min: Some(12_009),
        critical_min: Some(12_010),
        before_millidegrees: Some(12_011),
        after_millidegrees: Some(12_012),
    }
}

/// Counters with consecutive numbers from `first` on.
pub(super) fn numbers_from<T: Default + Serialize + DeserializeOwned>(first: u64) -> T {
    counted(first..)
}

/// Counters with these numbers.
pub(super) fn counted<T: Default + Serialize + DeserializeOwned>(
    numbers: impl Iterator<Item = u64>,
) -> T {
    let plain = serde_json::to_value(T::default()).expect("JSON");
    let names = plain.as_object().expect("counters").keys().cloned();
    let counters: serde_json::Map<_, _> = names.zip(numbers.map(Into::into)).collect();
    serde_json::from_value(counters.into()).expect("a value for each")
}

/// A failed trial without any counters.
pub(super) fn bare_sample(cell: i64, block: u32) -> Sample {
    let whole = sample_row(cell, block);
    Sample {
        ok: false,
        operations: PerOperation {
            read: OperationSummary::default(),
            trim: OperationSummary::default(),
            ..whole.operations
        },
        failure: Some("pwrite of 4096 bytes at offset 0 failed".to_owned()),
        ended: Ended::Failed,
        counters: Counters::default(),
        region: Region::default(),
        rate_report: None,
        verified: None,
        request_sizes: Default::default(),
        cpus_used: Default::default(),
        run_delay_ns: None,
        verdict: ServedVerdict {
            served_by: ServedBy::Unknown,
            device_fraction: None,
            reason: "nothing was transferred".to_owned(),
        },
        together: None,
        ..whole
    }
}

pub(super) fn histogram(values: &[u64]) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    values
        .iter()
        .for_each(|value| histogram.record(*value).unwrap());
    histogram
}
