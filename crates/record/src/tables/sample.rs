//! The columns of table `sample`, in the order of exports.

use std::sync::LazyLock;

use iolab_spec::counters::HardwareEvents;
use iolab_spec::region::Residency;
use iolab_spec::verify::Faults;

use super::{text, word};
use crate::column::{Column, LATER, Null, Table};
use crate::{
    Cpus, Ended, Hardware, LatencySummary, NoHardware, RateReport, RequestSizes, Sample, ServedBy,
};

type Columns = Vec<Column<Sample>>;

/// Table `sample`.
pub static SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| Table {
    name: "sample",
    doc: "one row per trial",
    exported: true,
    columns: [
        place(),
        course(),
        reads(),
        writes(),
        syncs(),
        trims(),
        sizes(),
        rate_report(),
        process(),
        cpus(),
        device(),
        bottom(),
        hardware(),
        machine(),
        cache_before(),
        cache_after(),
        extents(),
        verified(),
        effective(),
        verdict(),
    ]
    .into_iter()
    .flatten()
    .collect(),
    constraints: &["FOREIGN KEY (cell_id) REFERENCES cell (id)"],
});

/// A number that every sample has: its name, its field, what it means.
macro_rules! plain {
    ($name:literal, $($field:ident).+, $doc:expr) => {
        Column::number(
            $name,
            |s: &Sample| Some(s.$($field).+),
            |s, n| s.$($field).+ = n,
        )
        .doc($doc)
    };
}

/// A number that may not be known: its name, its field, what it means.
macro_rules! known {
    ($name:literal, $($field:ident).+, $doc:expr) => {
        Column::number($name, |s: &Sample| s.$($field).+, |s, n| s.$($field).+ = Some(n))
            .null(Null::Free)
            .doc($doc)
    };
}

/// A number of an account that is there as a whole or not at all: its name, the account, its field, what it means.
macro_rules! of {
    ($name:expr, $($account:ident).+ => $field:ident, $doc:expr) => {
        Column::number(
            $name,
            |s: &Sample| s.$($account).+.map(|account| account.$field),
            |s, n| s.$($account).+.get_or_insert_default().$field = n,
        )
        .null(Null::Account)
        .doc($doc)
    };
}

/// The six numbers of a latency.
macro_rules! latency {
    ($prefix:literal, $($place:ident).+, $doc:expr) => {
        [
            Column::real(
                concat!($prefix, "_mean_ns"),
                |s: &Sample| s.$($place).+.map(|l: LatencySummary| l.mean_ns),
                |s, n| s.$($place).+.get_or_insert_default().mean_ns = n,
            )
            .within(0.0, f64::MAX)
            .null(Null::Account)
            .doc($doc),
            of!(concat!($prefix, "_p50_ns"), $($place).+ => p50_ns, $doc),
            of!(concat!($prefix, "_p90_ns"), $($place).+ => p90_ns, $doc),
            of!(concat!($prefix, "_p99_ns"), $($place).+ => p99_ns, $doc),
            of!(concat!($prefix, "_p999_ns"), $($place).+ => p999_ns, $doc),
            of!(concat!($prefix, "_max_ns"), $($place).+ => max_ns, $doc),
        ]
    };
}

/// Columns of [`SAMPLE`] that only a whole trial has.
const OF_TRIAL: [&str; 2] = ["wall_ns", "clock_drift_ppm"];

