use crate::evidence;
use crate::observed::{ObservedTarget, OpenWays};
use iolab_workload::counters::DeviceStat;
use iolab_workload::region_state::{Extents, Residency};

use super::*;

const MIB: u64 = 1 << 20;

/// A program that read a file of 64 MiB by calls, of which so much came from storage, all of it from vda.
fn reader(read_bytes: u64) -> Observed {
    let cached = Residency {
        looked_bytes: 64 * MIB,
        resident_bytes: 64 * MIB - read_bytes,
        dirty_bytes: Some(0),
        writeback_bytes: Some(0),
    };
    Observed {
        target: Some(ObservedTarget {
            path: "/data/file".into(),
            medium: Medium::Storage,
            bytes: Some(64 * MIB),
            is_device: false,
            region: Region {
                before: Some(cached),
                after: Some(cached),
                extents: Some(Extents {
                    looked_bytes: 64 * MIB,
                    unwritten_bytes: Some(0),
                    ..Extents::default()
                }),
                ..Region::default()
            },
        }),
        ..evidence::tests::reader(64 * MIB, read_bytes, read_bytes, 0)
    }
}

/// Observation whose target is changed.
fn on(mut observed: Observed, change: impl FnOnce(&mut ObservedTarget)) -> Observed {
    change(observed.target.as_mut().expect("a target"));
    observed
}

fn of_extents(target: &mut ObservedTarget) -> &mut Extents {
    target.region.extents.as_mut().expect("seen")
}

fn served(observed: Observed) -> ServedBy {
    let verdict = judged(observed).reads;
    verdict.expect("it read").served_by
}

#[test]
fn reads_are_judged_like_a_trials_reads() {
    assert_eq!(served(reader(64 * MIB)), ServedBy::Device);
    assert_eq!(served(reader(0)), ServedBy::PageCache);
    let half = judged(reader(32 * MIB)).reads.expect("it read");
    assert_eq!(
        (half.served_by, half.device_fraction),
        (ServedBy::Mixed, Some(0.5))
    );
    let hole = on(reader(0), |target| {
        target.region.before = Some(Residency::default());
        of_extents(target).hole_bytes = 64 * MIB;
    });
    assert_eq!(served(hole), ServedBy::Hole);
    let memory = on(reader(0), |target| target.medium = Medium::Memory);
    assert_eq!(served(memory), ServedBy::NotStorage);
}

/// A file with `resident_bytes` in the page cache at the end, and no bytes from storage.
#[test]
fn uncached_bytes_need_not_come_from_the_cache() {
    let of = |resident_bytes| {
        let mut observed = unnamed(0, 1);
        observed.files[0].after = Some(Residency {
            looked_bytes: 64 * MIB,
            resident_bytes,
            ..Residency::default()
        });
        observed
    };
    assert_eq!(served(of(64 * MIB)), ServedBy::PageCache);
    assert_eq!(served(of(MIB)), ServedBy::PageCache);
    let gone = judged(of(0)).reads.expect("it read");
    assert_eq!(
        (gone.served_by, gone.device_fraction),
        (ServedBy::Unknown, None)
    );
    insta::assert_snapshot!(gone.reason, @"storage carried next to none of it, and the page cache held none of its files at the end: copied without being read (copy_file_range), or dropped from the page cache meanwhile");
    // The earlier content of the page cache is known for a named file.
    let named = Observed {
        target: reader(0).target,
        ..of(0)
    };
    assert_eq!(served(named), ServedBy::PageCache);
}

/// A file that the user did not name: its earlier content of the page cache is unknown.
fn unnamed(read_bytes: u64, files: usize) -> Observed {
    Observed {
        target: None,
        files: vec![evidence::tests::file_of(Medium::Storage, 64 * MIB); files],
        ..reader(read_bytes)
    }
}

/// A program that wrote `own` bytes by calls, while the disk wrote `device`, and `dirty` bytes were to be written at its start.
fn writer(own: u64, device: u64, dirty: u64) -> Observed {
    let mut observed = unnamed(0, 0);
    observed.ways.reads = OpenWays::default();
    observed.processes.io = Some(ProcessIo {
        write_bytes: own,
        ..ProcessIo::default()
    });
    observed.devices[0].traffic = Some(DeviceStat {
        write_bytes: device,
        ..DeviceStat::default()
    });
    observed.dirty_before_bytes = Some(dirty);
    observed
}

fn wrote(observed: Observed) -> ServedVerdict {
    judged(observed).writes.expect("it wrote")
}

#[test]
fn a_remedy_is_named_if_it_helps() {
    let reason = |observed| judged(observed).reads.expect("it read").reason;
    insta::assert_snapshot!(reason(unnamed(0, 1)), @"0.0 % of the bytes came from the device; what the page cache held before is unknown: name the file with --on");
    insta::assert_snapshot!(reason(unnamed(0, 2)), @"0.0 % of the bytes came from the device; what the page cache held before is unknown");
    // All came from the device, whatever the page cache held.
    insta::assert_snapshot!(reason(unnamed(64 * MIB, 1)), @"100 % of the bytes came from the device");
    insta::assert_snapshot!(reason(reader(32 * MIB)), @"50 % of the bytes came from the device");
}

#[test]
fn pipes_make_the_share_refer_to_everything_read() {
    let piped = |read_bytes, piped_bytes| {
        let mut observed = unnamed(read_bytes, 1);
        observed.ways.inner_pipes = true;
        if let Some(io) = &mut observed.processes.io {
            (io.rchar, io.wchar) = (64 * MIB + piped_bytes, piped_bytes);
        }
        judged(observed).reads.expect("it read")
    };
    let some = piped(16 * MIB, 64 * MIB);
    assert_eq!(
        (some.served_by, some.device_fraction),
        (ServedBy::Mixed, Some(0.125))
    );
    let all = piped(64 * MIB, 128 * MIB);
    assert_eq!(
        (all.served_by, all.device_fraction),
        (ServedBy::Unknown, None)
    );
    insta::assert_snapshot!(all.reason, @"up to 128 MiB of what its calls read came from its own pipes");
}

