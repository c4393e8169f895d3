use iolab_workload::counters::{Bottom, DeviceStat, NfsIo, ProcessIo};
use iolab_workload::region_state::Extents;
use proptest::prelude::*;

use super::*;

const MB: u64 = 1_000_000;

/// Account and device counts in bytes: (process read, process write), (device read, device write).
fn counters(process: Option<(u64, u64)>, device: Option<(u64, u64)>) -> Counters {
    Counters {
        process_io: process.map(|(read_bytes, write_bytes)| ProcessIo {
            read_bytes,
            write_bytes,
            ..ProcessIo::default()
        }),
        device: device.map(|(read_bytes, write_bytes)| DeviceStat {
            read_bytes,
            write_bytes,
            ..DeviceStat::default()
        }),
        ..Counters::default()
    }
}

/// Buffered reads of the whole region, from storage.
fn buffered<'a>(counters: &'a Counters, region: &'a Region) -> Facts<'a> {
    Facts {
        does_io: true,
        medium: Medium::Storage,
        direct: false,
        is_program: false,
        read_bytes: MB,
        write_bytes: 0,
        counters,
        kept_in_files: 0,
        region_bytes: MB,
        is_named: true,
        region,
    }
}

fn of(direct: bool, read_bytes: u64, write_bytes: u64, counters: &Counters) -> ServedVerdict {
    judge(&Facts {
        direct,
        read_bytes,
        write_bytes,
        ..buffered(counters, &Region::default())
    })
}

#[test]
fn accounts_of_process_and_device_decide() {
    use ServedBy::{Device, Mixed, PageCache, Unknown};
    const HALF: u64 = MB / 2;
    // Direct, the bytes moved, and the accounts of process and device.
    for (direct, (read, written), process, device, expected) in [
        (true, (MB, 0), Some((MB, 0)), Some((MB, 0)), Device),
        (false, (MB, 0), Some((3 * MB, 0)), Some((MB, 0)), Device),
        (false, (MB, 0), Some((960_000, 0)), Some((MB, 0)), Device),
        (false, (MB, 0), Some((HALF, 0)), Some((MB, 0)), Mixed),
        (false, (MB, 0), Some((50_000, 0)), Some((MB, 0)), PageCache),
        (true, (MB, 0), Some((0, 0)), Some((MB, 0)), Unknown),
        (true, (MB, 0), Some((HALF, 0)), Some((MB, 0)), Mixed),
        // Without an account of the process the device decides.
        (false, (MB, 0), None, Some((MB, 0)), Device),
        (false, (MB, 0), None, None, Unknown),
        // Buffered writes show on the device alone.
        (false, (0, MB), Some((0, MB)), Some((0, 0)), PageCache),
        (false, (0, MB), Some((0, MB)), Some((0, MB)), Device),
        (false, (0, MB), Some((0, MB)), Some((0, HALF)), Mixed),
        (false, (0, MB), Some((0, MB)), None, Unknown),
        // Direct writes have to agree in both.
        (true, (0, MB), Some((0, MB)), None, Device),
        (true, (0, MB), Some((0, MB)), Some((0, MB)), Device),
        (true, (0, MB), Some((0, MB)), Some((0, HALF)), Mixed),
        (true, (0, MB), Some((0, MB)), Some((0, 0)), Unknown),
        (true, (0, MB), None, None, Unknown),
        (true, (0, 0), Some((0, 0)), None, Unknown),
    ] {
        let verdict = of(direct, read, written, &counters(process, device));
        let context = format!("{direct} {read} {written} {process:?} {device:?}");
        assert_eq!(verdict.served_by, expected, "{context}: {}", verdict.reason);
    }
    let blind = of(false, 0, MB, &counters(Some((0, MB)), None));
    insta::assert_snapshot!(blind.reason, @"buffered writes show on the device only, and no device is known here whose counters can be read");
}

#[test]
fn mixed_trials_are_weighted_by_bytes() {
    // Reads from the cache, writes to the device, three to one.
    let verdict = of(false, 3 * MB, MB, &counters(Some((0, MB)), Some((0, MB))));
    assert_eq!(verdict.served_by, ServedBy::Mixed);
    assert!(
        verdict
            .device_fraction
            .is_some_and(|f| (f - 0.25).abs() < 1e-9)
    );
}

