//! Large folios of the page cache, which an account counts as a whole.

use super::*;

/// A program that wrote 300 pages into a cached file of 60 MiB. Its account counts `dirtied` bytes of whole 1
/// MiB folios, of which `owed` bytes are still dirty.
fn few_pages(dirtied: u64, owed: u64, device: u64) -> Observed {
    let mut observed = writer(owed, device);
    observed.processes.io = Some(ProcessIo {
        wchar: 300 << 12,
        syscw: 300,
        write_bytes: dirtied,
        ..ProcessIo::default()
    });
    observed.ways.writes.buffered = true;
    observed.disks[0].traffic = traffic(0, device);
    // What others wrote is not known.
    observed.others.unread = 1;
    observed
}

fn bounds(least: u64, most: u64) -> Bounds {
    Bounds { least, most }
}

#[test]
fn bytes_of_calls_count_if_account_has_folios() {
    let observed = few_pages(58 * MIB, 0, 300 << 12);
    let reading = Reading::of(&observed);
    let asked = Asked::Bytes(Bounds::exact(300 << 12));
    assert_eq!(reading.asked_writes(), asked);
    assert_eq!(reading.carried_writes(), Some(Bounds::exact(300 << 12)));
    assert_eq!(reading.others(), OtherUse::None);
    assert!(reading.counts_folios() && reading.has_left_page_cache());
    // 25 MiB that another process writes meanwhile are not its own.
    let beside = few_pages(58 * MIB, 0, 26 * MIB);
    let reading = Reading::of(&beside);
    assert_eq!(reading.asked_writes(), asked);
    let carried = bounds(300 << 12, 26 * MIB);
    assert_eq!(reading.carried_writes(), Some(carried));
}

#[test]
fn dirty_folios_leave_write_back_open() {
    let of = |owed: u64| {
        let observed = few_pages(58 * MIB, owed, 58 * MIB);
        Reading::of(&observed).carried_writes()
    };
    // Any page of the last folio can be all that is dirty in it.
    assert_eq!(of(MIB), Some(bounds((300 << 12) - MIB, 57 * MIB)));
    assert_eq!(of(58 * MIB), Some(Bounds::exact(0)));
}

/// The bytes of calls include those written to a pipe.
#[test]
fn calls_that_wrote_elsewhere_leave_an_interval() {
    let mut observed = few_pages(58 * MIB, 0, 300 << 12);
    observed.ways.sinks.insert(NoStorage::Pipe);
    let asked = |observed: &Observed| Reading::of(observed).asked_writes();
    let open = |most| Asked::Bytes(bounds(58 * MIB / 512, most));
    assert_eq!(asked(&observed), open(300 << 12));
    // No file was seen open: a mapping may have been missed as well.
    observed.ways.sinks.clear();
    observed.ways.writes = OpenWays::default();
    assert_eq!(asked(&observed), open(58 * MIB));
    // More than its calls can have dirtied in folios was written another way.
    let exact = Asked::Bytes(Bounds::exact(2000 * MIB));
    assert_eq!(asked(&few_pages(2000 * MIB, 0, 2000 * MIB)), exact);
}

/// Calls do not show how much a ring or a mapping wrote, but the disks do.
#[test]
fn disk_traffic_reveals_folios_of_a_ring() {
    let of = |device: u64| {
        let mut observed = few_pages(58 * MIB, 0, device);
        observed.ways.uncounted.insert(UncountedWay::IoUring);
        Reading::of(&observed).asked_writes()
    };
    assert_eq!(of(2 * MIB), Asked::Bytes(bounds(58 * MIB / 512, 58 * MIB)));
    assert_eq!(of(58 * MIB), Asked::Bytes(Bounds::exact(58 * MIB)));
}

/// Direct I/O has no folios, and small appends dirty whole pages.
#[test]
fn direct_writes_are_counted_as_they_are() {
    let mut observed = few_pages(58 * MIB, 0, 58 * MIB);
    observed.ways.writes = OpenWays {
        direct: true,
        buffered: false,
    };
    let asked = |observed: &Observed| Reading::of(observed).asked_writes();
    assert_eq!(asked(&observed), Asked::Bytes(Bounds::exact(58 * MIB)));
    let mut appends = few_pages(4000 << 10, 0, 4000 << 10);
    if let Some(io) = &mut appends.processes.io {
        (io.wchar, io.syscw) = (100_000, 1000);
    }
    assert_eq!(asked(&appends), Asked::Bytes(Bounds::exact(100_000)));
    if let Some(io) = &mut appends.processes.io {
        (io.wchar, io.syscw) = (100, 10);
    }
    assert_eq!(asked(&appends), Asked::Nothing);
}
