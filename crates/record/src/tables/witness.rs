//! Tables of what `iolab witness` saw; empty in files of runs.

use std::sync::LazyLock;

use iolab_workload::region_state::Medium;
use serde_json::json;

use crate::column::{Column, Null, Table};
use crate::witness::Witnessed;
use iolab_workload::table;

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

mod parts;
mod subject;

pub use parts::{
    MomentDeviceRow, WITNESS_DEVICE, WITNESS_DISK, WITNESS_FILE, WITNESS_MOMENT,
    WITNESS_MOMENT_DEVICE, WITNESS_PROCESS,
};

/// A table of this module: none of its columns is older than version 6.
fn witness_table<T>(
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
        columns: columns.collect(),
        constraints,
    }
}

/// Table `witness`.
pub static WITNESS: LazyLock<Table<Witnessed>> = LazyLock::new(|| {
    witness_table(
        "witness",
        "one row in a file of `iolab witness`, which has no experiment",
        vec![
            subject::subject(),
            subject::end(),
            processes(),
            ways(),
            target(),
            machine(),
            subject::verdicts(),
            subject::claim(),
            parts::program(),
        ],
        &["CHECK (id = 1)"],
    )
});

fn processes() -> Vec<Column<Witnessed>> {
    const IO: &str = "from the I/O accounts of all its processes: bytes of read and write calls, and their number";
    const STORED: &str = "fetched from storage; sent to storage, or dirtied in the page cache";
    const USAGE: &str = "CPU time, page faults without and with I/O, context switches; NULL where iolab did not start it";
    let families = table! {
        number!("collected", Witnessed, observed.processes.collected).doc("processes whose ends iolab collected");
        number!("cut_short", Witnessed, observed.processes.cut_short).doc("processes that ended without an account of their end");
        number!("unread", Witnessed, observed.processes.unread).doc("processes that had not ended and whose account could not be read");
        number!("running", Witnessed, observed.processes.running).doc("processes that had not ended");
        flag!("ignores_children",
            Witnessed, observed.processes.ignores_children).doc("one ignored the ends of its children, whose accounts are in no other one");
        flag!("is_complete", Witnessed, observed.processes.is_complete).doc("the accounts of all tasks that ended were received");
    };
    let other_bytes = table! {
        number!("cancelled_write_bytes",
            Witnessed, observed.processes.cancelled_write_bytes).doc("bytes among those to be written that never will be");
        number!("fault_bytes",
            Witnessed, observed.processes.fault_bytes?).doc("bytes of `read_bytes` that page faults are taken to have fetched, and no read call: two windows of read-ahead each; no bound where `uncounted` has `mmap`; NULL where faults are not counted");
    };
    let io = process_io!("", Witnessed, [observed.processes.io?], IO, IO, STORED);
    let usage = resource_use!(Witnessed, [observed.processes.usage?], USAGE, USAGE, USAGE);
    let delay = number!("run_delay_ns", Witnessed, observed.processes.run_delay_ns)
        .doc("time in which its threads waited for a CPU, up to the last look at each");
    let columns = families.into_iter().chain(io).chain(other_bytes);
    columns.chain(usage).chain([delay]).collect()
}

