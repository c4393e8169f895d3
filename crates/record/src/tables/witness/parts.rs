//! What an observation has several of: files, devices, other processes, moments.

use std::sync::LazyLock;

use iolab_workload::counters::DeviceStat;
use iolab_workload::medium::Medium;
use iolab_workload::region_state::Residency;
use iolab_workload::witness::{DiskTraffic, Moment, ObservedDevice, ObservedFile, OtherProcess};
use serde_json::json;

use super::{table, traced};
use crate::column::{Column, Null, Table};
use crate::columns;

/// The counters of a device, NULL together where there are none.
macro_rules! traffic {
    ($prefix:literal, $type:ty, $get:expr, $put:expr, $doc:expr) => {
        vec![
            traffic!(one $prefix, "read_ios", $type, $get, $put, read_ios, $doc),
            traffic!(one $prefix, "read_merges", $type, $get, $put, read_merges, $doc),
            traffic!(one $prefix, "read_bytes", $type, $get, $put, read_bytes, $doc),
            traffic!(one $prefix, "write_ios", $type, $get, $put, write_ios, $doc),
            traffic!(one $prefix, "write_merges", $type, $get, $put, write_merges, $doc),
            traffic!(one $prefix, "write_bytes", $type, $get, $put, write_bytes, $doc),
            traffic!(one $prefix, "flush_ios", $type, $get, $put, flush_ios, $doc),
            traffic!(one $prefix, "busy_ms", $type, $get, $put, busy_ms, $doc),
            Column::number(
                concat!($prefix, "queue_ms"),
                |row: &$type| {
                    let get: fn(&$type) -> Option<DeviceStat> = $get;
                    get(row).and_then(|did| did.queue_ms)
                },
                |row, n| {
                    let put: fn(&mut $type) -> &mut DeviceStat = $put;
                    put(row).queue_ms = Some(n);
                },
            )
            .null(Null::Free)
            .doc($doc),
        ]
    };
    (one $prefix:literal, $name:literal, $type:ty, $get:expr, $put:expr, $field:ident, $doc:expr) => {
        Column::number(
            concat!($prefix, $name),
            |row: &$type| {
                let get: fn(&$type) -> Option<DeviceStat> = $get;
                get(row).map(|did| did.$field)
            },
            |row, n| {
                let put: fn(&mut $type) -> &mut DeviceStat = $put;
                put(row).$field = n;
            },
        )
        .null(Null::Account)
        .doc($doc)
    };
}

/// A number of the row that SQLite gives.
fn row_number<T>() -> Vec<Column<T>> {
    let id = Column::number("id", |_: &T| None, |_, _| ());
    vec![id.null(Null::Free).key().doc("in the order of the text")]
}

/// Table `witness_file`.
pub static WITNESS_FILE: LazyLock<Table<ObservedFile>> = LazyLock::new(|| {
    table(
        "witness_file",
        "one row per file or device of storage that the program was seen to have open",
        vec![
            row_number(),
            columns! {
                Column::text("path", |row: &ObservedFile| Some(row.path.to_string_lossy()), |row, text| { row.path = text.into(); true })
                    .doc("its path; of one that is not UTF-8 the readable part");
                word!("medium", ObservedFile, medium, Medium).doc("what answers for its bytes");
                count!("bytes", ObservedFile, bytes, "its size at the end");
                maybe!("allocated_bytes", ObservedFile, allocated_bytes, "bytes that have space of their own; the rest are holes, or compressed");
                flag!("is_read", ObservedFile, is_read, "whether it was open for reading, and for writing");
                flag!("is_written", ObservedFile, is_written, "whether it was open for reading, and for writing");
                flag!("has_device", ObservedFile, has_device, "whether the device that it lies on is known");
            },
            cache!(
                "after_",
                ObservedFile,
                |row| row.after,
                |row| &mut row.after,
                "bytes that were looked at at the end, in the page cache, dirty, being written"
            ),
        ],
        &[],
    )
});

const IN_FLIGHT: &str =
    "whether reads, and whether writes, of any process were in flight when the observation began";

