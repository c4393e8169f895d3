//! Tables of what `iolab witness` saw; empty in files of runs.

use std::sync::LazyLock;

use iolab_workload::medium::Medium;
use iolab_workload::region_state::Residency;
use iolab_workload::witness::ObservedTarget;
use serde_json::json;

use crate::column::{Column, Null, Table};
use crate::columns;
use crate::witness::Witnessed;

/// A number that every row has.
macro_rules! count {
    ($name:expr, $type:ty, $($field:ident).+, $doc:expr) => {
        Column::number($name, |row: &$type| Some(row.$($field).+), |row, n| row.$($field).+ = n)
            .doc($doc)
    };
}

/// A number that may be unknown.
macro_rules! maybe {
    ($name:expr, $type:ty, $($field:ident).+, $doc:expr) => {
        Column::number($name, |row: &$type| row.$($field).+, |row, n| row.$($field).+ = Some(n))
            .null(Null::Free)
            .doc($doc)
    };
}

/// A number of a group of columns that are NULL together.
macro_rules! of {
    ($name:expr, $type:ty, $($group:ident).+ => $field:ident, $doc:expr) => {
        Column::number(
            $name,
            |row: &$type| row.$($group).+.map(|group| group.$field),
            |row, n| row.$($group).+.get_or_insert_default().$field = n,
        )
        .null(Null::Account)
        .doc($doc)
    };
}

/// A flag that every row has.
macro_rules! flag {
    ($name:expr, $type:ty, $($field:ident).+, $doc:expr) => {
        Column::flag($name, |row: &$type| Some(row.$($field).+), |row, on| row.$($field).+ = on)
            .doc($doc)
    };
}

/// Words of an enum as a JSON array.
macro_rules! words {
    ($name:expr, $($field:ident).+, $doc:expr) => {
        Column::text(
            $name,
            |row: &Witnessed| {
                let names: Vec<&str> = row.$($field).+.iter().map(|one| one.name()).collect();
                Some(json!(names).to_string().into())
            },
            |row, text| {
                let Ok(names) = serde_json::from_str::<Vec<String>>(text) else {
                    return false;
                };
                let words: Result<_, _> = names.iter().map(|name| name.parse()).collect();
                words.map(|words| row.$($field).+ = words).is_ok()
            },
        )
        .doc($doc)
    };
}

/// The state of the page cache, NULL together where it cannot be seen.
macro_rules! cache {
    ($prefix:literal, $type:ty, $get:expr, $put:expr, $doc:expr) => {
        vec![
            cache!(one $prefix, "looked_bytes", $type, $get, $put, looked_bytes, $doc),
            cache!(one $prefix, "bytes", $type, $get, $put, resident_bytes, $doc),
            cache!(free $prefix, "dirty_bytes", $type, $get, $put, dirty_bytes, $doc),
            cache!(free $prefix, "writeback_bytes", $type, $get, $put, writeback_bytes, $doc),
        ]
    };
    (one $prefix:literal, $name:literal, $type:ty, $get:expr, $put:expr, $field:ident, $doc:expr) => {
        Column::number(
            concat!($prefix, $name),
            |row: &$type| {
                let get: fn(&$type) -> Option<Residency> = $get;
                get(row).map(|cache| cache.$field)
            },
            |row, n| {
                let put: fn(&mut $type) -> &mut Option<Residency> = $put;
                put(row).get_or_insert_default().$field = n;
            },
        )
        .null(Null::Account)
        .doc($doc)
    };
    (free $prefix:literal, $name:literal, $type:ty, $get:expr, $put:expr, $field:ident, $doc:expr) => {
        Column::number(
            concat!($prefix, $name),
            |row: &$type| {
                let get: fn(&$type) -> Option<Residency> = $get;
                get(row).and_then(|cache| cache.$field)
            },
            |row, n| {
                let put: fn(&mut $type) -> &mut Option<Residency> = $put;
                put(row).get_or_insert_default().$field = Some(n);
            },
        )
        .null(Null::Free)
        .doc($doc)
    };
}

mod parts;
mod subject;
mod traced;
mod verdicts;

pub use parts::{
    MomentDeviceRow, WITNESS_DEVICE, WITNESS_DISK, WITNESS_FILE, WITNESS_MOMENT,
    WITNESS_MOMENT_DEVICE, WITNESS_PROCESS,
};

/// A table of this module: none of its columns is older than version 6.
fn table<T>(
    name: &'static str,
    doc: &'static str,
    columns: Vec<Vec<Column<T>>>,
    constraints: &'static [&'static str],
) -> Table<T> {
    let columns = columns.into_iter().flatten();
    Table {
        name,
        doc,
        exported: false,
        columns: columns.map(|column| column.since(6)).collect(),
        constraints,
    }
}

/// Table `witness`.
pub static WITNESS: LazyLock<Table<Witnessed>> = LazyLock::new(|| {
    table(
        "witness",
        "one row in a file of `iolab witness`, which has no experiment",
        vec![
            subject::subject(),
            subject::end(),
            processes(),
            ways(),
            target(),
            machine(),
            verdicts::verdicts(),
            verdicts::claim(),
            traced::program(),
        ],
        &["CHECK (id = 1)"],
    )
});

