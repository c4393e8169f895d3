//! Hard disks: times computed by hand, buffers, queues.

use crate::{built_in, drain, rate};
use iolab_models::definition::parts::{DiskDefinition, Policy, Seek, WriteBack};
use iolab_models::definition::{Definition, PartDefinition};
use iolab_models::disk::{Arm, Drive, Head};
use iolab_models::{build, serve};
use iolab_workload::virtual_disk::{Completion, Model, Request};

const MS: u64 = 1_000_000;

/// Ten sectors a track and ten milliseconds a revolution: a sector passes in one millisecond. Two cylinders of one
/// track; a seek takes 2 ms, a write settles in 1 ms; controller and bus take no time.
fn plain() -> DiskDefinition {
    let text = r#"
        title = "plain"
        source = ["by hand"]
        [model.disk]
        [model.disk.geometry]
        surfaces = 1
        cylinders = 3
        [[model.disk.geometry.zone]]
        cylinders = [0, 2]
        sectors = 10
        [model.disk.mechanics]
        rpm = 6000
        head_switch_ms = 0
        write_settle_ms = 1
        seek.measured = [[1, 2]]
        [model.disk.buffer]
        segments = 2
        segment_blocks = 10
        read_ahead = "none"
        stop_within_sector = true
    "#;
    disk_of(Definition::parse(text).unwrap())
}

fn disk_of(definition: Definition) -> DiskDefinition {
    match definition.model {
        PartDefinition::Disk(disk) => *disk,
        _ => unreachable!(),
    }
}

fn read(first: u64, blocks: u64) -> Request {
    Request::read(first * 512, blocks * 512)
}

fn write(first: u64, blocks: u64) -> Request {
    Request::write(first * 512, blocks * 512)
}

#[test]
fn write_cache_accepts_writes_up_to_its_limit() {
    let mut disk = plain();
    disk.buffer.write_back = WriteBack::Cache;
    disk.buffer.write_back_bytes = 2 * 512;
    let mut drive = Drive::new(&disk).unwrap();
    let mut out = Vec::new();
    for (tag, first) in [(0, 3), (1, 5), (2, 7), (3, 9)] {
        drive.submit(0, tag, &write(first, 1));
    }
    drive.submit(0, 4, &Request::flush());
    drain(&mut drive, &mut out);
    let at: Vec<(u64, u64)> = out.iter().map(|one| (one.tag, one.finished / MS)).collect();
    // Two writes are accepted at once, the others when sectors 3 and 5 have been written. The flush covers the
    // writes accepted before it.
    assert_eq!(at, [(0, 0), (1, 0), (2, 4), (4, 6), (3, 6)]);
}

fn batch(disk: &DiskDefinition, requests: &[Request]) -> Vec<Completion> {
    let mut drive = Drive::new(disk).unwrap();
    for (tag, request) in requests.iter().enumerate() {
        drive.submit(0, tag as u64, request);
    }
    let mut out = Vec::new();
    drain(&mut drive, &mut out);
    out
}

#[test]
fn the_queue_chooses_by_its_policy() {
    let mut disk = plain();
    // The first request is under way when the others come.
    let requests = [read(0, 1), read(29, 1), read(5, 1), read(3, 1)];
    let order = |policy| {
        let mut disk = disk.clone();
        disk.queue.policy = policy;
        batch(&disk, &requests)
            .iter()
            .map(|one| one.tag)
            .collect::<Vec<_>>()
    };
    assert_eq!(order(Policy::Fifo), [0, 1, 2, 3]);
    assert_eq!(order(Policy::Sptf), [0, 3, 2, 1]);
    // A request that waited longer than `patience_ms` goes first.
    disk.queue.policy = Policy::Sptf;
    disk.queue.patience_ms = 0.5;
    let impatient: Vec<u64> = batch(&disk, &requests).iter().map(|one| one.tag).collect();
    assert_eq!(impatient, [0, 1, 2, 3]);
}

#[test]
fn lees_seek_curve_passes_through_three_points() {
    let mut disk = plain();
    let cylinders = 3001;
    disk.mechanics.seek = Seek::Lee([1.0, 8.0, 15.0]);
    let arm = Arm::new(&disk.mechanics, cylinders).unwrap();
    let lee =
        |cylinder| arm.reposition(Head::default(), Head { cylinder, head: 0 }, false) as f64 / 1e6;
    // The average of Lee's curve is the mean over random pairs of cylinders: `d` apart with probability
    // `2 (n - d) / n^2`.
    let n = f64::from(cylinders);
    let mean: f64 = (1..cylinders)
        .map(|d| lee(d) * 2.0 * (n - f64::from(d)) / (n * n))
        .sum();
    assert_eq!(lee(1), 1.0);
    assert!(
        (lee(3000) - 15.0).abs() < 0.02 && (mean - 8.0).abs() < 0.02,
        "{}, mean {mean}",
        lee(3000)
    );
}

#[test]
fn sata_disk_reaches_its_data_sheet_values() {
    let definition = built_in("sata-7200");
    let mut model = build(&definition, 1).unwrap();
    let bytes = model.capacity();
    assert_eq!(bytes / 1_000_000_000, 4000);
    // Sequential reads at the outer edge: 215 MB/s on the track, less its changes.
    let mut now = 0;
    for n in 0..400 {
        now = serve(&mut *model, now, &Request::read(n << 20, 1 << 20)).finished;
    }
    let rate = (400u64 << 20) as f64 / (now as f64 / 1e3);
    assert!((180.0..=215.0).contains(&rate), "{rate} MB/s");
    // Random reads: seek 8.5 ms and half a revolution of 8.33 ms.
    let start = now;
    let mut offset = 1u64;
    for _ in 0..500 {
        offset = (offset
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407))
            % (bytes >> 12);
        now = serve(&mut *model, now, &Request::read(offset << 12, 4096)).finished;
    }
    let mean = (now - start) as f64 / 500.0 / 1e6;
    assert!((12.0..=13.5).contains(&mean), "{mean} ms");
}

/// MB/s of sequential requests of `bytes`, `depth` at a time.
fn sequential(name: &str, write: bool, bytes: u64, depth: u64, count: u64) -> f64 {
    let definition = built_in(name);
    let mut model = build(&definition, 1).unwrap();
    rate(&mut *model, write, bytes, depth, count, 0, 0).0
}

#[test]
fn sequential_stream_keeps_its_rate_at_every_depth() {
    for depth in [1, 8, 24, 32, 64] {
        let small = sequential("sata-7200", false, 4096, depth, 20_000);
        let large = sequential("sata-7200", false, 1 << 20, depth, 400);
        assert!(
            (65.0..75.0).contains(&small),
            "4 KiB, depth {depth}: {small} MB/s"
        );
        assert!(
            (205.0..=217.0).contains(&large),
            "1 MiB, depth {depth}: {large} MB/s"
        );
    }
}

#[test]
fn long_buffered_writes_run_at_medium_speed() {
    // A track of 72 sectors in 14.99 ms and a skew of 8: 2.21 MB/s, less the changes of cylinder.
    let writes = sequential("hp-97560", true, 1 << 20, 1, 200);
    assert!((2.1..2.25).contains(&writes), "{writes} MB/s");
    // 215 MB/s at the edge, and 64 MiB of 2 GiB that went into the cache first.
    let writes = sequential("sata-7200", true, 1 << 20, 8, 2048);
    assert!((205.0..=225.0).contains(&writes), "{writes} MB/s");
}