fn extents(hole: u64, unwritten: u64) -> Region {
    Region {
        extents: Some(Extents {
            looked_bytes: MB,
            hole_bytes: hole,
            unwritten_bytes: Some(unwritten),
        }),
        ..Region::default()
    }
}

fn owed(dirty: u64) -> Option<Residency> {
    Some(Residency {
        looked_bytes: MB,
        resident_bytes: MB,
        dirty_bytes: Some(dirty),
        writeback_bytes: Some(0),
    })
}

fn reads(direct: bool, fetched: u64, region: &Region) -> ServedVerdict {
    judge(&Facts {
        direct,
        ..buffered(&counters(Some((fetched, 0)), Some((fetched, 0))), region)
    })
}

/// Buffered writes of the whole region, with nothing read.
fn written<'a>(counters: &'a Counters, region: &'a Region) -> Facts<'a> {
    Facts {
        read_bytes: 0,
        write_bytes: MB,
        ..buffered(counters, region)
    }
}

#[test]
fn holes_and_cached_pages_explain_unfetched_reads() {
    use ServedBy::{Device, Hole, Mixed, PageCache, Unknown};
    const HALF: u64 = MB / 2;
    let dirty = Region {
        before: owed(MB),
        ..extents(0, MB)
    };
    let half_a_hole = Region {
        before: held(0).before,
        ..extents(HALF, 0)
    };
    // Direct, the bytes that were fetched, and the region.
    for (direct, fetched, region, expected) in [
        (true, 0, extents(HALF, HALF), Hole),
        (false, 0, extents(HALF, HALF), Hole),
        // Only 4 % of the region have data.
        (true, 40_000, extents(960_000, 0), Hole),
        (false, 40_000, extents(960_000, 0), Hole),
        // The part that was read is the part that has data.
        (true, MB, extents(960_000, 0), Device),
        (true, 600_000, extents(400_000, 0), Hole),
        // Other causes outweigh.
        (true, 400_000, extents(100_000, 0), Mixed),
        // Dirty bytes may still fill unwritten space.
        (false, 0, dirty, PageCache),
        // Compressed to a tenth, or fetched by another process.
        (false, 0, held(0), Unknown),
        (false, MB / 10, held(0), Unknown),
        (false, 0, held(MB), PageCache),
        (false, MB, held(0), Device),
        (false, HALF, held(HALF), Mixed),
        (false, HALF, half_a_hole, Hole),
    ] {
        let verdict = reads(direct, fetched, &region);
        assert_eq!(verdict.served_by, expected, "{fetched}: {verdict:?}");
    }
    let empty = reads(true, 0, &extents(HALF, HALF));
    assert_eq!(empty.device_fraction, Some(0.0));
    let told = [
        (true, 600_000, extents(400_000, 0)),
        (false, MB, extents(0, 0)),
        (false, 0, extents(0, 0)),
        (false, MB, extents(400_000, 0)),
        (true, 0, extents(0, 0)),
    ]
    .map(|(direct, fetched, region)| reads(direct, fetched, &region).reason);
    insta::assert_snapshot!([&[empty.reason], &told[..]].concat().join("\n"), @r"
    100 % of the region lie in holes or unwritten extents, which read as zeros
    60 % of the bytes came from the device; 40 % of the region lie in holes or unwritten extents, which read as zeros
    100 % of the bytes came from the device; the content of the page cache is not visible here
    0.0 % of the bytes came from the device; the content of the page cache is not visible here
    100 % of the bytes came from the device; the content of the page cache is not visible here
    direct reads did not reach the device; possible cause: a file system that ignores O_DIRECT
    ");
}

#[test]
fn others_bytes_are_not_taken_for_ours() {
    // One megabyte dirtied, all of it still dirty, while others wrote as much to the device.
    let counters = counters(Some((0, MB)), Some((0, MB)));
    let of = |still_dirty| {
        let region = Region {
            before: owed(0),
            after: owed(still_dirty),
            ..Region::default()
        };
        judge(&written(&counters, &region))
    };
    assert_eq!(of(MB).served_by, ServedBy::PageCache);
    assert_eq!(of(MB / 2).served_by, ServedBy::Mixed);
    assert_eq!(of(0).served_by, ServedBy::Device);
}

/// Reads of `fetched` bytes from a device, while the disks below it carried `below`.
fn with_bottom(fetched: u64, below: u64, in_file: bool, passes_on: bool) -> Counters {
    Counters {
        bottom: Some(Bottom {
            stat: DeviceStat {
                read_bytes: below,
                ..DeviceStat::default()
            },
            in_file,
            passes_on,
        }),
        ..counters(Some((fetched, 0)), Some((fetched, 0)))
    }
}

#[test]
fn a_device_without_traffic_on_disks_is_disbelieved() {
    let beside = |read_bytes, in_file, passes_on, fetched| {
        let counters = with_bottom(fetched, read_bytes, in_file, passes_on);
        of(true, MB, 0, &counters)
    };
    let of = |read_bytes, in_file, fetched| beside(read_bytes, in_file, false, fetched);
    let cached = of(0, true, MB);
    assert_eq!(cached.served_by, ServedBy::PageCache);
    insta::assert_snapshot!(cached.reason, @"the disks below the device carried only 0.0 % of the bytes: the page cache holds the backing file of the loop device");
    assert_eq!(of(MB / 2, true, MB).served_by, ServedBy::Mixed);
    assert_eq!(of(MB / 2, false, MB).served_by, ServedBy::Unknown);
    // The page cache serves nothing of a loop device with direct I/O.
    let sparse = beside(0, true, true, MB);
    assert_eq!(sparse.served_by, ServedBy::Unknown);
    insta::assert_snapshot!(sparse.reason, @"the disks below the device carried only 0.0 % of the bytes: holes or unwritten extents of the backing file of the loop device may have served the rest");
    // The device agrees with the process, or carried more (read-ahead).
    assert_eq!(of(MB, true, MB).served_by, ServedBy::Device);
    assert_eq!(of(2 * MB, false, MB).served_by, ServedBy::Device);
    // If the device itself carried nothing, the disks below it do not change the reason.
    assert_eq!(of(0, true, 0).reason, of(MB, true, 0).reason);
}

/// A loop device over a file that the page cache can hold, below which the disks carried as much and more.
#[test]
fn foreign_reads_below_a_loop_device_are_disbelieved() {
    let of = |below: u64, passes_on| {
        let counters = with_bottom(MB, below, true, passes_on);
        judge(&Facts {
            kept_in_files: kept_in_files(&counters),
            ..buffered(&counters, &Region::default())
        })
    };
    assert_eq!(of(MB, false).served_by, ServedBy::Device);
    let beside = of(10 * MB, false);
    assert_eq!(beside.served_by, ServedBy::Unknown);
    insta::assert_snapshot!(beside.reason, @"the page cache can hold the backing file of the loop device, and other processes used the disks below: what these carried can be theirs");
    assert_eq!(of(10 * MB, true).served_by, ServedBy::Device);
}

fn held(bytes: u64) -> Region {
    Region {
        before: Some(Residency {
            resident_bytes: bytes,
            ..owed(0).unwrap_or_default()
        }),
        ..Region::default()
    }
}

#[test]
fn cached_bytes_need_no_account() {
    let of = |direct, region: &Region| {
        judge(&Facts {
            direct,
            ..buffered(&counters(None, None), region)
        })
        .served_by
    };
    assert_eq!(of(false, &held(MB)), ServedBy::PageCache);
    assert_eq!(of(false, &held(MB / 2)), ServedBy::Unknown);
    assert_eq!(of(true, &held(MB)), ServedBy::Unknown);
}

#[test]
fn dirty_pages_that_cannot_be_counted_are_told() {
    // As mincore reports them: resident, without a report of dirty pages.
    let resident = Some(Residency {
        dirty_bytes: None,
        writeback_bytes: None,
        ..held(MB).before.unwrap_or_default()
    });
    let region = Region {
        before: resident,
        after: resident,
        ..Region::default()
    };
    let counters = counters(Some((0, MB)), Some((0, MB)));
    let verdict = judge(&written(&counters, &region));
    assert_eq!(verdict.served_by, ServedBy::Device, "{verdict:?}");
    insta::assert_snapshot!(verdict.reason, @"100 % of the bytes reached the device; writes of other processes to the device cannot be distinguished here");
}

#[test]
fn repeated_reads_come_from_the_page_cache() {
    let verdict = judge(&Facts {
        read_bytes: 100 * MB,
        ..buffered(&counters(Some((MB, 0)), Some((MB, 0))), &held(0))
    });
    assert_eq!(verdict.served_by, ServedBy::PageCache, "{verdict:?}");
}

#[test]
fn bytes_of_processes_or_other_machines_are_unknown() {
    // A network file system's account counts what went over the network as storage.
    let busy = counters(Some((MB, MB)), None);
    let of = |direct, read_bytes, write_bytes, region: &Region| {
        judge(&Facts {
            medium: Medium::Elsewhere,
            direct,
            read_bytes,
            write_bytes,
            ..buffered(&busy, region)
        })
    };
    for (direct, read, written) in [(true, MB, 0), (true, 0, MB), (false, MB, 0), (false, 0, MB)] {
        let verdict = of(direct, read, written, &held(0));
        assert_eq!(verdict.served_by, ServedBy::Unknown, "{verdict:?}");
        assert!(verdict.reason.contains(ServedVerdict::ELSEWHERE));
    }
    assert_eq!(of(false, MB, 0, &held(MB)).served_by, ServedBy::PageCache);
}

#[test]
fn an_nfs_mounts_account_counts_the_network_bytes() {
    // With read-ahead, or reads by others, at most the requested bytes are counted.
    for (direct, fetched, served_by) in [
        (true, MB, ServedBy::Network),
        (false, 2 * MB, ServedBy::Network),
        (true, MB / 2, ServedBy::Unknown),
        (false, MB / 2, ServedBy::Mixed),
        (false, 0, ServedBy::PageCache),
    ] {
        for (read_bytes, write_bytes) in [(MB, 0), (0, MB)] {
            let counters = Counters {
                nfs: Some(NfsIo {
                    read_bytes: read_bytes / MB * fetched,
                    write_bytes: write_bytes / MB * fetched,
                }),
                ..counters(Some((MB, MB)), None)
            };
            let verdict = judge(&Facts {
                medium: Medium::Elsewhere,
                direct,
                read_bytes,
                write_bytes,
                ..buffered(&counters, &held(0))
            });
            assert_eq!(verdict.served_by, served_by, "{verdict:?}");
        }
    }
}

fn medium() -> impl Strategy<Value = Medium> {
    prop_oneof![
        Just(Medium::Storage),
        Just(Medium::Memory),
        Just(Medium::Elsewhere)
    ]
}

proptest! {
    #[test]
    fn any_counters_give_a_verdict_with_a_reason(
        does_io: bool, direct: bool, medium in medium(), read_bytes in 0..1u64 << 60, write_bytes in 0..1u64 << 60,
        process: Option<(u64, u64)>, device: Option<(u64, u64)>, bottom: Option<(u64, u64, bool, bool)>,
        left in proptest::option::of((any::<u64>(), any::<u64>())), empty: Option<(u64, u64)>, region_bytes: u64,
    ) {
        let counters = Counters {
            bottom: bottom.map(|(read_bytes, write_bytes, in_file, passes_on)| Bottom {
                stat: DeviceStat { read_bytes, write_bytes, ..DeviceStat::default() },
                in_file,
                passes_on,
            }),
            ..counters(process, device)
        };
        let region = Region {
            before: left.and_then(|(dirty, _)| owed(dirty)),
            after: left.and_then(|(_, dirty)| owed(dirty)),
            ..empty.map_or_else(Region::default, |(hole, unwritten)| extents(hole, unwritten))
        };
        let facts = Facts {
            does_io, medium, direct, read_bytes, write_bytes, counters: &counters, region_bytes,
            is_program: false,
            kept_in_files: 0, is_named: true, region: &region,
        };
        let verdict = judge(&facts);
        prop_assert!(!verdict.reason.is_empty());
        prop_assert!(verdict.device_fraction.is_none_or(|f| (0.0..=1.0).contains(&f)));
        prop_assert!((does_io && medium != Medium::Memory) || verdict.served_by == ServedBy::NotStorage);
        prop_assert!(medium != Medium::Elsewhere || verdict.served_by != ServedBy::Device);
    }
}