fn processes() -> Vec<Column<Witnessed>> {
    const IO: &str = "from the I/O accounts of all its processes: bytes of read and write calls, and their number";
    const STORED: &str = "fetched from storage; sent to storage, or dirtied in the page cache";
    const USAGE: &str = "CPU time, page faults without and with I/O, context switches; NULL where iolab did not start it";
    columns! {
        count!("collected", Witnessed, observed.processes.collected, "processes whose ends iolab collected");
        count!("cut_short", Witnessed, observed.processes.cut_short, "processes that ended without an account of their end");
        count!("unread", Witnessed, observed.processes.unread, "processes that had not ended and whose account could not be read");
        count!("running", Witnessed, observed.processes.running, "processes that had not ended");
        flag!("ignores_children",
            Witnessed, observed.processes.ignores_children, "one ignored the ends of its children, whose accounts are in no other one");
        flag!("is_complete", Witnessed, observed.processes.is_complete, "the accounts of all tasks that ended were received");
        of!("rchar_bytes", Witnessed, observed.processes.io => rchar, IO);
        of!("wchar_bytes", Witnessed, observed.processes.io => wchar, IO);
        of!("read_calls", Witnessed, observed.processes.io => syscr, IO);
        of!("write_calls", Witnessed, observed.processes.io => syscw, IO);
        of!("read_bytes", Witnessed, observed.processes.io => read_bytes, STORED);
        of!("write_bytes", Witnessed, observed.processes.io => write_bytes, STORED);
        count!("cancelled_write_bytes",
            Witnessed, observed.processes.cancelled_write_bytes, "bytes among those to be written that never will be");
        maybe!("fault_bytes",
            Witnessed, observed.processes.fault_bytes, "bytes of `read_bytes` that page faults are taken to have fetched, and no read call: two windows of read-ahead each; no bound where `uncounted` has `mmap`; NULL where faults are not counted");
        of!("user_ns", Witnessed, observed.processes.usage => user_ns, USAGE);
        of!("system_ns", Witnessed, observed.processes.usage => system_ns, USAGE);
        of!("minor_faults", Witnessed, observed.processes.usage => minor_faults, USAGE);
        of!("major_faults", Witnessed, observed.processes.usage => major_faults, USAGE);
        of!("voluntary_switches", Witnessed, observed.processes.usage => voluntary_switches, USAGE);
        of!("involuntary_switches", Witnessed, observed.processes.usage => involuntary_switches, USAGE);
        count!("run_delay_ns",
            Witnessed, observed.processes.run_delay_ns, "time in which its threads waited for a CPU, up to the last look at each");
    }
}

fn ways() -> Vec<Column<Witnessed>> {
    const UNCOUNTED: &str = "whether storage was open for reading, with `O_DIRECT` and without, in processes that had one of these ways";
    const OPEN: &str =
        "whether storage was open for reading and for writing, with `O_DIRECT` and without";
    columns! {
        count!("looks", Witnessed, observed.ways.looks, "looks at what its processes had open; with 0 the next columns are empty");
        flag!("direct_reads", Witnessed, observed.ways.reads.direct, OPEN);
        flag!("buffered_reads", Witnessed, observed.ways.reads.buffered, OPEN);
        flag!("direct_writes", Witnessed, observed.ways.writes.direct, OPEN);
        flag!("buffered_writes", Witnessed, observed.ways.writes.buffered, OPEN);
        words!("uncounted", observed.ways.uncounted, "ways of I/O whose bytes the kernel does not count as calls, a JSON array");
        flag!("direct_uncounted_reads", Witnessed, observed.ways.uncounted_reads.direct, UNCOUNTED);
        flag!("buffered_uncounted_reads", Witnessed, observed.ways.uncounted_reads.buffered, UNCOUNTED);
        words!("sources", observed.ways.sources, "what else it could read from, a JSON array");
        words!("sinks", observed.ways.sinks, "what else it could write to, a JSON array");
        flag!("inner_pipes", Witnessed, observed.ways.inner_pipes, "pipes led from one of its processes to another");
    }
}

/// The target in an observation, whose columns make it one.
fn named_target(row: &mut Witnessed) -> &mut ObservedTarget {
    row.observed.target.get_or_insert_default()
}

