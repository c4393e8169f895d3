//! Columns of what control groups and the kernel's trace events showed of a program.

use iolab_workload::witness::{DiskTraffic, GroupHolds, SyncTimes};

use crate::column::{Column, Null};
use crate::columns;
use crate::witness::Witnessed;

/// A number of what was traced of a program, NULL without a trace.
macro_rules! traced {
    ($name:literal, $($field:ident).+, $doc:expr) => {
        Column::number(
            $name,
            |row: &Witnessed| Some(row.observed.trace?.$($field).+),
            |row, n| row.observed.trace.get_or_insert_default().$($field).+ = n,
        )
        .null(Null::Account)
        .doc($doc)
    };
}

/// A time of syncs, NULL together where none was timed.
macro_rules! sync_time {
    ($name:literal, $doc:expr, $($field:ident).+ as real) => {
        Column::real(
            $name,
            |row: &Witnessed| Some(row.observed.trace?.syncs.times?.$($field).+),
            |row, ns| sync_times(row).$($field).+ = ns,
        )
        .within(0.0, f64::MAX)
        .null(Null::Account)
        .doc($doc)
    };
    ($name:literal, $doc:expr, $($field:ident).+) => {
        Column::number(
            $name,
            |row: &Witnessed| Some(row.observed.trace?.syncs.times?.$($field).+),
            |row, ns| sync_times(row).$($field).+ = ns,
        )
        .null(Null::Account)
        .doc($doc)
    };
}

fn sync_times(row: &mut Witnessed) -> &mut SyncTimes {
    let trace = row.observed.trace.get_or_insert_default();
    trace.syncs.times.get_or_insert_default()
}

/// Of the program.
pub(super) fn program() -> Vec<Column<Witnessed>> {
    const SYNCS: &str = "syncs that file systems got of the program, where `--trace` recorded the kernel's trace events; of these: whose end is known";
    const WITHIN: &str = "of the syncs whose end is known: within which the disk completed a flush of its cache; on disks without a volatile cache";
    const TIMES: &str = "time of these syncs in the file system: median, 99th percentile";
    const PARTS: &str = "mean time of these syncs in which the disk flushed its cache, else the journal was written, else the disk wrote, and the rest";
    columns! {
        Column::text(
            "group_holds",
            |row: &Witnessed| Some(row.observed.group?.name().into()),
            |row, text| {
                let holds = text.parse();
                holds.map(|holds| row.observed.group = Some(holds)).is_ok()
            },
        )
        .one_of(GroupHolds::NAMES)
        .null(Null::Free)
        .doc("what the control group holds whose traffic is in `witness_disk`: `program` (it was made for it), `program-and-observer`, `others` as well");
        traced!("trace_syncs", syncs.syncs, SYNCS);
        traced!("trace_timed_syncs", syncs.timed, SYNCS);
        traced!("trace_flushed_syncs", syncs.flushed, WITHIN);
        traced!("trace_uncached_syncs", syncs.uncached, WITHIN);
        traced!("trace_commits", syncs.commits, "journal commits that these waited for");
        sync_time!("trace_sync_mean_ns", "mean time of these syncs in the file system", whole.mean_ns as real);
        sync_time!("trace_sync_p50_ns", TIMES, whole.p50_ns);
        sync_time!("trace_sync_p99_ns", TIMES, whole.p99_ns);
        sync_time!("trace_sync_flush_ns", PARTS, flush_ns as real);
        sync_time!("trace_sync_journal_ns", PARTS, journal_ns as real);
        sync_time!("trace_sync_write_ns", PARTS, write_ns as real);
        sync_time!("trace_sync_host_ns", PARTS, host_ns as real);
        traced!("trace_lost", lost, "events that the kernel had no room for");
        Column::number(
            "trace_until_ns",
            |row: &Witnessed| row.observed.trace?.until_ns,
            |row, ns| row.observed.trace.get_or_insert_default().until_ns = Some(ns),
        )
        .null(Null::Free)
        .doc("from the start to the moment from which on nothing was recorded; NULL where all was");
    }
}

/// Requests that a program's threads sent in one direction: their number and bytes, NULL together without a trace, and their times.
macro_rules! requests {
    ($direction:ident, $prefix:literal) => {{
        const NUMBER: &str = "requests that its threads sent, and their bytes, where `--trace` recorded the kernel's trace events";
        const TIMES: &str = "of these, from the start in the block layer to the issue, and from there to the completion: median, 99th percentile; NULL without any";
        const MEANS: &str = "of these, mean time from the start in the block layer to the issue, and from there to the completion; NULL without any";
        vec![
            requests!(one $direction, concat!($prefix, "_requests"), requests, NUMBER),
            requests!(one $direction, concat!($prefix, "_bytes"), bytes, NUMBER),
            requests!(mean $direction, concat!($prefix, "_queue_mean_ns"), queue, MEANS),
            requests!(time $direction, concat!($prefix, "_queue_p50_ns"), queue, p50_ns, TIMES),
            requests!(time $direction, concat!($prefix, "_queue_p99_ns"), queue, p99_ns, TIMES),
            requests!(mean $direction, concat!($prefix, "_device_mean_ns"), device, MEANS),
            requests!(time $direction, concat!($prefix, "_device_p50_ns"), device, p50_ns, TIMES),
            requests!(time $direction, concat!($prefix, "_device_p99_ns"), device, p99_ns, TIMES),
        ]
    }};
    (one $direction:ident, $name:expr, $field:ident, $doc:expr) => {
        Column::number(
            $name,
            |row: &DiskTraffic| Some(row.traced?.$direction.$field),
            |row, n| row.traced.get_or_insert_default().$direction.$field = n,
        )
        .null(Null::Account)
        .doc($doc)
    };
    (time $direction:ident, $name:expr, $stage:ident, $field:ident, $doc:expr) => {
        Column::number(
            $name,
            |row: &DiskTraffic| Some(row.traced?.$direction.$stage?.$field),
            |row, ns| {
                let traced = row.traced.get_or_insert_default();
                traced.$direction.$stage.get_or_insert_default().$field = ns;
            },
        )
        .null(Null::Account)
        .doc($doc)
    };
    (mean $direction:ident, $name:expr, $stage:ident, $doc:expr) => {
        Column::real(
            $name,
            |row: &DiskTraffic| Some(row.traced?.$direction.$stage?.mean_ns),
            |row, ns| {
                let traced = row.traced.get_or_insert_default();
                traced.$direction.$stage.get_or_insert_default().mean_ns = ns;
            },
        )
        .within(0.0, f64::MAX)
        .null(Null::Account)
        .doc($doc)
    };
}

/// Of a disk.
pub(super) fn disk() -> Vec<Column<DiskTraffic>> {
    const GROUP: &str =
        "what of it the control group of the program counted (`io.stat`); NULL where none does";
    let group = vec![
        of!("group_read_bytes", DiskTraffic, of_group => read_bytes, GROUP),
        of!("group_write_bytes", DiskTraffic, of_group => write_bytes, GROUP),
        Column::number(
            "traced_others",
            |row: &DiskTraffic| Some(row.traced?.others),
            |row, n| row.traced.get_or_insert_default().others = n,
        )
        .null(Null::Account)
        .doc("requests that other threads sent, those of the kernel among them; NULL without a trace"),
    ];
    let reads = requests!(reads, "traced_read");
    let writes = requests!(writes, "traced_write");
    group.into_iter().chain(reads).chain(writes).collect()
}
