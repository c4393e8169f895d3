//! Lists of an observation, and columns of what control groups and trace events showed.

use std::sync::LazyLock;

use super::witness_table;
use crate::column::{Column, Null, Table};
use crate::witness::Witnessed;
use iolab_workload::counters::DeviceStat;
use iolab_workload::region_state::Medium;
use iolab_workload::table;
use iolab_workload::witness::{
    DiskTraffic, GroupHolds, Moment, ObservedDevice, ObservedFile, OtherProcess,
};

/// A number of the row that SQLite gives.
fn row_number<T>() -> Vec<Column<T>> {
    let id = Column::number("id", |_: &T| None, |_, _| ());
    vec![id.null(Null::Free).key().doc("in the order of the text")]
}

/// Table `witness_file`.
pub static WITNESS_FILE: LazyLock<Table<ObservedFile>> = LazyLock::new(|| {
    witness_table(
        "witness_file",
        "one row per file or device of storage that the program was seen to have open",
        vec![
            row_number(),
            Vec::from(table! {
                Column::text("path", |row: &ObservedFile| Some(row.path.to_string_lossy()), |row, text| { row.path = text.into(); true })
                    .doc("its path; of one that is not UTF-8 the readable part");
                word!("medium", ObservedFile, medium, Medium).doc("what answers for its bytes");
                number!("bytes", ObservedFile, bytes).doc("its size at the end");
                number!("allocated_bytes", ObservedFile, allocated_bytes?).doc("bytes that have space of their own; the rest are holes, or compressed");
                flag!("is_read", ObservedFile, is_read).doc("whether it was open for reading, and for writing");
                flag!("is_written", ObservedFile, is_written).doc("whether it was open for reading, and for writing");
                flag!("has_device", ObservedFile, has_device).doc("whether the device that it lies on is known");
            }),
            residency!(
                "after_",
                ObservedFile,
                [after?],
                "bytes that were looked at at the end, in the page cache, dirty, being written"
            )
            .into(),
        ],
        &[],
    )
});

const IN_FLIGHT: &str =
    "whether reads, and whether writes, of any process were in flight when the observation began";

/// Table `witness_device`.
pub static WITNESS_DEVICE: LazyLock<Table<ObservedDevice>> = LazyLock::new(|| {
    const USED: &str = "whether a file of note that lies on it was seen open for reading, and for writing, or the target lies there; 0 of all devices where that is not known";
    const WAITS: &str = "sum of the times of all reads, and of all writes, queueing included";
    witness_table(
        "witness_device",
        "one row per device that these files, the target, or the user named",
        vec![
            row_number(),
            Vec::from(table! {
                text!("name", ObservedDevice, name).doc("its name: `vda1`");
                json_text!("disks", ObservedDevice, disks)
                    .doc("the disks below it, a JSON array; itself where it is one");
                flag!("in_file", ObservedDevice, in_file).doc("a loop device lies on the way, whose file the page cache may hold");
                flag!("passes_on", ObservedDevice, passes_on).doc("the layers below it pass on each byte once, and nothing of their own; a loop device among them bypasses the page cache");
                flag!("is_read", ObservedDevice, is_read).doc(USED);
                flag!("is_written", ObservedDevice, is_written).doc(USED);
                flag!("reads_in_flight", ObservedDevice, in_flight.reads).doc(IN_FLIGHT);
                flag!("writes_in_flight", ObservedDevice, in_flight.writes).doc(IN_FLIGHT);
                number!("read_wait_ms", ObservedDevice, waits?.read_ms).doc(WAITS);
                number!("write_wait_ms", ObservedDevice, waits?.write_ms).doc(WAITS);
            }),
            device_stat!("", ObservedDevice, [traffic?], "what it carried, of all processes: as in table `sample`; NULL where it does not count").collect(),
            device_stat!("below_", ObservedDevice, [below?], "the same of the disks below it; NULL where it is one itself").collect(),
        ],
        &[],
    )
});

