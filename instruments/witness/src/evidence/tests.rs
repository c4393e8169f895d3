use crate::observed::{
    DiskTraffic, GroupHolds, GroupTraffic, InFlight, ObservedDevice, ObservedFile, ObservedTarget,
    OpenWays, OtherProcess, OtherProcesses, ProcessTotals, Times, TracedDisk,
};
use iolab_workload::counters::{DeviceStat, DeviceWaits, NfsIo};
use iolab_workload::region_state::Residency;
use proptest::prelude::*;

use super::*;

mod code;
mod folios;
mod others;
mod stored;
mod unseen;

const MIB: u64 = 1 << 20;

/// Bounds in MiB.
fn between(least: u64, most: u64) -> Bounds {
    Bounds {
        least: least * MIB,
        most: most * MIB,
    }
}

fn traffic(read_bytes: u64, write_bytes: u64) -> DeviceStat {
    DeviceStat {
        read_ios: 1,
        read_bytes,
        write_bytes,
        ..DeviceStat::default()
    }
}

/// A program that read `rchar` bytes by calls, of which storage carried `read_bytes`. The disks vda and vdb
/// carried the given bytes.
pub(crate) fn reader(rchar: u64, read_bytes: u64, vda: u64, vdb: u64) -> Observed {
    let disk = |name: &str, read| DiskTraffic {
        name: name.to_owned(),
        number: (8, 0),
        traffic: traffic(read, 0),
        in_flight: InFlight::NONE,
        ..DiskTraffic::default()
    };
    let mut observed = Observed {
        subject: Subject::Program(vec!["fio".to_owned()]),
        processes: ProcessTotals {
            io: Some(ProcessIo {
                rchar,
                read_bytes,
                ..ProcessIo::default()
            }),
            ..ProcessTotals::default()
        },
        devices: vec![ObservedDevice {
            name: "vda".to_owned(),
            disks: vec!["vda".to_owned()],
            traffic: Some(traffic(vda, 0)),
            in_flight: InFlight::NONE,
            ..ObservedDevice::default()
        }],
        disks: vec![disk("vda", vda), disk("vdb", vdb)],
        dirty_before_bytes: Some(0),
        ..Observed::default()
    };
    observed.ways.looks = 1;
    observed.ways.reads.buffered = true;
    observed
}

fn by_another(observed: &mut Observed, read_bytes: u64, write_bytes: u64) {
    observed.others.active.push(OtherProcess {
        read_bytes,
        write_bytes,
        ..OtherProcess::default()
    });
}

#[test]
fn carried_bytes_are_exact_on_single_disk() {
    let observed = reader(64 * MIB, 16 * MIB, 16 * MIB, 0);
    let reading = Reading::of(&observed);
    assert_eq!(reading.carried_reads(), Some(Bounds::exact(16 * MIB)));
    assert_eq!(reading.asked_reads(), Asked::Bytes(Bounds::exact(64 * MIB)));
    assert_eq!(reading.others(), OtherUse::None);
}

#[test]
fn accounts_of_others_close_interval_of_second_disk() {
    let mut observed = reader(64 * MIB, 16 * MIB, 20 * MIB, 10 * MIB);
    by_another(&mut observed, 14 * MIB, 0);
    let carried = |observed: &Observed| Reading::of(observed).carried_reads();
    let open = between(6, 16);
    assert_eq!(carried(&observed), Some(open));
    observed.others.active[0].read_bytes = 4 * MIB;
    assert_eq!(carried(&observed), Some(Bounds::exact(16 * MIB)));
    // A process whose account cannot be read may have read any number of bytes.
    observed.others.unread = 1;
    assert_eq!(carried(&observed), Some(open));
}

