//! The size of rows that a run across hosts has many of.

use iolab_record::{
    Bottom, Counters, DeviceStat, Extents, LatencySummary, OperationSummary, PerOperation,
    ProcessIo, Region, Residency, ResourceUse, ServedBy, ServedVerdict,
};

use super::*;

/// Trials, and clients of each.
const TRIALS: u32 = 5;
const CLIENTS: u32 = 2_000;
/// The size of a row according to docs/CLUSTER.md.
const ROW_BYTES: f64 = 401.0;

/// A trial of 1 s: 10,000 direct reads of 64 KiB, on a partition of a disk that others use as well, so that all counters have a
/// value.
fn reads(client: u32) -> Sample {
    let own = u64::from(client);
    let latency = LatencySummary {
        mean_ns: 98_765.43 + own as f64,
        p50_ns: 95_743 + own,
        p90_ns: 130_000 + own,
        p99_ns: 410_111 + own,
        p999_ns: 1_900_543 + own,
        p9999_ns: Some(2_900_543 + own),
        p99999_ns: Some(3_900_543 + own),
        max_ns: 12_345_678 + own,
    };
    let disk = DeviceStat {
        read_ios: 10_000 + own,
        read_bytes: 655_360_000 + 4096 * own,
        write_ios: 12,
        write_merges: 3,
        write_bytes: 4096 * 15,
        flush_ios: 1,
        busy_ms: 990,
        queue_ms: Some(988),
        ..DeviceStat::default()
    };
    let seen = Residency {
        looked_bytes: 1 << 30,
        resident_bytes: 0,
        dirty_bytes: Some(0),
        writeback_bytes: Some(0),
    };
    Sample {
        client,
        start_ns: 1_234_567 + own,
        elapsed_ns: 1_000_123_456 + own,
        operations: PerOperation {
            read: OperationSummary {
                requests: 10_000 + own,
                bytes: 655_360_000 + 65_536 * own,
                latency: Some(latency),
                ..OperationSummary::default()
            },
            ..PerOperation::default()
        },
        counters: Counters {
            usage: ResourceUse {
                user_ns: 45_123_000,
                system_ns: 178_456_000,
                minor_faults: 213,
                voluntary_switches: 10_012,
                involuntary_switches: 45,
                ..ResourceUse::default()
            },
            process_io: Some(ProcessIo {
                rchar: 655_360_000,
                wchar: 812,
                syscr: 10_000,
                syscw: 12,
                read_bytes: 655_360_000,
                write_bytes: 0,
            }),
            device: Some(disk),
            bottom: Some(Bottom {
                stat: disk,
                in_file: false,
                passes_on: false,
            }),
            pressure: numbers_from(2_345_000),
            buffer_piece_bytes: Some(65_536),
            drive_millidegrees: Some(45_850),
            ..Counters::default()
        },
        region: Region {
            before: Some(seen),
            after: Some(seen),
            extents: Some(Extents {
                looked_bytes: 1 << 30,
                hole_bytes: 0,
                unwritten_bytes: Some(0),
            }),
            owed_sync_ns: None,
            evidence_ns: 1_765_432,
        },
        verdict: ServedVerdict {
            served_by: ServedBy::Device,
            device_fraction: Some(1.0),
            reason: "100 % of the bytes reached the device".to_owned(),
        },
        ..Sample::default()
    }
}

/// The size of a run file whose trials have these clients.
fn size(bench: &Fixture, name: &str, clients: &[Sample]) -> u64 {
    let mut file = bench.create(name);
    for block in 0..TRIALS {
        let whole = sample_row(0, block);
        file.add_sample_in_parts(&whole, (&[], clients), &[], &Series::default())
            .unwrap();
    }
    file.finish(RunStatus::Done, ENDED, None).unwrap();
    std::fs::metadata(bench.path(name)).unwrap().len()
}

#[test]
#[allow(
    clippy::print_stderr,
    reason = "the number is what the document repeats"
)]
fn a_client_row_takes_the_documented_room() {
    let bench = Fixture::new();
    let clients: Vec<Sample> = (0..CLIENTS).map(reads).collect();
    let of_clients = size(&bench, "with.iolab", &clients) - size(&bench, "without.iolab", &[]);
    let bytes = of_clients as f64 / f64::from(TRIALS * CLIENTS);
    eprintln!("a row of client_sample takes {bytes:.0} bytes");
    // Within 10 % of the documented size.
    assert!(
        (bytes / ROW_BYTES - 1.0).abs() < 0.1,
        "docs/CLUSTER.md says {ROW_BYTES:.0} bytes, a row has {bytes:.0}: write its size there and here"
    );
}