/// Table `witness_disk`.
pub static WITNESS_DISK: LazyLock<Table<DiskTraffic>> = LazyLock::new(|| {
    witness_table(
        "witness_disk",
        "one row per disk of the machine that carried something",
        vec![
            row_number(),
            Vec::from(table! {
                text!("name", DiskTraffic, name).doc("its name");
                Column::number("major", |row: &DiskTraffic| Some(row.number.0.into()), |row, n| row.number.0 = n as u32).between(0, u32::MAX.into())
                    .doc("its number");
                Column::number("minor", |row: &DiskTraffic| Some(row.number.1.into()), |row, n| row.number.1 = n as u32).between(0, u32::MAX.into())
                    .doc("its number");
                flag!("reads_in_flight", DiskTraffic, in_flight.reads).doc(IN_FLIGHT);
                flag!("writes_in_flight", DiskTraffic, in_flight.writes).doc(IN_FLIGHT);
            }),
            device_stat!(
                "",
                DiskTraffic,
                [traffic],
                "what it carried, of all processes"
            )
            .collect(),
            disk(),
        ],
        &[],
    )
});

/// Table `witness_process`.
pub static WITNESS_PROCESS: LazyLock<Table<OtherProcess>> = LazyLock::new(|| {
    witness_table(
        "witness_process",
        "one row per other process that did I/O meanwhile, on any disk",
        vec![
            row_number(),
            Vec::from(table! {
                whole!("pid", OtherProcess, pid as u32).doc("its number");
                text!("name", OtherProcess, name).doc("its name");
                flag!("is_kernel",
                    OtherProcess, is_kernel).doc("whether it is a thread of the kernel: it writes what others have left in the page cache");
                flag!("has_ended", OtherProcess, has_ended).doc("whether it has ended");
                number!("read_bytes", OtherProcess, read_bytes).doc("fetched from storage; sent to storage, or dirtied in the page cache");
                number!("write_bytes", OtherProcess, write_bytes).doc("fetched from storage; sent to storage, or dirtied in the page cache");
            }),
        ],
        &[],
    )
});

/// Table `witness_moment`; the devices of a moment are in [`WITNESS_MOMENT_DEVICE`].
pub static WITNESS_MOMENT: LazyLock<Table<Moment>> = LazyLock::new(|| {
    const IO: &str =
        "what the accounts of the program grew by, as in table `witness`; NULL without an account";
    witness_table(
        "witness_moment",
        "one row per part of the time of an observation",
        vec![
            table! {
                number!("start_ns", Moment, start_ns).doc("from the start of the observation");
                number!("length_ns", Moment, length_ns).doc("its length");
            }
            .into(),
            process_io!("", Moment, [program?], IO, IO, IO).into(),
        ],
        &["PRIMARY KEY (start_ns)"],
    )
});

/// Traffic of a device in a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MomentDeviceRow {
    /// When the moment starts, ns.
    pub start_ns: u64,
    /// Name of the device.
    pub device: String,
    /// Traffic of the device in the moment.
    pub did: DeviceStat,
}

/// Table `witness_moment_device`.
pub static WITNESS_MOMENT_DEVICE: LazyLock<Table<MomentDeviceRow>> = LazyLock::new(|| {
    witness_table(
        "witness_moment_device",
        "one row per device and part of the time",
        vec![
            Vec::from(table! {
                number!("start_ns", MomentDeviceRow, start_ns).doc("start of the part in `witness_moment`");
                text!("device", MomentDeviceRow, device).doc("its name");
            }),
            device_stat!(
                "",
                MomentDeviceRow,
                [did],
                "what it carried in it, of all processes"
            )
            .collect(),
        ],
        &[
            "PRIMARY KEY (start_ns, device)",
            "FOREIGN KEY (start_ns) REFERENCES witness_moment (start_ns)",
        ],
    )
});

