//! Hard disks: times computed by hand, buffers, queues.

use iolab_diskmodel::definition::disk::{DiskDefinition, Policy, ReadAhead, Seek, WriteBack};
use iolab_diskmodel::definition::{Definition, PartDefinition, catalogue};
use iolab_diskmodel::disk::{Arm, Drive, Head};
use iolab_diskmodel::{Completion, Model, Request, ServedFrom, build, serve};

use super::rate;

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
        seek.constant = 2
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

/// The end times, in ms, of requests without a pause between them, and how each was served.
fn ends(disk: &DiskDefinition, requests: &[Request]) -> Vec<(f64, ServedFrom)> {
    let mut drive = Drive::new(disk).unwrap();
    let mut now = 0;
    requests
        .iter()
        .map(|request| {
            let completion = serve(&mut drive, now, request);
            now = completion.finished;
            (now as f64 / MS as f64, completion.served)
        })
        .collect()
}

fn times(disk: &DiskDefinition, requests: &[Request]) -> Vec<f64> {
    ends(disk, requests).into_iter().map(|end| end.0).collect()
}

#[test]
fn rotation_and_seeks_take_times_by_hand() {
    let mut disk = plain();
    disk.buffer.cache = false;
    // Sector 3 comes at 3 ms and has passed at 4; sector 4 follows at once; sector 0 comes at 10 ms.
    // To cylinder 1: 2 ms of seek, and its sector 0 comes at 20 ms. Back to cylinder 0 for a write: 3 ms, and sector 4
    // comes at just 24 ms.
    let requests = [read(3, 1), read(4, 1), read(0, 1), read(10, 1), write(4, 1)];
    assert_eq!(times(&disk, &requests), [4.0, 5.0, 11.0, 21.0, 25.0]);
}

#[test]
fn skew_hides_the_seek_at_track_end() {
    let mut disk = plain();
    disk.buffer.cache = false;
    // Sectors 8 and 9 until 10 ms, 2 ms of seek, and sector 0 of the next cylinder only at 20 ms.
    assert_eq!(times(&disk, &[read(8, 4)]), [22.0]);
    disk.geometry.zone[0].cylinder_skew = 2.0;
    assert_eq!(times(&disk, &[read(8, 4)]), [14.0]);
}

#[test]
fn reading_on_arrival_takes_sectors_as_they_come() {
    let mut disk = plain();
    disk.buffer.cache = false;
    // Without the option, at 5 ms the whole track waits for sector 0. With it, the track takes 10 ms from where
    // the head is.
    let requests = [read(4, 1), read(0, 10)];
    assert_eq!(times(&disk, &requests), [5.0, 20.0]);
    disk.buffer.read_on_arrival = true;
    assert_eq!(times(&disk, &requests), [5.0, 15.0]);
}

#[test]
fn read_ahead_fills_the_segment_while_idle() {
    let mut disk = plain();
    disk.buffer.read_ahead = ReadAhead::Segment;
    disk.buffer.read_ahead_most = 4;
    let mut drive = Drive::new(&disk).unwrap();
    assert_eq!(serve(&mut drive, 0, &read(0, 2)).finished, 2 * MS);
    // At 5 ms sectors 2, 3 and 4 have been read ahead; sector 5 passes just then.
    let hit = serve(&mut drive, 5 * MS, &read(2, 3));
    assert_eq!((hit.finished, hit.served), (5 * MS, ServedFrom::Hit));
    let partial = serve(&mut drive, 5 * MS, &read(4, 2));
    assert_eq!(
        (partial.finished, partial.served),
        (6 * MS, ServedFrom::Partial)
    );
    // A write takes its blocks out of the buffer, and what it wrote can be read there.
    serve(&mut drive, 20 * MS, &write(3, 1));
    assert_eq!(
        serve(&mut drive, 60 * MS, &read(3, 1)).served,
        ServedFrom::Hit
    );
    assert_eq!(
        serve(&mut drive, 90 * MS, &read(4, 1)).served,
        ServedFrom::Miss
    );
}

#[test]
fn request_waits_for_the_buffered_write_before() {
    let mut disk = plain();
    disk.buffer.write_back = WriteBack::One;
    // The data reaches the medium at 4 ms; the read of another cylinder can start only then: landing at 6 ms, sector 7
    // passes until 8 ms.
    let requests = [write(3, 1), read(17, 1)];
    assert_eq!(
        ends(&disk, &requests),
        [(0.0, ServedFrom::Buffered), (8.0, ServedFrom::Miss)]
    );
    // A write that continues the first joins it.
    assert_eq!(
        ends(&disk, &[write(3, 1), write(4, 1)])[1],
        (0.0, ServedFrom::Buffered)
    );
    // A flush waits for the medium.
    assert_eq!(times(&disk, &[write(3, 1), Request::flush()]), [0.0, 4.0]);
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
    drive.drain(&mut out);
    let at: Vec<(u64, u64)> = out.iter().map(|one| (one.tag, one.finished / MS)).collect();
    // Two writes are accepted at once, the others when sectors 3 and 5 have been written. The flush covers the
    // writes accepted before it.
    assert_eq!(at, [(0, 0), (1, 0), (2, 4), (4, 6), (3, 6)]);
}

