//! Columns of the counters of kernel and processor over the timed span, and of page cache and extents.

use iolab_workload::counters::HardwareEvents;
use iolab_workload::region_state::Residency;

use super::Columns;
use crate::column::{Column, Null};
use crate::columns;
use crate::{Hardware, Sample};

pub(super) fn process() -> Columns {
    const CPU: &str = "CPU time of the process, in user mode and in the kernel";
    const FAULTS: &str = "page faults without and with I/O";
    const SWITCHES: &str = "context switches";
    const MOVED: &str =
        "from `/proc/self/io`: bytes that read and write calls moved, from and to wherever";
    const CALLS: &str = "read and write system calls (io_uring and libaio do not count here)";
    const NFS: &str = "from `/proc/self/mountstats`: bytes that NFS clients fetched from their servers and sent to them, of all processes; NULL where no target lies on NFS";
    const STORED: &str = "fetched from storage; sent to storage, or dirtied in the page cache";
    columns! {
        plain!("user_ns", counters.usage.user_ns, CPU);
        plain!("system_ns", counters.usage.system_ns, CPU);
        plain!("minor_faults", counters.usage.minor_faults, FAULTS);
        plain!("major_faults", counters.usage.major_faults, FAULTS);
        plain!("voluntary_switches", counters.usage.voluntary_switches, SWITCHES);
        plain!("involuntary_switches", counters.usage.involuntary_switches, SWITCHES);
        of!("process_rchar_bytes", counters.process_io => rchar, MOVED);
        of!("process_wchar_bytes", counters.process_io => wchar, MOVED);
        of!("process_read_calls", counters.process_io => syscr, CALLS);
        of!("process_write_calls", counters.process_io => syscw, CALLS);
        of!("process_read_bytes", counters.process_io => read_bytes, STORED);
        of!("process_write_bytes", counters.process_io => write_bytes, STORED);
        of!("nfs_read_bytes", counters.nfs => read_bytes, NFS).since(6);
        of!("nfs_write_bytes", counters.nfs => write_bytes, NFS).since(6);
    }
}

pub(super) fn device() -> Columns {
    const IOS: &str = "requests that the block device completed, everybody's";
    const MERGES: &str = "requests that were merged into others";
    const BYTES: &str = "bytes that the block device transferred, everybody's";
    columns! {
        of!("device_read_ios", counters.device => read_ios, IOS);
        of!("device_read_merges", counters.device => read_merges, MERGES);
        of!("device_read_bytes", counters.device => read_bytes, BYTES);
        of!("device_write_ios", counters.device => write_ios, IOS);
        of!("device_write_merges", counters.device => write_merges, MERGES);
        of!("device_write_bytes", counters.device => write_bytes, BYTES);
        of!("device_flush_ios", counters.device => flush_ios, IOS);
        of!("device_busy_ms", counters.device => busy_ms, "time the device had requests in flight");
        Column::number(
            "device_queue_ms",
            |s: &Sample| s.counters.device.and_then(|d| d.queue_ms),
            |s, n| s.counters.device.get_or_insert_default().queue_ms = Some(n),
        )
        .null(Null::Free)
        .doc("sum of the times that requests were in flight there; over `elapsed_ns` it is their mean number");
    }
}

/// A column with a counter of the disks below a stacked device.
macro_rules! bottom {
    ($name:literal, $field:ident) => {
        Column::number(
            $name,
            |s: &Sample| s.counters.bottom.map(|b| b.stat.$field),
            |s, n| s.counters.bottom.get_or_insert_default().stat.$field = n,
        )
        .null(Null::Account)
    };
}

