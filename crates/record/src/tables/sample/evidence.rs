//! Columns of the counters of kernel and processor over the timed span, and of page cache and extents.

use iolab_workload::counters::HardwareEvents;

use super::Columns;
use crate::column::{Column, Null};
use crate::{Hardware, Sample};
use iolab_workload::table;

pub(super) fn process() -> Columns {
    const CPU: &str = "CPU time of the process, in user mode and in the kernel";
    const FAULTS: &str = "page faults without and with I/O";
    const SWITCHES: &str = "context switches";
    const MOVED: &str =
        "from `/proc/self/io`: bytes that read and write calls moved, from and to wherever";
    const CALLS: &str = "read and write system calls (io_uring and libaio do not count here)";
    const NFS: &str = "from `/proc/self/mountstats`: bytes that NFS clients fetched from their servers and sent to them, of all processes; NULL where no target lies on NFS";
    const STORED: &str = "fetched from storage; sent to storage, or dirtied in the page cache";
    let usage = resource_use!(Sample, [counters.usage], CPU, FAULTS, SWITCHES);
    let io = process_io!(
        "process_",
        Sample,
        [counters.process_io?],
        MOVED,
        CALLS,
        STORED
    );
    let nfs = table! {
        number!("nfs_read_bytes", Sample, counters.nfs?.read_bytes).doc(NFS);
        number!("nfs_write_bytes", Sample, counters.nfs?.write_bytes).doc(NFS);
    };
    usage.into_iter().chain(io).chain(nfs).collect()
}

pub(super) fn device() -> Columns {
    const IOS: &str = "requests that the block device completed, everybody's";
    const MERGES: &str = "requests that were merged into others";
    const BYTES: &str = "bytes that the block device transferred, everybody's";
    const BUSY: &str = "time the device had requests in flight";
    const QUEUE: &str = "sum of the times that requests were in flight there; over `elapsed_ns` it is their mean number";
    device_stat!(
        "device_",
        Sample,
        [counters.device?],
        IOS,
        MERGES,
        BYTES,
        BUSY,
        QUEUE
    )
    .collect()
}

pub(super) fn bottom() -> Columns {
    const DOC: &str = "the same of the disks at the bottom of a stacked device (partition, dm, md, loop), added up; 0 where its bytes end in memory; NULL where the device is the bottom itself, or what is below is unknown";
    // Exports write it as a number, not as a boolean, for compatibility.
    let in_file = Column::number(
        "bottom_in_file",
        |s: &Sample| s.counters.bottom.map(|b| u64::from(b.in_file)),
        |s, n| s.counters.bottom.get_or_insert_default().in_file = n == 1,
    )
    .between(0, 1)
    .null(Null::Account)
    .doc("1: a loop device lies between, so the page cache may hold its file");
    let passes_on = Column::number(
        "bottom_passes_on",
        |s: &Sample| s.counters.bottom.map(|b| u64::from(b.passes_on)),
        |s, n| s.counters.bottom.get_or_insert_default().passes_on = n == 1,
    )
    .between(0, 1)
    .null(Null::Account)
    .doc("1: the layers between pass on each byte once, and nothing of their own, so that others caused what the disks carried beyond");
    let stat = device_stat!("bottom_", Sample, [counters.bottom?.stat], DOC);
    stat.chain([in_file, passes_on]).collect()
}

/// The events of a sample, which are then counted as available.
fn events(sample: &mut Sample) -> &mut HardwareEvents {
    let hardware = &mut sample.counters.hardware;
    if !matches!(hardware, Hardware::Counted(_)) {
        *hardware = Hardware::Counted(HardwareEvents::default());
    }
    match hardware {
        Hardware::Counted(events) => events,
        Hardware::Missing(_) => unreachable!("it was set a moment ago"),
    }
}

pub(super) fn hardware() -> Columns {
    const DOC: &str = "events the processor counted in the workers: core cycles, instructions retired, misses of the last-level cache and of the data TLB on loads; in user mode only where `note` says so";
    macro_rules! event {
        ($name:literal, $field:ident) => {
            Column::number(
                $name,
                |s: &Sample| s.counters.hardware.events().$field,
                |s, n| events(s).$field = Some(n),
            )
            .null(Null::Free)
            .doc(DOC)
        };
    }
    vec![
        event!("cycles", cycles),
        event!("instructions", instructions),
        event!("llc_misses", llc_misses),
        event!("dtlb_misses", dtlb_misses),
    ]
}

pub(super) fn machine() -> Columns {
    let mut columns = pressure_columns!(Sample, row => row.counters.pressure);
    let of_hardware = [
        number!(
            "buffer_piece_bytes", Sample,
            counters.buffer_piece_bytes?)
            .doc("mean length of the stretches of physical memory that the I/O buffers lay in (up to 16 MiB of each worker); needs CAP_SYS_ADMIN"),
        number!(
            "drive_millidegrees", Sample,
            counters.drive_millidegrees?)
            .doc("temperature of the drive right after the trial (hwmon, of several the hottest), in thousandths of a degree Celsius"),
    ];
    // Files and exports have them before the frequency.
    let frequency = columns.iter().position(|column| column.name == "cpu_khz");
    let before = frequency.unwrap_or(columns.len());
    columns.splice(before..before, of_hardware);
    columns
}

const LOOKED: &str = "bytes that were looked at, spread over the region; less than the region where looking at all would have taken too long, the counts are scaled then";
const HELD: &str = "bytes of the region in the page cache before the start and after the end; NULL where the kernel does not tell this user";
const DIRTY: &str = "dirty bytes among them, still to be written";
const WRITEBACK: &str = "bytes among them in write-back";

pub(super) fn cache_before() -> Columns {
    residency!(
        "cache_before_",
        Sample,
        [region.before?],
        LOOKED,
        HELD,
        DIRTY,
        WRITEBACK
    )
    .into()
}

pub(super) fn cache_after() -> Columns {
    residency!(
        "cache_after_",
        Sample,
        [region.after?],
        LOOKED,
        HELD,
        DIRTY,
        WRITEBACK
    )
    .into()
}

pub(super) fn extents() -> Columns {
    const LOOKED: &str = "bytes that were looked at for holes and unwritten extents, as above";
    const EMPTY: &str = "bytes of the region in holes, and in extents that were allocated but never written, before the start; without FIEMAP the second is NULL and the first holds both";
    let times = table! {
        number!("owed_sync_ns", Sample, region.owed_sync_ns?)
            .doc("time of the `fdatasync` that followed writes which no sync of the trial had made durable, after the timed span");
        number!("evidence_ns", Sample, region.evidence_ns).doc("time that looking at all this took, before and after the timed span");
    };
    let extents = extents!(Sample, [region.extents?], LOOKED, EMPTY);
    extents.into_iter().chain(times).collect()
}
