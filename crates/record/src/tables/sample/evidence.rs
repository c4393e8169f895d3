//! Columns of a sample by operation, by stage of traced requests, and of the counters of kernel and processor.

use super::Columns;
use crate::column::{Access, Column, Null};
use crate::{Hardware, LatencySummary, Operation, Sample};
use iolab_workload::counters::{DeviceStat, HardwareEvents, Pressure, ProcessIo, ResourceUse};
use iolab_workload::region_state::{Extents, Residency};
use iolab_workload::response::Response;
use iolab_workload::stages::{CarriedBy, Journal, Stage, StageSummary};
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
    names_all!(ResourceUse: user_ns system_ns minor_faults major_faults voluntary_switches involuntary_switches);
    names_all!(ProcessIo: rchar wchar syscr syscw read_bytes write_bytes);
    let columns = table! {
        number!("user_ns", Sample, counters.usage.user_ns).doc(CPU);
        number!("system_ns", Sample, counters.usage.system_ns).doc(CPU);
        number!("minor_faults", Sample, counters.usage.minor_faults).doc(FAULTS);
        number!("major_faults", Sample, counters.usage.major_faults).doc(FAULTS);
        number!("voluntary_switches", Sample, counters.usage.voluntary_switches).doc(SWITCHES);
        number!("involuntary_switches", Sample, counters.usage.involuntary_switches).doc(SWITCHES);
        number!("process_rchar_bytes", Sample, counters.process_io?.rchar).doc(MOVED);
        number!("process_wchar_bytes", Sample, counters.process_io?.wchar).doc(MOVED);
        number!("process_read_calls", Sample, counters.process_io?.syscr).doc(CALLS);
        number!("process_write_calls", Sample, counters.process_io?.syscw).doc(CALLS);
        number!("process_read_bytes", Sample, counters.process_io?.read_bytes).doc(STORED);
        number!("process_write_bytes", Sample, counters.process_io?.write_bytes).doc(STORED);
        number!("nfs_read_bytes", Sample, counters.nfs?.read_bytes).doc(NFS);
        number!("nfs_write_bytes", Sample, counters.nfs?.write_bytes).doc(NFS);
    };
    columns.into()
}

/// The counters of a block device, NULL together if there are none: with the meanings of requests, merges, bytes, the
/// busy time and the sum of the times.
macro_rules! device_stat {
    ($prefix:literal, [$($at:tt)+], $docs:expr) => {{
        names_all!(DeviceStat: read_ios read_merges read_bytes write_ios write_merges write_bytes flush_ios busy_ms queue_ms);
        let [ios, merges, bytes, busy, queue] = $docs;
        [
            number!(concat!($prefix, "read_ios"), Sample, $($at)+.read_ios).doc(ios),
            number!(concat!($prefix, "read_merges"), Sample, $($at)+.read_merges).doc(merges),
            number!(concat!($prefix, "read_bytes"), Sample, $($at)+.read_bytes).doc(bytes),
            number!(concat!($prefix, "write_ios"), Sample, $($at)+.write_ios).doc(ios),
            number!(concat!($prefix, "write_merges"), Sample, $($at)+.write_merges).doc(merges),
            number!(concat!($prefix, "write_bytes"), Sample, $($at)+.write_bytes).doc(bytes),
            number!(concat!($prefix, "flush_ios"), Sample, $($at)+.flush_ios).doc(ios),
            number!(concat!($prefix, "busy_ms"), Sample, $($at)+.busy_ms).doc(busy),
        ]
        .map(|column| column.null(Null::Account))
        .into_iter()
        .chain([number!(concat!($prefix, "queue_ms"), Sample, $($at)+.queue_ms?).doc(queue)])
    }};
}

pub(super) fn device() -> Columns {
    const IOS: &str = "requests that the block device completed, everybody's";
    const MERGES: &str = "requests that were merged into others";
    const BYTES: &str = "bytes that the block device transferred, everybody's";
    const BUSY: &str = "time the device had requests in flight";
    const QUEUE: &str = "sum of the times that requests were in flight there; over `elapsed_ns` it is their mean number";
    let docs = [IOS, MERGES, BYTES, BUSY, QUEUE];
    device_stat!("device_", [counters.device?], docs).collect()
}