#[test]
fn group_or_trace_closes_interval_of_second_disk() {
    let of = |change: fn(&mut Observed)| {
        let mut observed = reader(64 * MIB, 16 * MIB, 20 * MIB, 10 * MIB);
        observed.others.unread = 1;
        change(&mut observed);
        Reading::of(&observed).carried_reads()
    };
    let group = |read_bytes| {
        Some(GroupTraffic {
            read_bytes,
            write_bytes: 0,
        })
    };
    let open = between(6, 16);
    assert_eq!(of(|_| ()), Some(open));
    let counted = |holds, first: u64, second: u64| {
        let mut observed = reader(64 * MIB, 16 * MIB, 20 * MIB, 10 * MIB);
        observed.others.unread = 1;
        observed.group = Some(holds);
        observed.disks[0].of_group = group(first * MIB);
        observed.disks[1].of_group = group(second * MIB);
        Reading::of(&observed).carried_reads()
    };
    let exact = Some(Bounds::exact(12 * MIB));
    assert_eq!(counted(GroupHolds::Program, 12, 4), exact);
    assert_eq!(counted(GroupHolds::ProgramAndObserver, 12, 4), exact);
    // Others in the group, a process that left it, and one that was in it for a while.
    assert_eq!(counted(GroupHolds::Others, 12, 4), Some(open));
    assert_eq!(counted(GroupHolds::Program, 8, 4), Some(open));
    assert_eq!(counted(GroupHolds::Program, 12, 9), Some(open));
    let traced = of(|observed| {
        let mut disk = TracedDisk::default();
        disk.reads.bytes = 15 * MIB;
        observed.disks[0].traced = Some(disk);
    });
    let most = between(15, 16);
    assert_eq!(traced, Some(most));
    // A partition carried an unknown part of what its disk did.
    let partition = of(|observed| {
        observed.devices[0].name = "vda1".to_owned();
        observed.group = Some(GroupHolds::Program);
        for (disk, bytes) in observed.disks.iter_mut().zip([12 * MIB, 4 * MIB]) {
            disk.of_group = Some(GroupTraffic {
                read_bytes: bytes,
                write_bytes: 0,
            });
        }
    });
    let within = between(6, 12);
    assert_eq!(partition, Some(within));
}

#[test]
fn files_all_on_device_close_the_interval() {
    let mut observed = reader(64 * MIB, 64 * MIB, 64 * MIB, 21 * MIB);
    observed.others.unread = 1;
    let carried = |observed: &Observed| Reading::of(observed).carried_reads();
    let open = between(43, 64);
    assert_eq!(carried(&observed), Some(open));
    let file = |bytes: u64, has_device| ObservedFile {
        has_device,
        ..file_of(Medium::Storage, bytes)
    };
    observed.files = vec![file(64 * MIB, true)];
    // Its loader can have fetched a little of libraries that lie elsewhere.
    let but_little = Bounds {
        least: 64 * MIB - NOTEWORTHY,
        most: 64 * MIB,
    };
    assert_eq!(carried(&observed), Some(but_little));
    // A file on an unknown device, and a file smaller than what was fetched.
    observed.files.push(file(MIB, false));
    assert_eq!(carried(&observed), Some(open));
    observed.files = vec![file(32 * MIB, true)];
    assert_eq!(carried(&observed), Some(open));
    // Direct I/O may fetch the same bytes several times.
    observed.ways.reads = OpenWays {
        direct: true,
        buffered: false,
    };
    assert_eq!(carried(&observed), Some(but_little));
}

#[test]
fn uncounted_ways_of_io_leave_share_unknown() {
    let asked = |change: fn(&mut Observed)| {
        let mut observed = reader(64 * MIB, 16 * MIB, 16 * MIB, 0);
        change(&mut observed);
        match Reading::of(&observed).asked_reads() {
            Asked::Unknown { why, .. } => Some(why),
            Asked::Nothing | Asked::Bytes(_) => None,
        }
    };
    let ring = BTreeSet::from([UncountedWay::IoUring]);
    assert_eq!(
        asked(|one| one.ways.uncounted = BTreeSet::from([UncountedWay::IoUring])),
        Some(Unknown::Uncounted(ring))
    );
    let not_seen = |one: &mut Observed| one.ways.reads = OpenWays::default();
    assert_eq!(asked(not_seen), Some(Unknown::NotSeen));
    assert_eq!(
        asked(|one| one.processes.io = None),
        Some(Unknown::NoAccount)
    );
    let zeros = BTreeSet::from([NoStorage::CharDevice]);
    assert_eq!(
        asked(|one| one.ways.sources = BTreeSet::from([NoStorage::CharDevice])),
        Some(Unknown::Sources(zeros))
    );
    let mapped = |one: &mut Observed| {
        one.processes.io = Some(ProcessIo {
            rchar: MIB,
            read_bytes: 64 * MIB,
            ..ProcessIo::default()
        });
        one.disks[0].traffic.read_bytes = 64 * MIB;
    };
    assert_eq!(asked(mapped), Some(Unknown::MoreThanAsked));
    assert_eq!(asked(|_| ()), None);
}