/// The page cache can have served all of a small file, and faults have fetched the program.
#[test]
fn faults_that_may_explain_everything_leave_it_open() {
    let of = |faults: u64| {
        let mut observed = reader(64 * MIB);
        observed.processes.fault_bytes = Some(faults);
        let verdict = judged(observed).reads.expect("it read");
        (verdict.served_by, verdict.device_fraction)
    };
    assert_eq!(of(64 << 10), (ServedBy::Device, Some(1.0)));
    assert_eq!(of(2 * MIB), (ServedBy::Device, None));
    assert_eq!(of(64 * MIB), (ServedBy::Unknown, None));
}

#[test]
fn mixed_buffered_and_direct_writes_share_one_verdict() {
    let of = |dirty| {
        let mut observed = writer(80 * MIB, 16 * MIB, dirty);
        observed.ways.writes = OpenWays {
            direct: true,
            buffered: true,
        };
        let verdict = wrote(observed);
        assert_eq!(verdict.served_by, ServedBy::Mixed);
        (verdict.device_fraction, verdict.reason)
    };
    let (share, reason) = of(0);
    assert_eq!(share, Some(0.2));
    insta::assert_snapshot!(reason, @"20 % of the bytes reached the device within the timed span");
    // 8 of the 16 MiB on the device may belong to others: the class is the same, the share is unknown.
    let (share, reason) = of(8 * MIB);
    assert_eq!(share, None);
    insta::assert_snapshot!(reason, @"its files could not be examined at its end (deleted, or open too briefly), and the disk may have written for others: between 8 MiB and 16 MiB of it can be the program's");
}

#[test]
fn uncounted_requests_are_judged_only_without_other_sources() {
    let ring = |ways: OpenWays, read_bytes| {
        let mut observed = reader(read_bytes);
        observed.ways.uncounted.insert(UncountedWay::IoUring);
        observed.ways.reads = ways;
        observed.ways.uncounted_reads = ways;
        observed
    };
    let direct = OpenWays {
        direct: true,
        buffered: false,
    };
    let buffered = OpenWays {
        direct: false,
        buffered: true,
    };
    assert_eq!(served(ring(direct, 64 * MIB)), ServedBy::Device);
    assert_eq!(served(ring(buffered, 64 * MIB)), ServedBy::Unknown);
    assert_eq!(served(ring(direct, 0)), ServedBy::Unknown);
    // Another of its processes reads by calls, which are counted: few bytes change nothing.
    let mut beside = ring(direct, 64 * MIB);
    beside.ways.reads.buffered = true;
    assert_eq!(served(beside.clone()), ServedBy::Unknown);
    beside.processes.io.as_mut().expect("counted").rchar = 1 << 10;
    assert_eq!(served(beside), ServedBy::Device);
    let device = on(ring(direct, 64 * MIB), |target| {
        target.is_device = true;
        target.region.extents = None;
    });
    assert_eq!(served(device), ServedBy::Device);
    let with_holes = on(ring(direct, 32 * MIB), |target| {
        of_extents(target).hole_bytes = 32 * MIB;
    });
    assert_eq!(served(with_holes), ServedBy::Unknown);
}

#[test]
fn possible_foreign_writes_leave_the_verdict_open() {
    let of = |dirty| wrote(writer(64 * MIB, 64 * MIB, dirty)).served_by;
    assert_eq!(of(0), ServedBy::Device);
    assert_eq!(of(64 * MIB), ServedBy::Unknown);
}

/// A file with an earlier run's bytes still to be written, which the program cuts off before it writes the same once more.
#[test]
fn dirty_bytes_of_earlier_runs_are_not_counted() {
    let cancelled = |dirty| {
        let mut observed = writer(64 * MIB, 64 * MIB, dirty);
        observed.processes.cancelled_write_bytes = 64 * MIB;
        observed
    };
    let verdict = wrote(cancelled(64 * MIB));
    assert_eq!(verdict.served_by, ServedBy::Unknown);
    insta::assert_snapshot!(verdict.reason, @"it discarded 64 MiB of dirty data, of which up to 64 MiB may be from before its start (run 'sync' first)");
    // At most the bytes that were dirty then, whatever it discarded.
    insta::assert_snapshot!(wrote(cancelled(300 << 10)).reason, @"it discarded 64 MiB of dirty data, of which up to 300 KiB may be from before its start (run 'sync' first)");
    // After 'sync' no byte was dirty: the discarded bytes are its own, and none is left.
    assert_eq!(judged(cancelled(0)).writes, None);
}

/// The account of a mount counts all processes, the account of the program counts its own fetches.
#[test]
fn bytes_for_others_are_not_the_programs() {
    let of = |own: u64, mount: u64| {
        let mut observed = on(reader(own), |target| {
            target.medium = Medium::Elsewhere;
            target.region.before = None;
        });
        observed.devices.clear();
        observed.nfs = Some(NfsIo {
            read_bytes: mount,
            write_bytes: 0,
        });
        served(observed)
    };
    assert_eq!(of(64 * MIB, 64 * MIB), ServedBy::Network);
    assert_eq!(of(0, 64 * MIB), ServedBy::PageCache);
    assert_eq!(of(32 * MIB, 64 * MIB), ServedBy::Mixed);
}