#[test]
fn block_sent_too_late_waits_a_revolution() {
    let mut disk = plain();
    disk.buffer.cache = false;
    disk.bus.write_block_ms = 2.0;
    // Blocks arrive at 2, 4, 6 and 8 ms; sectors 3 to 6 pass from 3 ms on, one a millisecond. Block 0 is in
    // time. The three others are a revolution late, each but the last of them with time to spare.
    assert_eq!(times(&disk, &[write(3, 4)]), [17.0]);
    // The write starts a revolution later, too, when all its data has to be in the buffer first.
    disk.buffer.write_start = vec![[1, 10]];
    assert_eq!(times(&disk, &[write(3, 4)]), [17.0]);
}

fn batch(disk: &DiskDefinition, requests: &[Request]) -> Vec<Completion> {
    let mut drive = Drive::new(disk).unwrap();
    for (tag, request) in requests.iter().enumerate() {
        drive.submit(0, tag as u64, request);
    }
    let mut out = Vec::new();
    drive.drain(&mut out);
    out
}

#[test]
fn the_queue_chooses_by_its_policy() {
    let mut disk = plain();
    disk.buffer.cache = false;
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
    assert_eq!(order(Policy::Elevator), [0, 3, 2, 1]);
    assert_eq!(order(Policy::Sptf), [0, 3, 2, 1]);
    // A request that waited longer than `patience_ms` goes first.
    disk.queue.policy = Policy::Sptf;
    disk.queue.patience_ms = 0.5;
    let impatient: Vec<u64> = batch(&disk, &requests).iter().map(|one| one.tag).collect();
    assert_eq!(impatient, [0, 1, 2, 3]);
}

#[test]
fn sptf_serves_random_requests_faster_than_fifo() {
    let disk = |policy| {
        let mut disk = disk_of(catalogue::find("hp-97560").unwrap().unwrap());
        disk.queue.policy = policy;
        disk
    };
    let requests: Vec<Request> = (0..200u64)
        .map(|n| read(n * 7_919_993 % 2_600_000, 8))
        .collect();
    let last = |policy| batch(&disk(policy), &requests).last().unwrap().finished;
    let (fifo, elevator, sptf) = (
        last(Policy::Fifo),
        last(Policy::Elevator),
        last(Policy::Sptf),
    );
    assert!(
        sptf < elevator && elevator < fifo,
        "sptf {sptf}, elevator {elevator}, fifo {fifo}"
    );
}

#[test]
fn the_hp_97560_has_its_published_seek_curve() {
    let disk = disk_of(catalogue::find("hp-97560").unwrap().unwrap());
    let arm = Arm::new(&disk.mechanics, disk.geometry.cylinders).unwrap();
    let to = |cylinder, head| arm.reposition(Head::default(), Head { cylinder, head }, false);
    let seek = |distance| to(distance, 0);
    assert_eq!(seek(0), 0);
    assert_eq!(seek(1), 3_640_000);
    assert_eq!(seek(100), 7_240_000);
    assert_eq!(seek(383), 11_068_154);
    assert_eq!(seek(384), 11_072_000);
    assert_eq!(seek(1961), 23_688_000);
    assert_eq!(to(0, 5), 1_600_000);
    assert_eq!(arm.period, 14_992_504);
}

#[test]
fn seek_curves_of_three_points_pass_through_them() {
    let mut disk = plain();
    let cylinders = 3001;
    let times = |seek: Seek, disk: &mut DiskDefinition| {
        disk.mechanics.seek = seek;
        let arm = Arm::new(&disk.mechanics, cylinders).unwrap();
        move |cylinder| {
            arm.reposition(Head::default(), Head { cylinder, head: 0 }, false) as f64 / 1e6
        }
    };
    let lines = times(Seek::Lines([1.0, 8.0, 15.0]), &mut disk);
    for (distance, expected) in [(1, 1.0), (1000, 8.0), (3000, 15.0)] {
        assert!(
            (lines(distance) - expected).abs() < 0.02,
            "{distance}: {}",
            lines(distance)
        );
    }
    // The average of Lee's curve is the mean over random pairs of cylinders: `d` apart with probability
    // `2 (n - d) / n^2`.
    let lee = times(Seek::Lee([1.0, 8.0, 15.0]), &mut disk);
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
    let definition = catalogue::find("sata-7200").unwrap().unwrap();
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
    let definition = catalogue::find(name).unwrap().unwrap();
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
