//! Columns of what control groups and the kernel's trace events showed of a program.

use iolab_workload::witness::{DiskTraffic, GroupHolds};

use crate::column::Column;
use crate::witness::Witnessed;
use iolab_workload::table;

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