fn target() -> Vec<Column<Witnessed>> {
    const EXTENTS: &str = "of it: bytes that were looked at for holes before the start, in holes, and allocated but never written";
    let first = vec![
        Column::text(
            "target",
            |row: &Witnessed| Some(row.observed.target.as_ref()?.path.to_string_lossy()),
            |row, text| {
                named_target(row).path = text.into();
                true
            },
        )
        .null(Null::Account)
        .doc("what `--on` named"),
        Column::text(
            "target_medium",
            |row: &Witnessed| Some(row.observed.target.as_ref()?.medium.name().into()),
            |row, text| {
                let medium = text.parse();
                medium.map(|medium| named_target(row).medium = medium).is_ok()
            },
        )
        .one_of(Medium::NAMES)
        .null(Null::Account)
        .doc("what answers for its bytes: `storage`, `memory`, `elsewhere` (a process or another machine)"),
        Column::number(
            "target_bytes",
            |row: &Witnessed| row.observed.target.as_ref()?.bytes,
            |row, n| named_target(row).bytes = Some(n),
        )
        .null(Null::Free)
        .doc("its size; NULL for a folder"),
        Column::flag(
            "target_is_device",
            |row: &Witnessed| Some(row.observed.target.as_ref()?.is_device),
            |row, on| named_target(row).is_device = on,
        )
        .null(Null::Account)
        .doc("whether it is a block device"),
    ];
    let extents = vec![
        Column::number(
            "extents_looked_bytes",
            |row: &Witnessed| Some(row.observed.target.as_ref()?.region.extents?.looked_bytes),
            |row, n| {
                named_target(row)
                    .region
                    .extents
                    .get_or_insert_default()
                    .looked_bytes = n
            },
        )
        .null(Null::Account)
        .doc(EXTENTS),
        Column::number(
            "hole_bytes",
            |row: &Witnessed| Some(row.observed.target.as_ref()?.region.extents?.hole_bytes),
            |row, n| {
                named_target(row)
                    .region
                    .extents
                    .get_or_insert_default()
                    .hole_bytes = n
            },
        )
        .null(Null::Account)
        .doc(EXTENTS),
        Column::number(
            "unwritten_bytes",
            |row: &Witnessed| {
                row.observed
                    .target
                    .as_ref()?
                    .region
                    .extents?
                    .unwritten_bytes
            },
            |row, n| {
                let extents = named_target(row).region.extents.get_or_insert_default();
                extents.unwritten_bytes = Some(n);
            },
        )
        .null(Null::Free)
        .doc(EXTENTS),
    ];
    [
        first,
        cache!(
            "before_",
            Witnessed,
            |row| row.observed.target.as_ref()?.region.before,
            |row| &mut named_target(row).region.before,
            "of it: bytes that were looked at before the start, in the page cache, dirty, being written"
        ),
        cache!(
            "after_",
            Witnessed,
            |row| row.observed.target.as_ref()?.region.after,
            |row| &mut named_target(row).region.after,
            "the same at the end"
        ),
        extents,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn machine() -> Vec<Column<Witnessed>> {
    const LIMITS: &str = "limits of the control groups of a program that iolab started: CPU time per time, memory; NULL for none";
    const NFS: &str = "bytes that NFS clients fetched from their servers and sent to them; NULL where the target does not lie on NFS";
    let mut columns = columns! {
        count!("others_unread", Witnessed, observed.others.unread, "other processes whose account could not be read");
        flag!("others_sees_ended",
            Witnessed, observed.others.sees_ended, "whether other processes that ended meanwhile are in `witness_process`: only root sees them");
        maybe!("dirty_before_bytes",
            Witnessed, observed.dirty_before_bytes, "bytes of the machine's page cache that had to be written at the start");
        of!("nfs_read_bytes", Witnessed, observed.nfs => read_bytes, NFS);
        of!("nfs_write_bytes", Witnessed, observed.nfs => write_bytes, NFS);
    };
    columns.extend(pressure_columns!(Witnessed, row => row.observed.pressure));
    columns.extend([
        Column::real(
            "limit_cpus",
            |row: &Witnessed| row.observed.limits.cpus,
            |row, cpus| row.observed.limits.cpus = Some(cpus),
        )
        .within(0.0, f64::MAX)
        .null(Null::Free)
        .doc(LIMITS),
        maybe!("limit_memory_bytes", Witnessed, observed.limits.memory_bytes, LIMITS).any(),
        Column::text(
            "limit_io",
            |row: &Witnessed| {
                let limits = row.observed.limits.io.iter();
                let limits: Vec<_> = limits.map(|(what, limit)| (what.name(), limit)).collect();
                Some(json!(limits).to_string().into())
            },
            |row, text| {
                let limits: Vec<(String, u64)> = match serde_json::from_str(text) {
                    Ok(limits) => limits,
                    Err(_) => return false,
                };
                let limits = limits.into_iter().map(|(what, limit)| Some((what.parse().ok()?, limit)));
                let limits: Option<Vec<_>> = limits.collect();
                limits.map(|limits| row.observed.limits.io = limits).is_some()
            },
        )
        .doc("those of traffic with the devices, a JSON array of pairs: `rbps`, `wbps`, `riops` or `wiops`, and its limit per second"),
        Column::text(
            "course_devices",
            |row: &Witnessed| Some(json!(row.observed.course.devices).to_string().into()),
            |row, text| {
                let names = serde_json::from_str(text);
                names.map(|names| row.observed.course.devices = names).is_ok()
            },
        )
        .doc("names of the devices in `witness_moment_device`, a JSON array"),
    ]);
    columns
}