/// Columns of the program's trace.
pub(super) fn program() -> Vec<Column<Witnessed>> {
    const SYNCS: &str = "syncs that file systems got of the program, where `--trace` recorded the kernel's trace events; of these: whose end is known";
    const WITHIN: &str = "of the syncs whose end is known: within which the disk completed a flush of its cache; on disks without a volatile cache";
    const TIMES: &str = "time of these syncs in the file system: median, 99th percentile";
    const PARTS: &str = "mean time of these syncs in which the disk flushed its cache, else the journal was written, else the disk wrote, and the rest";
    Vec::from(table! {
        word!("group_holds", Witnessed, observed.group?, GroupHolds)
            .doc("what the control group holds whose traffic is in `witness_disk`: `program` (it was made for it), `program-and-observer`, `others` as well");
        number!("trace_syncs", Witnessed, observed.trace?.syncs.syncs).doc(SYNCS);
        number!("trace_timed_syncs", Witnessed, observed.trace?.syncs.timed).doc(SYNCS);
        number!("trace_flushed_syncs", Witnessed, observed.trace?.syncs.flushed).doc(WITHIN);
        number!("trace_uncached_syncs", Witnessed, observed.trace?.syncs.uncached).doc(WITHIN);
        number!("trace_commits", Witnessed, observed.trace?.syncs.commits).doc("journal commits that these waited for");
        real!("trace_sync_mean_ns", Witnessed, observed.trace?.syncs.times?.whole.mean_ns).doc("mean time of these syncs in the file system").within(0.0, f64::MAX);
        number!("trace_sync_p50_ns", Witnessed, observed.trace?.syncs.times?.whole.p50_ns).doc(TIMES);
        number!("trace_sync_p99_ns", Witnessed, observed.trace?.syncs.times?.whole.p99_ns).doc(TIMES);
        real!("trace_sync_flush_ns", Witnessed, observed.trace?.syncs.times?.flush_ns).doc(PARTS).within(0.0, f64::MAX);
        real!("trace_sync_journal_ns", Witnessed, observed.trace?.syncs.times?.journal_ns).doc(PARTS).within(0.0, f64::MAX);
        real!("trace_sync_write_ns", Witnessed, observed.trace?.syncs.times?.write_ns).doc(PARTS).within(0.0, f64::MAX);
        real!("trace_sync_host_ns", Witnessed, observed.trace?.syncs.times?.host_ns).doc(PARTS).within(0.0, f64::MAX);
        number!("trace_lost", Witnessed, observed.trace?.lost).doc("events that the kernel had no room for");
        number!("trace_until_ns", Witnessed, observed.trace?.until_ns?).doc("from the start to the moment from which on nothing was recorded; NULL where all was");
    })
}

/// Requests that a program's threads sent in one direction: their number and bytes, NULL together without a trace, and their times.
macro_rules! requests {
    ($direction:ident, $prefix:literal) => {{
        const NUMBER: &str = "requests that its threads sent, and their bytes, where `--trace` recorded the kernel's trace events";
        const TIMES: &str = "of these, from the start in the block layer to the issue, and from there to the completion: median, 99th percentile; NULL without any";
        const MEANS: &str = "of these, mean time from the start in the block layer to the issue, and from there to the completion; NULL without any";
        table! {
            number!(concat!($prefix, "_requests"), DiskTraffic, traced?.$direction.requests).doc(NUMBER);
            number!(concat!($prefix, "_bytes"), DiskTraffic, traced?.$direction.bytes).doc(NUMBER);
            real!(concat!($prefix, "_queue_mean_ns"), DiskTraffic, traced?.$direction.queue?.mean_ns).doc(MEANS).within(0.0, f64::MAX);
            number!(concat!($prefix, "_queue_p50_ns"), DiskTraffic, traced?.$direction.queue?.p50_ns).doc(TIMES);
            number!(concat!($prefix, "_queue_p99_ns"), DiskTraffic, traced?.$direction.queue?.p99_ns).doc(TIMES);
            real!(concat!($prefix, "_device_mean_ns"), DiskTraffic, traced?.$direction.device?.mean_ns).doc(MEANS).within(0.0, f64::MAX);
            number!(concat!($prefix, "_device_p50_ns"), DiskTraffic, traced?.$direction.device?.p50_ns).doc(TIMES);
            number!(concat!($prefix, "_device_p99_ns"), DiskTraffic, traced?.$direction.device?.p99_ns).doc(TIMES);
        }
    }};
}

/// Columns of a disk's trace.
pub(super) fn disk() -> Vec<Column<DiskTraffic>> {
    const GROUP: &str =
        "what of it the control group of the program counted (`io.stat`); NULL where none does";
    let group = table! {
        number!("group_read_bytes", DiskTraffic, of_group?.read_bytes).doc(GROUP);
        number!("group_write_bytes", DiskTraffic, of_group?.write_bytes).doc(GROUP);
        number!("traced_others", DiskTraffic, traced?.others).doc("requests that other threads sent, including threads of the kernel; NULL without a trace");
    };
    let reads = requests!(reads, "traced_read");
    let writes = requests!(writes, "traced_write");
    group.into_iter().chain(reads).chain(writes).collect()
}