/// An unseen ring reads without calls. Page faults that may have fetched as many bytes do not prove that there
/// was none.
#[test]
fn page_fault_bytes_leave_reads_open() {
    let mut observed = reader(64 << 10, 73 * MIB, 73 * MIB, 0);
    let asked = |observed: &Observed| Reading::of(observed).asked_reads();
    observed.processes.fault_bytes = Some(80 * MIB);
    let open = Unknown::Faults(between(0, 73));
    assert_eq!(asked(&observed), unknown(open, None));
    observed.processes.fault_bytes = Some(MIB);
    assert_eq!(asked(&observed), unknown(Unknown::MoreThanAsked, None));
    let quiet = reader(64 << 10, 128 << 10, 128 << 10, 0);
    assert_eq!(asked(&quiet), Asked::Nothing);
}

/// Read-ahead fetches a whole mapped file with one fault.
#[test]
fn faults_are_no_bound_where_data_is_mapped() {
    let mut observed = reader(64 * MIB, 32 * MIB, 32 * MIB, 0);
    observed.processes.fault_bytes = Some(MIB);
    let by_calls = |observed: &Observed| Reading::of(observed).fetched_by_calls();
    let few = between(31, 32);
    assert_eq!(by_calls(&observed), Some(few));
    observed.ways.uncounted.insert(UncountedWay::Mmap);
    let open = between(0, 32);
    assert_eq!(by_calls(&observed), Some(open));
}

#[test]
fn group_writes_beyond_accounts_are_not_counted() {
    let counted = |group: u64| {
        let mut observed = writer(0, 100 * MIB);
        observed.group = Some(GroupHolds::Program);
        observed.disks[0].of_group = Some(GroupTraffic {
            read_bytes: 0,
            write_bytes: group * MIB,
        });
        Reading::of(&observed).counted(Transfer::Write, 64 * MIB).0
    };
    assert_eq!(counted(64), 64 * MIB);
    assert_eq!(counted(90), 0);
}

#[test]
fn pipes_among_processes_leave_an_interval() {
    let mut observed = reader(64 * MIB, 0, 0, 0);
    observed.ways.inner_pipes = true;
    if let Some(io) = &mut observed.processes.io {
        io.wchar = 10 * MIB;
    }
    let bounds = between(54, 64);
    assert_eq!(Reading::of(&observed).asked_reads(), Asked::Bytes(bounds));
}

/// A program that wrote a file of 64 MiB, of which `owed` bytes are not written back.
fn writer(owed: u64, device: u64) -> Observed {
    let mut observed = reader(0, 0, 0, 0);
    observed.ways.reads = OpenWays::default();
    observed.processes.io = Some(ProcessIo {
        wchar: 64 * MIB,
        write_bytes: 64 * MIB,
        ..ProcessIo::default()
    });
    observed.files = vec![ObservedFile {
        is_read: false,
        is_written: true,
        after: Some(Residency {
            dirty_bytes: Some(owed),
            writeback_bytes: Some(0),
            ..Residency::default()
        }),
        ..file_of(Medium::Storage, 64 * MIB)
    }];
    observed.devices[0].traffic = Some(traffic(0, device));
    observed
}

#[test]
fn bytes_gone_from_page_cache_reached_device() {
    let mut observed = writer(0, 100 * MIB);
    by_another(&mut observed, 0, 36 * MIB);
    let reading = Reading::of(&observed);
    assert_eq!(reading.carried_writes(), Some(Bounds::exact(64 * MIB)));
    let written = Bounds::exact(36 * MIB);
    assert!(matches!(reading.others(), OtherUse::Some { written: found, .. } if found == written));
    let observed = writer(60 * MIB, 100 * MIB);
    assert_eq!(
        Reading::of(&observed).carried_writes(),
        Some(Bounds::exact(4 * MIB))
    );
}