pub(super) fn bottom() -> Columns {
    const DOC: &str = "the same of the disks at the bottom of a stacked device (partition, dm, md, loop), added up; 0 where its bytes end in memory; NULL where the device is the bottom itself, or what is below is unknown";
    let flags = table! {
        flag!("bottom_in_file", Sample, counters.bottom?.in_file).doc("1: a loop device lies between, so the page cache may hold its file");
        flag!("bottom_passes_on", Sample, counters.bottom?.passes_on)
            .doc("1: the layers between pass on each byte once, and nothing of their own, so that others caused what the disks carried beyond");
    };
    let stat = device_stat!("bottom_", [counters.bottom?.stat], [DOC; 5]);
    stat.chain(flags).collect()
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
            Column::of(
                $name,
                Access::number(
                    |s: &Sample| s.counters.hardware.events().$field,
                    |s, n| events(s).$field = Some(n),
                ),
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
    const STALL: &str = "pressure (PSI, `some`): time in which any task of the machine waited for a CPU, for I/O, for memory; unknown below four ticks of the kernel (16 ms at 250 Hz)";
    names_all!(Pressure: cpu_stall_ns io_stall_ns memory_stall_ns steal_ns interrupts suspended_ns throttled_ns cpu_khz);
    let columns = table! {
        number!("cpu_stall_ns", Sample, counters.pressure.cpu_stall_ns?).doc(STALL);
        number!("io_stall_ns", Sample, counters.pressure.io_stall_ns?).doc(STALL);
        number!("memory_stall_ns", Sample, counters.pressure.memory_stall_ns?).doc(STALL);
        number!("steal_ns", Sample, counters.pressure.steal_ns?)
            .doc("CPU time that the hypervisor gave to others, all CPUs together; counted in ticks, mostly of 10 ms");
        number!("interrupts", Sample, counters.pressure.interrupts?)
            .doc("interrupts that CPUs served, of devices, timers and other CPUs, of the whole machine; polling for completions causes fewer than one per request");
        number!("suspended_ns", Sample, counters.pressure.suspended_ns?)
            .doc("time that the machine slept (CLOCK_BOOTTIME against CLOCK_MONOTONIC) or iolab was stopped (SIGTSTP)");
        number!("throttled_ns", Sample, counters.pressure.throttled_ns?)
            .doc("time in which the control group of iolab or one above it had used up its CPU quota and waited, all CPUs together");
        number!("buffer_piece_bytes", Sample, counters.buffer_piece_bytes?)
            .doc("mean length of the stretches of physical memory that the I/O buffers lay in (up to 16 MiB of each worker); needs CAP_SYS_ADMIN");
        number!("drive_millidegrees", Sample, counters.drive_millidegrees?)
            .doc("temperature of the drive right after the trial (hwmon, of several the hottest), in thousandths of a degree Celsius");
        number!("cpu_khz", Sample, counters.pressure.cpu_khz?)
            .doc("greatest frequency among up to eight groups of CPUs (cpufreq) at the end, if cpufreq reports it");
    };
    columns.into()
}

const LOOKED: &str = "bytes that were looked at, spread over the region; less than the region where looking at all would have taken too long, the counts are scaled then";

const HELD: &str = "bytes of the region in the page cache before the start and after the end; NULL where the kernel does not tell this user";

const DIRTY: &str = "dirty bytes among them, still to be written";

const WRITEBACK: &str = "bytes among them in write-back";

/// The part of the region in the page cache.
macro_rules! residency {
    ($prefix:literal, $at:ident) => {{
        names_all!(Residency: looked_bytes resident_bytes dirty_bytes writeback_bytes);
        let columns = table! {
            number!(concat!($prefix, "looked_bytes"), Sample, region.$at?.looked_bytes).doc(LOOKED);
            number!(concat!($prefix, "bytes"), Sample, region.$at?.resident_bytes).doc(HELD);
            number!(concat!($prefix, "dirty_bytes"), Sample, region.$at?.dirty_bytes?).doc(DIRTY);
            number!(concat!($prefix, "writeback_bytes"), Sample, region.$at?.writeback_bytes?).doc(WRITEBACK);
        };
        columns.into()
    }};
}

pub(super) fn cache_before() -> Columns {
    residency!("cache_before_", before)
}

pub(super) fn cache_after() -> Columns {
    residency!("cache_after_", after)
}

pub(super) fn extents() -> Columns {
    const LOOKED: &str = "bytes that were looked at for holes and unwritten extents, as above";
    const EMPTY: &str = "bytes of the region in holes, and in extents that were allocated but never written, before the start; without FIEMAP the second is NULL and the first holds both";
    names_all!(Extents: looked_bytes hole_bytes unwritten_bytes);
    let columns = table! {
        number!("extents_looked_bytes", Sample, region.extents?.looked_bytes).doc(LOOKED);
        number!("hole_bytes", Sample, region.extents?.hole_bytes).doc(EMPTY);
        number!("unwritten_bytes", Sample, region.extents?.unwritten_bytes?).doc(EMPTY);
        number!("owed_sync_ns", Sample, region.owed_sync_ns?)
            .doc("time of the `fdatasync` that followed writes which no sync of the trial had made durable, after the timed span");
        number!("evidence_ns", Sample, region.evidence_ns).doc("time that looking at all this took, before and after the timed span");
    };
    columns.into()
}

const SERVICE: &str = "service time (completion minus submission): mean, quantiles, greatest; with sync `each` and `fdatasync` a write's includes the sync that follows it; NULL without requests, and with `latency=false`";

const RESPONSE: &str =
    "response time (completion minus intended start), in the same parts; NULL in the closed loop";

const LATENESS: &str =
    "lateness (submission minus intended start), in the same parts; NULL in the closed loop";

const SYNC: &str = "service time of the syncs that follow writes (sync `each` and `fdatasync`), in the same parts; NULL without any";

const REQUESTS: &str = "requests completed";

const BYTES: &str = "bytes transferred by them";

const SHORT: &str = "transfers that the kernel cut short and iolab continued";

/// A summary without rare quantiles: a value that is missing in a row stays zero, which is noticed.
fn unread() -> Box<LatencySummary> {
    LatencySummary::from_fn(|of| of.is_always_kept().then_some(0.0)).into()
}

/// A column for each quantity of these times. Exports leave rare quantiles to the histograms, which are better.
fn latency(
    times: &str,
    doc: &'static str,
    get: fn(&Sample) -> Option<&LatencySummary>,
    put: fn(&mut Sample) -> &mut LatencySummary,
) -> Columns {
    let column = |of: Response| {
        let name = of.column_of(times).leak();
        let value = move |s: &Sample| get(s)?[of];
        let real = Access::real(value, move |s, ns| put(s)[of] = Some(ns));
        let column = match of.quantile() {
            None => Column::of(name, real).within(0.0, f64::MAX),
            Some(_) => Column::of(
                name,
                Access::number(
                    move |s| value(s).map(|ns| ns as u64),
                    move |s, ns| put(s)[of] = Some(ns as f64),
                ),
            ),
        };
        match of.is_always_kept() {
            true => column.null(Null::Account).doc(doc),
            false => column.null(Null::Free).hidden().doc(RARE),
        }
    };
    let latencies = Response::ALL.into_iter().filter(|of| of.is_latency());
    latencies.map(column).collect()
}

const RARE: &str = "rarer quantiles of the same times";

/// The columns of the times at a path; see [`latency`].
macro_rules! latency {
    ($times:expr, $($at:ident).+, $doc:expr) => {
        latency(
            $times,
            $doc,
            |s| s.$($at).+.as_deref(),
            |s| s.$($at).+.get_or_insert_with(unread),
        )
    };
}

/// Columns of an operation that transfers data. Arguments: prefix of the names, field.
macro_rules! moved {
    ($name:literal, $operation:ident) => {{
        let mut columns = Vec::from(table! {
            number!(concat!($name, "_requests"), Sample, operations.$operation.requests).doc(REQUESTS);
            number!(concat!($name, "_bytes"), Sample, operations.$operation.bytes).doc(BYTES);
            number!(concat!($name, "_short_transfers"), Sample, operations.$operation.short_transfers).doc(SHORT);
        });
        columns.extend(latency!(
            concat!($name, "_latency"),
            operations.$operation.latency,
            SERVICE
        ));
        columns.extend(latency!(
            concat!($name, "_response"),
            operations.$operation.response,
            RESPONSE
        ));
        columns.extend(latency!(
            concat!($name, "_lateness"),
            operations.$operation.lateness,
            LATENESS
        ));
        columns
    }};
}

/// The columns of all operations.
pub(super) fn operations() -> Columns {
    let of = |operation: &Operation| match operation {
        Operation::Read => moved!("read", read),
        Operation::Write => moved!("write", write),
        Operation::Sync => syncs(),
        Operation::Trim => trims(),
    };
    Operation::ALL.iter().flat_map(of).collect()
}

/// The column `syncs` says whether there were any.
fn syncs() -> Columns {
    latency!("sync_latency", operations.sync.latency, SYNC)
}

fn trims() -> Columns {
    const TRIMS: &str = "requests that trimmed (`trim_percent`), and the bytes that they covered; included in throughput and IOPS";
    let mut columns = vec![
        number!("trim_requests", Sample, operations.trim.requests)
            .doc(TRIMS)
            .null(Null::Free),
        number!("trim_bytes", Sample, operations.trim.bytes)
            .doc(TRIMS)
            .null(Null::Free),
    ];
    columns.extend(latency!("trim_latency", operations.trim.latency, SERVICE));
    columns
}

const JOINED: &str =
    "requests of a traced trial whose events were all found, and those that miss some";

const SPLIT: &str = "joined requests that were several to the device";

const CARRIED: &str = "requests of the disk that carried the trial's requests, requests of others (the file system's too), and flushes of its cache; `flush_waits` are requests that transfer nothing and wait for a flush. Their sum equals the sum of `device_read_ios`, `device_write_ios` and `device_flush_ios` over the same time";

const SYNCS: &str = "syncs that followed writes, or that writes carried out themselves; the journal commits that these waited for, and the ones that several waited for; likewise for flushes";

const LOST: &str = "events that the kernel had no room for";

const TIME: &str = "time of a request in this layer, ns: its mean, quantiles, and the mean over the slowest 1 % of the requests; NULL where that is not known. `admission`, `queue`, `device` and `delivery` add up to the service time, `completion`, `cpu_wait` and `reaping` to `delivery`. The columns `sync_...` describe a sync that follows a write or is within it, and add up to its time; the write's own are without it. See METHODS.md";

/// The numbers of a stage.
fn of_stage(stage: Stage) -> [Column<Sample>; 4] {
    fn own(row: &mut Sample, stage: Stage) -> &mut StageSummary {
        row.traced.get_or_insert_default().stages[stage].get_or_insert_default()
    }
    let of = move |row: &Sample| row.traced.as_ref()?.stages[stage];
    let stage_name = stage.name().replace('-', "_");
    let name = |part: &str| -> &'static str { format!("stage_{stage_name}_{part}_ns").leak() };
    let columns = table! {
        Column::of(name("mean"), Access::real(move |row| Some(of(row)?.mean_ns), move |row, ns| own(row, stage).mean_ns = ns));
        Column::of(name("p50"), Access::number(move |row| Some(of(row)?.p50_ns), move |row, ns| own(row, stage).p50_ns = ns));
        Column::of(name("p99"), Access::number(move |row| Some(of(row)?.p99_ns), move |row, ns| own(row, stage).p99_ns = ns));
        Column::of(name("tail_mean"), Access::real(move |row| Some(of(row)?.tail_mean_ns), move |row, ns| own(row, stage).tail_mean_ns = ns));
    };
    columns.map(|column| column.within(0.0, f64::MAX).null(Null::Account).doc(TIME))
}

/// The columns of a traced trial.
pub(super) fn stages() -> Columns {
    let counts = table! {
        number!("joined_requests", Sample, traced?.counts.joined).doc(JOINED);
        number!("unjoined_requests", Sample, traced?.counts.unjoined).doc(JOINED);
        number!("split_requests", Sample, traced?.counts.split).doc(SPLIT);
        number!("carrying_requests", Sample, traced?.counts.carried).doc(CARRIED);
        number!("other_requests", Sample, traced?.counts.others).doc(CARRIED);
        number!("device_flushes", Sample, traced?.counts.flushes).doc(CARRIED);
        number!("flush_waits", Sample, traced?.counts.flush_waits).doc(CARRIED);
        number!("lost_events", Sample, traced?.counts.lost).doc(LOST);
        text!("trace_note", Sample, traced?.note).doc("why there are no stages, or not all of them, or not of all requests");
        number!("traced_syncs", Sample, traced?.counts.syncs.syncs).doc(SYNCS);
        number!("sync_commits", Sample, traced?.counts.syncs.commits).doc(SYNCS);
        number!("shared_commits", Sample, traced?.counts.syncs.shared_commits).doc(SYNCS);
        number!("sync_flushes", Sample, traced?.counts.syncs.flushes).doc(SYNCS);
        number!("shared_flushes", Sample, traced?.counts.syncs.shared_flushes).doc(SYNCS);
        word!("trace_journal", Sample, traced?.journal?, Journal)
            .doc("how the journal of the file system shows, where syncs were traced: `none`, by its `commits`, or by the device's `metadata-writes`");
        word!("trace_carrier", Sample, traced?.carried_by, CarriedBy)
            .doc("what has a request in the stage `device`: a `disk`, `layers` that stand on others (device mapper, md) with the disks below, or `both`, of groups");
    };
    let stages = Stage::ALL.iter().flat_map(|stage| of_stage(*stage));
    counts.into_iter().chain(stages).collect()
}