pub(super) fn bottom() -> Columns {
    const DOC: &str = "the same of the disks at the bottom of a stacked device (partition, dm, md, loop), added up; 0 where its bytes end in memory; NULL where the device is the bottom itself, or what is below cannot be told";
    let mut columns = vec![
        bottom!("bottom_read_ios", read_ios),
        bottom!("bottom_read_merges", read_merges),
        bottom!("bottom_read_bytes", read_bytes),
        bottom!("bottom_write_ios", write_ios),
        bottom!("bottom_write_merges", write_merges),
        bottom!("bottom_write_bytes", write_bytes),
        bottom!("bottom_flush_ios", flush_ios),
        bottom!("bottom_busy_ms", busy_ms),
        Column::number(
            "bottom_queue_ms",
            |s: &Sample| s.counters.bottom.and_then(|b| b.stat.queue_ms),
            |s, n| s.counters.bottom.get_or_insert_default().stat.queue_ms = Some(n),
        )
        .null(Null::Free),
    ];
    columns = columns.into_iter().map(|column| column.doc(DOC)).collect();
    // Exports write it as a number, not as a boolean, for compatibility.
    columns.push(
        Column::number(
            "bottom_in_file",
            |s: &Sample| s.counters.bottom.map(|b| u64::from(b.in_file)),
            |s, n| s.counters.bottom.get_or_insert_default().in_file = n == 1,
        )
        .between(0, 1)
        .null(Null::Account)
        .doc("1: a loop device lies between, so that the page cache may hold the file behind it"),
    );
    columns
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
        known!(
            "buffer_piece_bytes",
            counters.buffer_piece_bytes,
            "mean length of the stretches of physical memory that the I/O buffers lay in (up to 16 MiB of each worker); needs CAP_SYS_ADMIN"
        )
        .since(6),
        known!(
            "drive_millidegrees",
            counters.drive_millidegrees,
            "temperature of the drive right after the trial (hwmon, of several the hottest), in thousandths of a degree Celsius"
        )
        .since(6),
    ];
    // The frequency stands last.
    let before_last = columns.len() - 1;
    columns.splice(before_last..before_last, of_hardware);
    columns
}

const LOOKED: &str = "bytes that were looked at, spread over the region; less than the region where looking at all would have taken too long, the counts are scaled then";
const HELD: &str = "bytes of the region in the page cache before the start and after the end; NULL where the kernel does not tell this user";
const DIRTY: &str = "those of them that had still to be written";
const WRITEBACK: &str = "those of them that were being written";

/// Columns of the page cache at one moment, whose names begin with that.
macro_rules! cache {
    ($prefix:literal, $when:ident) => {
        vec![
            of!(concat!($prefix, "_looked_bytes"), region.$when => looked_bytes, LOOKED),
            of!(concat!($prefix, "_bytes"), region.$when => resident_bytes, HELD),
            cache!($prefix, "_dirty_bytes", $when.dirty_bytes, DIRTY),
            cache!($prefix, "_writeback_bytes", $when.writeback_bytes, WRITEBACK),
        ]
    };
    ($prefix:literal, $name:literal, $when:ident.$field:ident, $doc:expr) => {
        Column::number(
            concat!($prefix, $name),
            |s: &Sample| s.region.$when.and_then(|r: Residency| r.$field),
            |s, n| s.region.$when.get_or_insert_default().$field = Some(n),
        )
        .null(Null::Free)
        .doc($doc)
    };
}

pub(super) fn cache_before() -> Columns {
    cache!("cache_before", before)
}

pub(super) fn cache_after() -> Columns {
    cache!("cache_after", after)
}

pub(super) fn extents() -> Columns {
    const EMPTY: &str = "bytes of the region in holes, and in extents that were allocated but never written, before the start; without FIEMAP the second is NULL and the first holds both";
    let columns = [
        of!(
            "extents_looked_bytes",
            region.extents => looked_bytes,
            "bytes that were looked at for holes and unwritten extents, as above"
        ),
        of!("hole_bytes", region.extents => hole_bytes, EMPTY),
        Column::number(
            "unwritten_bytes",
            |s: &Sample| s.region.extents.and_then(|e| e.unwritten_bytes),
            |s, n| s.region.extents.get_or_insert_default().unwritten_bytes = Some(n),
        )
        .null(Null::Free)
        .doc(EMPTY),
        known!(
            "owed_sync_ns",
            region.owed_sync_ns,
            "time of the `fdatasync` that followed writes which no sync of the trial had made durable, after the timed span"
        ),
        plain!(
            "evidence_ns",
            region.evidence_ns,
            "time that looking at all this took, before and after the timed span"
        ),
    ];
    columns.into()
}