/// Table `witness_device`.
pub static WITNESS_DEVICE: LazyLock<Table<ObservedDevice>> = LazyLock::new(|| {
    const WAITS: &str = "sum of the times of all reads, and of all writes, queueing included";
    table(
        "witness_device",
        "one row per device that these files, the target, or the user named",
        vec![
            row_number(),
            columns! {
                text!("name", ObservedDevice, name).doc("its name: `vda1`");
                Column::text(
                    "disks",
                    |row: &ObservedDevice| Some(json!(row.disks).to_string().into()),
                    |row, text| {
                        let disks = serde_json::from_str(text);
                        disks.map(|disks| row.disks = disks).is_ok()
                    },
                )
                .doc("the disks below it, a JSON array; itself where it is one");
                flag!("in_file", ObservedDevice, in_file, "a loop device lies on the way, whose file the page cache may hold");
                flag!("reads_in_flight", ObservedDevice, in_flight.reads, IN_FLIGHT);
                flag!("writes_in_flight", ObservedDevice, in_flight.writes, IN_FLIGHT);
                of!("read_wait_ms", ObservedDevice, waits => read_ms, WAITS);
                of!("write_wait_ms", ObservedDevice, waits => write_ms, WAITS);
            },
            traffic!(
                "",
                ObservedDevice,
                |row| row.traffic,
                |row| row.traffic.get_or_insert_default(),
                "what it carried, of all processes: as in table `sample`; NULL where it does not count"
            ),
            traffic!(
                "below_",
                ObservedDevice,
                |row| row.below,
                |row| row.below.get_or_insert_default(),
                "the same of the disks below it; NULL where it is one itself"
            ),
        ],
        &[],
    )
});

/// Table `witness_disk`.
pub static WITNESS_DISK: LazyLock<Table<DiskTraffic>> = LazyLock::new(|| {
    table(
        "witness_disk",
        "one row per disk of the machine that carried something",
        vec![
            row_number(),
            columns! {
                text!("name", DiskTraffic, name).doc("its name");
                Column::number("major", |row: &DiskTraffic| Some(row.number.0.into()), |row, n| row.number.0 = n as u32).between(0, u32::MAX.into())
                    .doc("its number");
                Column::number("minor", |row: &DiskTraffic| Some(row.number.1.into()), |row, n| row.number.1 = n as u32).between(0, u32::MAX.into())
                    .doc("its number");
                flag!("reads_in_flight", DiskTraffic, in_flight.reads, IN_FLIGHT);
                flag!("writes_in_flight", DiskTraffic, in_flight.writes, IN_FLIGHT);
            },
            traffic!(
                "",
                DiskTraffic,
                |row| Some(row.traffic),
                |row| &mut row.traffic,
                "what it carried, of all processes"
            ),
            traced::disk(),
        ],
        &[],
    )
});

/// Table `witness_process`.
pub static WITNESS_PROCESS: LazyLock<Table<OtherProcess>> = LazyLock::new(|| {
    table(
        "witness_process",
        "one row per other process that did I/O meanwhile, on any disk",
        vec![
            row_number(),
            columns! {
                whole!("pid", OtherProcess, pid as u32).doc("its number");
                text!("name", OtherProcess, name).doc("its name");
                flag!("is_kernel",
                    OtherProcess, is_kernel, "whether it is a thread of the kernel: it writes what others have left in the page cache");
                flag!("has_ended", OtherProcess, has_ended, "whether it has ended");
                count!("read_bytes", OtherProcess, read_bytes, "fetched from storage; sent to storage, or dirtied in the page cache");
                count!("write_bytes", OtherProcess, write_bytes, "fetched from storage; sent to storage, or dirtied in the page cache");
            },
        ],
        &[],
    )
});

/// Table `witness_moment`; the devices of a moment are in [`WITNESS_MOMENT_DEVICE`].
pub static WITNESS_MOMENT: LazyLock<Table<Moment>> = LazyLock::new(|| {
    const IO: &str =
        "what the accounts of the program grew by, as in table `witness`; NULL without an account";
    table(
        "witness_moment",
        "one row per part of the time of an observation",
        vec![columns! {
            count!("start_ns", Moment, start_ns, "from the start of the observation");
            count!("length_ns", Moment, length_ns, "its length");
            of!("rchar_bytes", Moment, program => rchar, IO);
            of!("wchar_bytes", Moment, program => wchar, IO);
            of!("read_calls", Moment, program => syscr, IO);
            of!("write_calls", Moment, program => syscw, IO);
            of!("read_bytes", Moment, program => read_bytes, IO);
            of!("write_bytes", Moment, program => write_bytes, IO);
        }],
        &["PRIMARY KEY (start_ns)"],
    )
});

/// What a device carried in a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MomentDeviceRow {
    /// When the moment starts, ns.
    pub start_ns: u64,
    /// Name of the device.
    pub device: String,
    /// What it carried.
    pub did: DeviceStat,
}

/// Table `witness_moment_device`.
pub static WITNESS_MOMENT_DEVICE: LazyLock<Table<MomentDeviceRow>> = LazyLock::new(|| {
    table(
        "witness_moment_device",
        "one row per device and part of the time",
        vec![
            columns! {
                count!("start_ns", MomentDeviceRow, start_ns, "start of the part in `witness_moment`");
                text!("device", MomentDeviceRow, device).doc("its name");
            },
            traffic!(
                "",
                MomentDeviceRow,
                |row| Some(row.did),
                |row| &mut row.did,
                "what it carried in it, of all processes"
            ),
        ],
        &[
            "PRIMARY KEY (start_ns, device)",
            "FOREIGN KEY (start_ns) REFERENCES witness_moment (start_ns)",
        ],
    )
});