/// The file may lie in an unmounted file system, or in another mount namespace.
#[test]
fn file_unreachable_at_end_leaves_write_back_open() {
    let mut observed = writer(0, 64 * MIB);
    let unseen = ObservedFile {
        after: None,
        ..observed.files[0].clone()
    };
    observed.files.push(unseen);
    by_another(&mut observed, 0, 50 * MIB);
    let reading = Reading::of(&observed);
    assert_eq!(reading.owed(), None);
    let open = between(14, 64);
    assert_eq!(reading.carried_writes(), Some(open));
    // An empty file has nothing to be written.
    observed.files[1].bytes = 0;
    assert_eq!(Reading::of(&observed).owed(), Some(0));
}

#[test]
fn unseen_files_leave_write_back_open() {
    let mut observed = writer(0, 100 * MIB);
    observed.files[0].bytes = MIB;
    observed.dirty_before_bytes = Some(30 * MIB);
    by_another(&mut observed, 0, 50 * MIB);
    let open = between(20, 64);
    assert_eq!(Reading::of(&observed).carried_writes(), Some(open));
    // Discarded dirty pages were never written to storage.
    observed.processes.cancelled_write_bytes = 64 * MIB;
    observed.dirty_before_bytes = Some(0);
    assert_eq!(Reading::of(&observed).asked_writes(), Asked::Nothing);
}

proptest! {
    #[test]
    fn the_truth_lies_within_the_bounds(
        own in 0..1u64 << 40, own_elsewhere in 0..1u64 << 40, others in 0..1u64 << 40, others_elsewhere in 0..1u64 << 40,
        kernel in any::<bool>(), unread in 0..2u64,
    ) {
        let mut observed = reader(0, own + own_elsewhere, own + others, own_elsewhere + others_elsewhere);
        by_another(&mut observed, others + others_elsewhere, 0);
        observed.others.active[0].is_kernel = kernel;
        observed.others = OtherProcesses { unread, ..observed.others };
        let carried = Reading::of(&observed).carried_reads().expect("all is counted");
        prop_assert!(carried.least <= own && own <= carried.most, "{:?}", carried);
        if others + own_elsewhere + others_elsewhere == 0 {
            prop_assert_eq!(carried, Bounds::exact(own));
        }
    }
}

#[test]
fn discarded_pages_may_have_been_dirty_before() {
    let mut observed = writer(0, 64 * MIB);
    observed.processes.cancelled_write_bytes = 16 * MIB;
    let asked = |observed: &Observed, before| {
        let mut observed = observed.clone();
        observed.dirty_before_bytes = before;
        Reading::of(&observed).asked_writes()
    };
    let bytes = |least: u64, most: u64| Asked::Bytes(between(least, most));
    assert_eq!(asked(&observed, Some(0)), bytes(48, 48));
    assert_eq!(asked(&observed, Some(4 * MIB)), bytes(48, 52));
    assert_eq!(asked(&observed, None), bytes(48, 64));
    // Any part of it may have been dirtied by an earlier run.
    observed.processes.cancelled_write_bytes = 64 * MIB;
    assert_eq!(asked(&observed, Some(64 * MIB)), bytes(0, 64));
    assert_eq!(asked(&observed, Some(0)), Asked::Nothing);
}

#[test]
fn a_load_is_that_of_iostat() {
    let device = ObservedDevice {
        traffic: Some(DeviceStat {
            read_ios: 1000,
            read_bytes: 4_096_000,
            busy_ms: 500,
            queue_ms: Some(8000),
            ..DeviceStat::default()
        }),
        waits: Some(DeviceWaits {
            read_ms: 250,
            write_ms: 0,
        }),
        ..ObservedDevice::default()
    };
    let load = device_load(&device, 2_000_000_000);
    let values = load.points.iter().map(|point| point.value);
    let expected = [2e9, 500.0, 2.048, 250e3, 4.0, 0.25];
    assert_eq!(values.collect::<Vec<_>>(), expected);
    assert_eq!(device_load(&ObservedDevice::default(), 1).points, []);
}

/// A file that was read.
pub(crate) fn file_of(medium: Medium, bytes: u64) -> ObservedFile {
    ObservedFile {
        path: "/data/file".into(),
        medium,
        bytes,
        allocated_bytes: Some(bytes),
        is_read: true,
        has_device: medium == Medium::Storage,
        ..ObservedFile::default()
    }
}

