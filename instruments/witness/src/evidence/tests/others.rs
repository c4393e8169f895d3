//! Tests of the traffic that is attributed to other processes.

use super::*;
use iolab_analysis::carried_below::OWN_DATA;

/// Bytes that others wrote, MiB.
fn written(observed: &Observed) -> (u64, u64) {
    match Reading::of(observed).others() {
        OtherUse::Some { written, .. } => (written.least / MIB, written.most / MIB),
        other => panic!("{other:?}"),
    }
}

/// Dirty pages are written back whoever dirtied them, so write-back alone does not prove use by others.
#[test]
fn earlier_dirty_pages_are_not_use_by_others() {
    let mut observed = reader(64 * MIB, 0, 0, 0);
    observed.subject = Subject::Process {
        pid: 7,
        command: vec!["fio".to_owned()],
    };
    observed.devices[0].traffic = Some(traffic(0, 48 * MIB));
    by_another(&mut observed, 0, 48 * MIB);
    assert_eq!(written(&observed), (48, 48));
    observed.dirty_before_bytes = Some(40 * MIB);
    assert_eq!(written(&observed), (8, 48));
    observed.dirty_before_bytes = None;
    assert_eq!(written(&observed), (0, 48));
}

/// A program that was started here has dirtied nothing before: no more than it wrote can lie in pages that were dirty then.
#[test]
fn earlier_dirty_pages_are_not_the_programs() {
    let mut observed = reader(64 * MIB, 0, 0, 0);
    observed.devices[0].traffic = Some(traffic(0, 48 * MIB));
    observed.dirty_before_bytes = Some(40 * MIB);
    by_another(&mut observed, 0, 48 * MIB);
    assert_eq!(written(&observed), (48, 48));
    if let Some(io) = &mut observed.processes.io {
        io.wchar = 16 * MIB;
    }
    assert_eq!(written(&observed), (32, 48));
    // All of it went to `/dev/null`.
    observed.ways.sinks.insert(NoStorage::CharDevice);
    assert_eq!(written(&observed), (48, 48));
    observed.ways.writes.buffered = true;
    assert_eq!(written(&observed), (32, 48));
    // Mappings write without calls.
    observed.ways.uncounted.insert(UncountedWay::Mmap);
    assert_eq!(written(&observed), (8, 48));
}

/// The bytes that a file system may write of its own are not nothing.
#[test]
fn little_use_differs_from_none() {
    let of = |others: u64| {
        let mut observed = reader(MIB, MIB, MIB, 0);
        observed.devices[0].traffic = Some(traffic(MIB, others));
        Reading::of(&observed).others()
    };
    assert_eq!(of(0), OtherUse::None);
    assert_eq!(of(4096), OtherUse::Little { most: 4096 });
    assert_eq!(of(OWN_DATA), OtherUse::Little { most: OWN_DATA });
    assert!(matches!(of(OWN_DATA + 1), OtherUse::Some { .. }));
}

/// Synchronous writes make a file system write its journal: 4.38 MiB for 200 of 4 KiB on ext4.
#[test]
fn journal_is_not_traffic_of_other_processes() {
    let of = |flushes: u64, others: u64| {
        let mut observed = writer(0, 80 * MIB);
        observed.others.unread = 1;
        observed.devices[0].traffic = Some(DeviceStat {
            flush_ios: flushes,
            ..traffic(0, 80 * MIB)
        });
        if others > 0 {
            by_another(&mut observed, 0, others);
        }
        written(&observed)
    };
    assert_eq!(of(0, 0), (0, 16), "no process wrote, as far as is known");
    assert_eq!(of(0, 16 * MIB), (16, 16));
    assert_eq!(of(128, 16 * MIB), (8, 16));
    assert_eq!(of(256, 16 * MIB), (0, 16));
}

/// The counters of a device count a request at its end, the account of a process at its beginning: what was in flight at the start can
/// be another's that no account has.
#[test]
fn requests_in_flight_at_start_are_excluded() {
    let mut observed = reader(3 * MIB, 3 * MIB, 4 * MIB, 9 * MIB);
    let least = |observed: &Observed| {
        let carried = Reading::of(observed).carried_reads();
        carried.expect("all is counted").least
    };
    by_another(&mut observed, 2 * MIB, 0);
    assert_eq!(least(&observed), 2 * MIB);
    observed.devices[0].in_flight.writes = true;
    assert_eq!(least(&observed), 2 * MIB);
    observed.devices[0].in_flight.reads = true;
    assert_eq!(least(&observed), 0);

    let mut observed = writer(0, 64 * MIB);
    observed.files.clear();
    let least = |observed: &Observed| {
        let carried = Reading::of(observed).carried_writes();
        carried.expect("all is counted").least
    };
    by_another(&mut observed, 0, 24 * MIB);
    assert_eq!(least(&observed), 40 * MIB);
    observed.devices[0].in_flight.writes = true;
    assert_eq!(least(&observed), 0);
}