fn ways() -> Vec<Column<Witnessed>> {
    const UNCOUNTED: &str = "whether storage was open for reading, with `O_DIRECT` and without, in processes that had one of these ways";
    const OPEN: &str =
        "whether storage was open for reading and for writing, with `O_DIRECT` and without";
    Vec::from(table! {
        number!("looks", Witnessed, observed.ways.looks).doc("looks at what its processes had open; with 0 the next columns are empty");
        flag!("direct_reads", Witnessed, observed.ways.reads.direct).doc(OPEN);
        flag!("buffered_reads", Witnessed, observed.ways.reads.buffered).doc(OPEN);
        flag!("direct_writes", Witnessed, observed.ways.writes.direct).doc(OPEN);
        flag!("buffered_writes", Witnessed, observed.ways.writes.buffered).doc(OPEN);
        words!("uncounted", observed.ways.uncounted, "ways of I/O whose bytes the kernel does not count as calls, a JSON array");
        flag!("direct_uncounted_reads", Witnessed, observed.ways.uncounted_reads.direct).doc(UNCOUNTED);
        flag!("buffered_uncounted_reads", Witnessed, observed.ways.uncounted_reads.buffered).doc(UNCOUNTED);
        words!("sources", observed.ways.sources, "what else it could read from, a JSON array");
        words!("sinks", observed.ways.sinks, "what else it could write to, a JSON array");
        flag!("inner_pipes", Witnessed, observed.ways.inner_pipes).doc("pipes led from one of its processes to another");
    })
}

fn target() -> Vec<Column<Witnessed>> {
    const EXTENTS: &str = "of it: bytes that were looked at for holes before the start, in holes, and allocated but never written";
    const BEFORE: &str = "of it: bytes that were looked at before the start, in the page cache, dirty, being written";
    const AFTER: &str = "the same at the end";
    let first = table! {
        Column::text(
            "target",
            |row: &Witnessed| Some(row.observed.target.as_ref()?.path.to_string_lossy()),
            |row, text| {
                row.observed.target.get_or_insert_default().path = text.into();
                true
            },
        )
        .null(Null::Account)
        .doc("what `--on` named");
        word!("target_medium", Witnessed, observed.target?.medium, Medium)
            .doc("what answers for its bytes: `storage`, `memory`, `elsewhere` (a process or another machine)");
        number!("target_bytes", Witnessed, observed.target?.bytes?).doc("its size; NULL for a folder");
        flag!("target_is_device", Witnessed, observed.target?.is_device).doc("whether it is a block device");
    };
    let extents = extents!(
        Witnessed,
        [observed.target?.region.extents?],
        EXTENTS,
        EXTENTS
    );
    let before = residency!(
        "before_",
        Witnessed,
        [observed.target?.region.before?],
        BEFORE
    );
    let after = residency!("after_", Witnessed, [observed.target?.region.after?], AFTER);
    let columns = first.into_iter().chain(before).chain(after);
    columns.chain(extents).collect()
}

fn machine() -> Vec<Column<Witnessed>> {
    const LIMITS: &str = "limits of the control groups of a program that iolab started: CPU time per time, memory; NULL for none";
    const NFS: &str = "bytes that NFS clients fetched from their servers and sent to them; NULL where the target does not lie on NFS";
    let mut columns = Vec::from(table! {
        number!("others_unread", Witnessed, observed.others.unread).doc("other processes whose account could not be read");
        flag!("others_sees_ended",
            Witnessed, observed.others.sees_ended).doc("whether other processes that ended meanwhile are in `witness_process`: only root sees them");
        number!("dirty_before_bytes",
            Witnessed, observed.dirty_before_bytes?).doc("bytes of the machine's page cache that had to be written at the start");
        number!("nfs_read_bytes", Witnessed, observed.nfs?.read_bytes).doc(NFS);
        number!("nfs_write_bytes", Witnessed, observed.nfs?.write_bytes).doc(NFS);
    });
    columns.extend(pressure_columns!(Witnessed, row => row.observed.pressure));
    columns.extend(table! {
        real!("limit_cpus", Witnessed, observed.limits.cpus?).doc(LIMITS).within(0.0, f64::MAX);
        number!("limit_memory_bytes", Witnessed, observed.limits.memory_bytes?).doc(LIMITS).any();
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
        .doc("limits of traffic with the devices, a JSON array of pairs: `rbps`, `wbps`, `riops` or `wiops`, and its limit per second");
        json_text!("course_devices", Witnessed, observed.course.devices)
            .doc("names of the devices in `witness_moment_device`, a JSON array");
    });
    columns
}