/// Table `group_sample`: a sample of what one group did.
pub static GROUP_SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| {
    let key = vec![
        Column::number(
            "sample_id",
            |s: &Sample| Some(s.id as u64),
            |s, n| s.id = n as i64,
        )
        .any()
        .doc("the sample of the whole trial"),
        Column::number(
            "group_id",
            |s: &Sample| Some(s.group.into()),
            |s, n| s.group = n as u32,
        )
        .between(1, u32::MAX.into())
        .doc("the group, as in table `cell_group`"),
        plain!(
            "start_ns",
            start_ns,
            "its first worker's start, from that of the trial"
        ),
        ended(),
    ];
    Table {
        name: "group_sample",
        doc: "one row per trial and group, where a cell has groups",
        exported: false,
        columns: [
            key,
            course(),
            reads(),
            writes(),
            syncs(),
            rate_report(),
            process(),
            hardware(),
            verified(),
            effective(),
        ]
        .into_iter()
        .flatten()
        .filter(|column| !OF_TRIAL.contains(&column.name))
        .map(|column| column.since(LATER))
        .collect(),
        constraints: &[
            "PRIMARY KEY (sample_id, group_id)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

const SERVICE: &str = "service time (completion minus submission): mean, quantiles 0.5, 0.9, 0.99, 0.999, greatest; with sync `each` and `fdatasync` a write's includes the sync that follows it; NULL without requests, and with `latency=false`";
const RESPONSE: &str =
    "response time (completion minus intended start), in the same parts; NULL in the closed loop";
const LATENESS: &str =
    "lateness (submission minus intended start), in the same parts; NULL in the closed loop";
const SYNC: &str = "service time of the syncs that follow writes (sync `each` and `fdatasync`), in the same parts; NULL without any";
const REQUESTS: &str = "requests completed";
const BYTES: &str = "bytes transferred by them";
const SHORT: &str = "transfers that the kernel cut short and iolab continued";

fn place() -> Columns {
    vec![
        Column::number("id", |s: &Sample| Some(s.id as u64), |s, n| s.id = n as i64)
            .key()
            .hidden()
            .doc("in the order of time"),
        Column::number(
            "cell_id",
            |s: &Sample| Some(s.cell as u64),
            |s, n| s.cell = n as i64,
        )
        .hidden()
        .doc("the cell"),
        Column::number(
            "block",
            |s: &Sample| Some(s.block.into()),
            |s, n| s.block = n as u32,
        )
        .between(0, u32::MAX.into())
        .doc("the block; block 0 is the warm-up"),
        Column::number(
            "visit",
            |s: &Sample| Some(s.visit.into()),
            |s, n| s.visit = n as u32,
        )
        .between(0, u32::MAX.into())
        .since(5)
        .hidden()
        .doc("which visit of the block to the cell, from 0. There is one `ok` sample at most per cell, block and visit"),
        Column::number(
            "position",
            |s: &Sample| Some(s.position.into()),
            |s, n| s.position = n as u32,
        )
        .between(0, u32::MAX.into())
        .doc("the place within the block"),
        Column::flag("warmup", |s: &Sample| Some(s.warmup), |s, on| s.warmup = on).doc(
            "1: to be left out of summaries: the cell's first trial; in a run with finer sizes also every trial before these were added, once the run is done",
        ),
        Column::flag("ok", |s: &Sample| Some(s.ok), |s, on| s.ok = on).doc("0: the trial failed"),
        text!("started_utc", Sample, started_utc).doc("when it began"),
        ended(),
    ]
}

fn ended() -> Column<Sample> {
    word!("ended", Sample, ended, Ended)
        .doc("`done` (bytes, requests or the pass), `time`, `failed`")
}

fn course() -> Columns {
    vec![
        Column::real(
            "throughput_mb_s",
            |s: &Sample| Some(s.throughput_mb_s()),
            |_, _| (),
        )
        .derived(),
        Column::real("iops", |s: &Sample| Some(s.iops()), |_, _| ()).derived(),
        plain!(
            "elapsed_ns",
            elapsed_ns,
            "first worker's start to last worker's end"
        ),
        plain!(
            "all_active_ns",
            all_active_ns,
            "span in which every worker was active"
        ),
        plain!(
            "end_sync_ns",
            end_sync_ns,
            "the part of `elapsed_ns` in the final `fsync` of policy `end`"
        ),
        plain!(
            "paused_ns",
            paused_ns,
            "time in pauses (`thinktime`, `bursts`), summed over all threads"
        )
        .null(Null::Free)
        .since(LATER),
        plain!(
            "wall_ns",
            wall_ns,
            "preparation, trial and bookkeeping: what it took from the budget"
        ),
        Column::real(
            "clock_drift_ppm",
            |s: &Sample| Some(s.clock_drift_ppm).filter(|ppm| !ppm.is_nan()),
            |s, n| s.clock_drift_ppm = n,
        )
        .null(Null::Account)
        .doc("time-stamp counter against CLOCK_MONOTONIC_RAW over the trial"),
        plain!("seed", seed, "seed of the trial").any(),
        plain!("syncs", syncs, "`fsync` and `fdatasync` calls"),
        plain!("errors", errors, "requests that failed"),
        text!("failure", Sample, failure?).doc("the first of them in words"),
    ]
}

fn reads() -> Columns {
    let mut columns = vec![
        plain!("read_requests", reads.requests, REQUESTS),
        plain!("read_bytes", reads.bytes, BYTES),
        plain!("read_short_transfers", reads.short_transfers, SHORT),
    ];
    columns.extend(latency!("read_latency", reads.latency, SERVICE));
    columns.extend(latency!("read_response", reads.response, RESPONSE).map(|c| c.since(3)));
    columns.extend(latency!("read_lateness", reads.lateness, LATENESS).map(|c| c.since(3)));
    columns
}

fn writes() -> Columns {
    let mut columns = vec![
        plain!("write_requests", writes.requests, REQUESTS),
        plain!("write_bytes", writes.bytes, BYTES),
        plain!("write_short_transfers", writes.short_transfers, SHORT),
    ];
    columns.extend(latency!("write_latency", writes.latency, SERVICE));
    columns.extend(latency!("write_response", writes.response, RESPONSE).map(|c| c.since(3)));
    columns.extend(latency!("write_lateness", writes.lateness, LATENESS).map(|c| c.since(3)));
    columns
}

fn syncs() -> Columns {
    latency!("sync_latency", sync_latency, SYNC)
        .map(|c| c.since(LATER))
        .into()
}

fn trims() -> Columns {
    const TRIMS: &str = "requests that trimmed (`trim_percent`), and the bytes that they covered; included in throughput, IOPS and the series";
    let mut columns = vec![
        plain!("trim_requests", trims.requests, TRIMS).null(Null::Free),
        plain!("trim_bytes", trims.bytes, TRIMS).null(Null::Free),
    ];
    columns.extend(latency!("trim_latency", trims.latency, SERVICE));
    columns.into_iter().map(|c| c.since(LATER)).collect()
}

fn sizes() -> Columns {
    vec![
        Column::text(
            "request_sizes",
            |s: &Sample| {
                let sizes: &RequestSizes = &s.request_sizes;
                let drawn = !sizes.counts().is_empty();
                drawn.then(|| sizes.to_string().into())
            },
            |s, text| text.parse().map(|sizes| s.request_sizes = sizes).is_ok(),
        )
        .null(Null::Free)
        .since(LATER)
        .doc("requests by direction and size, if `bs_mix` is set: `read 4096 601,read 65536 299`; NULL otherwise"),
    ]
}

fn cpus() -> Columns {
    vec![
        known!(
            "waited_requests",
            waited,
            "requests that would have waited (RWF_NOWAIT) and were repeated without the flag; NULL without `nowait`"
        )
        .since(LATER),
        Column::text(
            "cpus_used",
            |s: &Sample| {
                let cpus: &Cpus = &s.cpus_used;
                (!cpus.is_empty()).then(|| cpus.to_string().into())
            },
            |s, text| text.parse().map(|cpus| s.cpus_used = cpus).is_ok(),
        )
        .null(Null::Free)
        .since(LATER)
        .doc("CPUs that threads ran on (`0-3,8`), sampled at start and end of each thread and at every interval of its series; NULL if not sampled"),
    ]
}

fn rate_report() -> Columns {
    const RATES: &str = "requests per second asked for, and submitted until the time was up or the last one was submitted; NULL in the closed loop, like the next two";
    const BACKLOG: &str = "requests that were due and not submitted because every slot was taken: the most, and when the time was up or the last one was submitted; see METHODS.md";
    vec![
        Column::real(
            "rate_wanted",
            |s: &Sample| s.rate_report.map(|p: RateReport| p.rate_wanted),
            |s, n| s.rate_report.get_or_insert_default().rate_wanted = n,
        )
        .within(0.0, f64::MAX)
        .null(Null::Account)
        .since(3)
        .doc(RATES),
        Column::real(
            "rate_achieved",
            |s: &Sample| s.rate_report.map(|p| p.rate_achieved),
            |s, n| s.rate_report.get_or_insert_default().rate_achieved = n,
        )
        .within(0.0, f64::MAX)
        .null(Null::Account)
        .since(3)
        .doc(RATES),
        of!("backlog_max", rate_report => backlog_max, BACKLOG).since(3),
        of!("backlog_end", rate_report => backlog_end, BACKLOG).since(3),
    ]
}

fn process() -> Columns {
    const CPU: &str = "CPU time of the process, in user mode and in the kernel";
    const FAULTS: &str = "page faults without and with I/O";
    const SWITCHES: &str = "context switches";
    const MOVED: &str =
        "from `/proc/self/io`: bytes that read and write calls moved, from and to wherever";
    const CALLS: &str = "read and write system calls (io_uring and libaio do not count here)";
    const STORED: &str = "fetched from storage; sent to storage, or dirtied in the page cache";
    vec![
        plain!("user_ns", counters.usage.user_ns, CPU),
        plain!("system_ns", counters.usage.system_ns, CPU),
        plain!("minor_faults", counters.usage.minor_faults, FAULTS),
        plain!("major_faults", counters.usage.major_faults, FAULTS),
        plain!(
            "voluntary_switches",
            counters.usage.voluntary_switches,
            SWITCHES
        ),
        plain!(
            "involuntary_switches",
            counters.usage.involuntary_switches,
            SWITCHES
        ),
        of!("process_rchar_bytes", counters.process_io => rchar, MOVED),
        of!("process_wchar_bytes", counters.process_io => wchar, MOVED),
        of!("process_read_calls", counters.process_io => syscr, CALLS),
        of!("process_write_calls", counters.process_io => syscw, CALLS),
        of!("process_read_bytes", counters.process_io => read_bytes, STORED),
        of!("process_write_bytes", counters.process_io => write_bytes, STORED),
    ]
}

fn device() -> Columns {
    const IOS: &str = "requests that the block device completed, everybody's";
    const MERGES: &str = "requests that were merged into others";
    const BYTES: &str = "bytes that the block device transferred, everybody's";
    vec![
        of!("device_read_ios", counters.device => read_ios, IOS),
        of!("device_read_merges", counters.device => read_merges, MERGES),
        of!("device_read_bytes", counters.device => read_bytes, BYTES),
        of!("device_write_ios", counters.device => write_ios, IOS),
        of!("device_write_merges", counters.device => write_merges, MERGES),
        of!("device_write_bytes", counters.device => write_bytes, BYTES),
        of!("device_flush_ios", counters.device => flush_ios, IOS),
        of!(
            "device_busy_ms",
            counters.device => busy_ms,
            "time the device had requests in flight"
        ),
        Column::number(
            "device_queue_ms",
            |s: &Sample| s.counters.device.and_then(|d| d.queue_ms),
            |s, n| s.counters.device.get_or_insert_default().queue_ms = Some(n),
        )
        .null(Null::Free)
        .since(4)
        .doc("sum of the times that requests were in flight there; over `elapsed_ns` it is their mean number"),
    ]
}

/// A counter of the disks at the bottom.
macro_rules! bottom {
    ($name:literal, $field:ident) => {
        Column::number(
            $name,
            |s: &Sample| s.counters.bottom.map(|b| b.stat.$field),
            |s, n| s.counters.bottom.get_or_insert_default().stat.$field = n,
        )
        .null(Null::Account)
        .since(3)
    };
}

fn bottom() -> Columns {
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
        .null(Null::Free)
        .since(4),
    ];
    columns = columns.into_iter().map(|column| column.doc(DOC)).collect();
    // A number and no flag in exports, as ever.
    columns.push(
        Column::number(
            "bottom_in_file",
            |s: &Sample| s.counters.bottom.map(|b| u64::from(b.in_file)),
            |s, n| s.counters.bottom.get_or_insert_default().in_file = n == 1,
        )
        .between(0, 1)
        .null(Null::Account)
        .since(3)
        .doc("1: a loop device lies between, so that the page cache may hold the file behind it"),
    );
    columns
}

/// The events of a sample, which then are counted.
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

fn hardware() -> Columns {
    const DOC: &str = "events the processor counted in the workers: core cycles, instructions retired, misses of the last-level cache and of the data TLB on loads; in user mode only where `note` says so";
    macro_rules! event {
        ($name:literal, $field:ident) => {
            Column::number(
                $name,
                |s: &Sample| s.counters.hardware.events().$field,
                |s, n| events(s).$field = Some(n),
            )
            .null(Null::Free)
            .since(2)
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

fn machine() -> Columns {
    const STALL: &str = "pressure (PSI, `some`): time in which any task of the machine waited for a CPU, for I/O, for memory";
    let columns = [
        known!("cpu_stall_ns", counters.pressure.cpu_stall_ns, STALL),
        known!("io_stall_ns", counters.pressure.io_stall_ns, STALL),
        known!("memory_stall_ns", counters.pressure.memory_stall_ns, STALL),
        known!(
            "steal_ns",
            counters.pressure.steal_ns,
            "CPU time that the hypervisor gave to others, all CPUs together; counted in ticks, mostly of 10 ms"
        ),
        known!(
            "suspended_ns",
            counters.pressure.suspended_ns,
            "time that the machine slept: CLOCK_BOOTTIME against CLOCK_MONOTONIC"
        ),
        known!(
            "throttled_ns",
            counters.pressure.throttled_ns,
            "time in which the control group of iolab had used up its CPU quota and waited, all CPUs together (cgroup v2)"
        )
        .since(LATER),
        known!(
            "buffer_piece_bytes",
            counters.buffer_piece_bytes,
            "mean length of the stretches of physical memory that the I/O buffers lay in (up to 16 MiB of each worker); needs CAP_SYS_ADMIN"
        )
        .since(LATER),
        known!(
            "cpu_khz",
            counters.pressure.cpu_khz,
            "greatest frequency among up to eight CPUs at the end, where cpufreq tells"
        ),
    ];
    columns
        .map(|column| match column.since {
            LATER => column,
            _ => column.since(3),
        })
        .into()
}

/// A number of what the page cache held that may not be known.
macro_rules! owed {
    ($name:literal, $when:ident.$field:ident, $doc:expr) => {
        Column::number(
            $name,
            |s: &Sample| s.region.$when.and_then(|r: Residency| r.$field),
            |s, n| s.region.$when.get_or_insert_default().$field = Some(n),
        )
        .null(Null::Free)
        .doc($doc)
    };
}

const LOOKED: &str = "bytes that were looked at, spread over the region; less than the region where looking at all would have taken too long, the counts are scaled then";
const HELD: &str = "bytes of the region in the page cache before the start and after the end; NULL where the kernel does not tell this user";
const DIRTY: &str = "those of them that had still to be written";
const WRITEBACK: &str = "those of them that were being written";

fn cache_before() -> Columns {
    let columns = [
        of!("cache_before_looked_bytes", region.before => looked_bytes, LOOKED),
        of!("cache_before_bytes", region.before => resident_bytes, HELD),
        owed!("cache_before_dirty_bytes", before.dirty_bytes, DIRTY),
        owed!(
            "cache_before_writeback_bytes",
            before.writeback_bytes,
            WRITEBACK
        ),
    ];
    columns.map(|column| column.since(3)).into()
}

fn cache_after() -> Columns {
    let columns = [
        of!("cache_after_looked_bytes", region.after => looked_bytes, LOOKED),
        of!("cache_after_bytes", region.after => resident_bytes, HELD),
        owed!("cache_after_dirty_bytes", after.dirty_bytes, DIRTY),
        owed!(
            "cache_after_writeback_bytes",
            after.writeback_bytes,
            WRITEBACK
        ),
    ];
    columns.map(|column| column.since(3)).into()
}

fn extents() -> Columns {
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
            "time of the `fdatasync` that followed buffered writes which no sync of the trial had made durable, after the timed span"
        ),
        plain!(
            "evidence_ns",
            region.evidence_ns,
            "time that looking at all this took, before and after the timed span"
        ),
    ];
    columns.map(|column| column.since(3)).into()
}

fn verified() -> Columns {
    const READ: &str = "blocks that were read back after the timed span, each once, and their bytes; NULL without `verify`, like all of the next";
    const WRONG: &str = "blocks that were not as they were written, by kind; see METHODS.md";
    const FIRST: &str = "the first byte of the target that is wrong with any of them; NULL without";
    macro_rules! fault {
        ($blocks:literal, $first:literal, $kind:literal) => {
            [
                Column::number(
                    $blocks,
                    |s: &Sample| s.verified.map(|v| v.faults[$kind].blocks),
                    |s, n| s.verified.get_or_insert_default().faults[$kind].blocks = n,
                )
                .null(Null::Account)
                .doc(WRONG),
                Column::number(
                    $first,
                    |s: &Sample| {
                        let faults: Option<Faults> = s.verified.map(|v| v.faults[$kind]);
                        let found = faults.filter(|faults| faults.blocks > 0);
                        found.map(|faults| faults.first_offset)
                    },
                    |s, n| s.verified.get_or_insert_default().faults[$kind].first_offset = n,
                )
                .null(Null::Account)
                .doc(FIRST),
            ]
        };
    }
    let mut columns = vec![
        of!("verified_blocks", verified => blocks, READ),
        of!("verified_bytes", verified => bytes, READ),
        Column::number(
            "verified_cached_bytes",
            |s: &Sample| s.verified.and_then(|v| v.cached_bytes),
            |s, n| s.verified.get_or_insert_default().cached_bytes = Some(n),
        )
        .null(Null::Free)
        .doc("bytes of the region that the page cache still held when that began"),
    ];
    // In the order of `FaultKind::ALL`.
    columns.extend(fault!("corrupted_blocks", "corrupted_first_offset", 0));
    columns.extend(fault!("misplaced_blocks", "misplaced_first_offset", 1));
    columns.extend(fault!("stale_blocks", "stale_first_offset", 2));
    columns.extend(fault!("torn_blocks", "torn_first_offset", 3));
    columns.extend(fault!("lost_blocks", "lost_first_offset", 4));
    columns.into_iter().map(|column| column.since(4)).collect()
}

fn effective() -> Columns {
    const REGISTERED: &str = "1: io_uring had the file, the buffers registered";
    let columns = [
        Column::flag(
            "fixed_file",
            |s: &Sample| Some(s.effective.fixed_file),
            |s, on| s.effective.fixed_file = on,
        )
        .doc(REGISTERED),
        Column::flag(
            "fixed_buffers",
            |s: &Sample| Some(s.effective.fixed_buffers),
            |s, on| s.effective.fixed_buffers = on,
        )
        .doc(REGISTERED),
        Column::text(
            "ring_flags",
            |s: &Sample| Some(s.effective_ring().into()),
            |s, text| s.put_effective_ring(text),
        )
        .doc("how the ring of io_uring was set up: `sqpoll`, `single_issuer`, `defer_taskrun`, `coop_taskrun`, `iopoll`, `spin`, with commas between"),
        Column::flag(
            "polled",
            |s: &Sample| Some(s.effective.polled),
            |s, on| s.effective.polled = on,
        )
        .doc("1: submissions or completions were polled for"),
        text!("peer_command", Sample, effective.command?)
            .doc("version and command line of another tool's trial"),
        text!("note", Sample, effective.note)
            .doc("why something asked for was not in force, or not counted"),
    ];
    let stored = columns.map(|column| column.since(5).hidden());
    let mut columns = vec![
        Column::text(
            "hardware_missing",
            |s: &Sample| {
                let missing: Option<NoHardware> = s.counters.hardware.missing();
                missing.map(|reason| reason.to_string().into())
            },
            |s, text| {
                let reason = text.parse().map(Hardware::Missing);
                reason.map(|missing| s.counters.hardware = missing).is_ok()
            },
        )
        .null(Null::Free)
        .since(2)
        .one_of(NoHardware::NAMES)
        .doc("why no events were counted; NULL when they were"),
        Column::text(
            "effective",
            |s: &Sample| Some(s.effective_text().into()),
            |_, _| true,
        )
        .derived(),
    ];
    columns.extend(stored);
    columns
}

fn verdict() -> Columns {
    vec![
        word!("served_by", Sample, verdict.served_by, ServedBy).doc("rules in METHODS.md"),
        Column::real(
            "device_fraction",
            |s: &Sample| s.verdict.device_fraction,
            |s, n| s.verdict.device_fraction = Some(n),
        )
        .within(0.0, 1.0)
        .null(Null::Free)
        .doc("share of the bytes that the device carried, 0 to 1, where it is known"),
        text!("served_by_reason", Sample, verdict.reason).doc("why this verdict"),
    ]
}