/// One account counts bytes from a file server and from a disk.
#[test]
fn several_media_are_not_distinguished() {
    let mut observed = reader(64 * MIB, 64 * MIB, 64 * MIB, 0);
    let asked = |observed: &Observed| Reading::of(observed).asked_reads();
    // A job file on storage does not count as a second medium.
    observed.files = vec![
        file_of(Medium::Elsewhere, 64 * MIB),
        file_of(Medium::Storage, 4096),
    ];
    let reading = Reading::of(&observed);
    assert_eq!(reading.medium(Transfer::Read), Medium::Elsewhere);
    assert_eq!(asked(&observed), Asked::Bytes(Bounds::exact(64 * MIB)));
    observed.files[1].bytes = MIB;
    assert_eq!(asked(&observed), unknown(Unknown::Media, None));
    // Files that are only written do not count for reads.
    observed.files[1].is_read = false;
    observed.files[1].is_written = true;
    assert_eq!(asked(&observed), Asked::Bytes(Bounds::exact(64 * MIB)));
    assert_eq!(
        Reading::of(&observed).medium(Transfer::Write),
        Medium::Storage
    );
    observed.target = Some(ObservedTarget {
        medium: Medium::Storage,
        bytes: Some(MIB),
        ..ObservedTarget::default()
    });
    assert_eq!(asked(&observed), unknown(Unknown::Media, None));
}

#[test]
fn bytes_from_file_server_are_on_no_disk() {
    // Another process read 10 MiB from the only disk.
    let mut observed = reader(64 * MIB, 64 * MIB, 10 * MIB, 0);
    observed.others.unread = 1;
    observed.files = vec![file_of(Medium::Elsewhere, 64 * MIB)];
    let carried = |observed: &Observed| {
        let carried = Reading::of(observed).carried_reads().expect("it counts");
        (carried.least / MIB, carried.most / MIB)
    };
    assert_eq!(carried(&observed), (0, 10));
    observed.nfs = Some(NfsIo {
        read_bytes: 60 * MIB,
        write_bytes: 0,
    });
    assert_eq!(carried(&observed), (4, 10));
    // Without a known device, no disk is in question.
    observed.devices.clear();
    observed.disks.truncate(1);
    let reading = Reading::of(&observed);
    assert_eq!((reading.devices(), reading.traffic()), (Vec::new(), None));
    observed.files[0].medium = Medium::Storage;
    assert_eq!(Reading::of(&observed).devices(), ["vda"]);
}

/// Bytes that file systems add to write calls do not count as asked for.
#[test]
fn asked_writes_are_the_bytes_of_calls() {
    let asked = |write_bytes: u64| {
        let mut observed = writer(0, 100 * MIB);
        if let Some(io) = &mut observed.processes.io {
            io.write_bytes = write_bytes;
        }
        observed.ways.writes.buffered = true;
        Reading::of(&observed).asked_writes()
    };
    let exact = |bytes| Asked::Bytes(Bounds::exact(bytes));
    assert_eq!(asked(64 * MIB + 4096), exact(64 * MIB));
    assert_eq!(asked(80 * MIB), exact(64 * MIB));
    assert_eq!(asked(32 * MIB), exact(32 * MIB));
}

/// With writes to a file server and a pipe, the account counts only the server's.
#[test]
fn writes_to_server_and_pipe_count_server_only() {
    let asked = |account: u64| {
        let mut observed = writer(0, account);
        if let Some(io) = &mut observed.processes.io {
            (io.wchar, io.write_bytes) = (64 * MIB, account);
        }
        observed.target = None;
        observed.files = vec![ObservedFile {
            is_read: false,
            is_written: true,
            ..file_of(Medium::Elsewhere, 64 * MIB)
        }];
        observed.ways.sinks = [NoStorage::Pipe].into();
        Reading::of(&observed).asked_writes()
    };
    assert_eq!(asked(16 * MIB), Asked::Bytes(Bounds::exact(16 * MIB)));
    assert_eq!(asked(0), Asked::Nothing);
}

#[test]
fn few_requests_have_no_99th_percentile() {
    let times = Times {
        mean_ns: 2.0,
        p50_ns: 1,
        p99_ns: 9,
    };
    assert_eq!(p99_of(times, 1), None);
    assert_eq!(
        p99_of(times, iolab_analysis::analysis::TAIL_REQUESTS_MIN),
        Some(9)
    );
}
