//! The columns of table `sample`, in the order of exports.

use std::sync::LazyLock;

use iolab_workload::verify::Faults;

use crate::column::{Column, Null, Table};
use crate::columns;
use crate::{Cpus, Ended, Hardware, NoHardware, RateReport, RequestSizes, Sample, ServedBy};

type Columns = Vec<Column<Sample>>;

/// A number that every sample has. Arguments: name, field, meaning.
macro_rules! plain {
    ($name:expr, $($field:ident).+, $doc:expr) => {
        Column::number(
            $name,
            |s: &Sample| Some(s.$($field).+),
            |s, n| s.$($field).+ = n,
        )
        .doc($doc)
    };
}

/// A number that may be unknown. Arguments: name, field, meaning.
macro_rules! known {
    ($name:literal, $($field:ident).+, $doc:expr) => {
        Column::number($name, |s: &Sample| s.$($field).+, |s, n| s.$($field).+ = Some(n))
            .null(Null::Free)
            .doc($doc)
    };
}

/// A number of a group of columns that are NULL together. Arguments: name, group, field, meaning.
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

/// A quantile of a latency that earlier files lack; not exported, where the histograms are better.
macro_rules! tail {
    ($name:expr, $($place:ident).+ => $field:ident, $doc:expr) => {
        Column::number(
            $name,
            |s: &Sample| s.$($place).+.and_then(|l: LatencySummary| l.$field),
            |s, n| s.$($place).+.get_or_insert_default().$field = Some(n),
        )
        .null(Null::Free)
        .hidden()
        .since(6)
        .doc($doc)
    };
}

/// The columns of a latency.
macro_rules! latency {
    ($prefix:expr, $($place:ident).+, $doc:expr) => {
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
            tail!(concat!($prefix, "_p9999_ns"), $($place).+ => p9999_ns, "quantiles 0.9999 and 0.99999 of the same times"),
            tail!(concat!($prefix, "_p99999_ns"), $($place).+ => p99999_ns, "quantiles 0.9999 and 0.99999 of the same times"),
        ]
    };
}

mod evidence;
mod operations;
mod stages;

use evidence::{bottom, cache_after, cache_before, device, extents, hardware, machine, process};
use operations::operations;
pub use stages::stages;

/// Table `sample`.
pub static SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| Table {
    name: "sample",
    doc: "one row per trial",
    exported: true,
    columns: [
        place(),
        timing(),
        operations(),
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
        stages(),
        effective(),
        verdict(),
        rank_activity(),
    ]
    .into_iter()
    .flatten()
    .collect(),
    constraints: &["FOREIGN KEY (cell_id) REFERENCES cell (id)"],
});

/// Columns of [`SAMPLE`] that parts of a trial lack.
const OF_TRIAL: [&str; 2] = ["wall_ns", "clock_drift_ppm"];

/// The trial that a row about a part belongs to.
fn whole_trial() -> Column<Sample> {
    Column::number(
        "sample_id",
        |s: &Sample| Some(s.id as u64),
        |s, n| s.id = n as i64,
    )
    .any()
    .doc("the sample of the whole trial")
}

/// When a part of a trial started.
fn own_start() -> Column<Sample> {
    plain!(
        "start_ns",
        start_ns,
        "its first worker's start, from that of the trial"
    )
}

/// Table `group_sample`: the sample of one group.
pub static GROUP_SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| {
    let key = columns! {
        whole_trial();
        Column::number("group_id", |s: &Sample| Some(s.group.into()), |s, n| s.group = n as u32).between(1, u32::MAX.into())
            .doc("the group, as in table `cell_group`");
        own_start();
        ended();
    };
    Table {
        name: "group_sample",
        doc: "one row per trial and group, where a cell has groups",
        exported: false,
        columns: [
            key,
            timing(),
            operations(),
            rate_report(),
            process(),
            hardware(),
            verified(),
            stages(),
            effective(),
        ]
        .into_iter()
        .flatten()
        .filter(|column| !OF_TRIAL.contains(&column.name))
        .map(|column| column.since(6))
        .collect(),
        constraints: &[
            "PRIMARY KEY (sample_id, group_id)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

/// Table `client_sample`: the sample of one client.
pub static CLIENT_SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| {
    let key = columns! {
        whole_trial();
        Column::number("rank_id", |s: &Sample| Some(s.client.into()), |s, n| s.client = n as u32).between(0, u32::MAX.into())
            .doc("the client, by the first of its ranks that took part");
        own_start();
        plain!("elapsed_ns", elapsed_ns, "its first worker's start to its last worker's end");
        plain!("syncs", operations.sync.requests, "`fsync` and `fdatasync` calls");
        plain!("errors", errors, "requests that failed");
    };
    Table {
        name: "client_sample",
        doc: "one row per trial and client, where several ranks measured",
        exported: false,
        columns: [
            key,
            operations(),
            process(),
            device(),
            bottom(),
            machine(),
            cache_before(),
            cache_after(),
            extents(),
            verdict(),
        ]
        .into_iter()
        .flatten()
        .map(|column| column.since(6))
        .collect(),
        constraints: &[
            "PRIMARY KEY (sample_id, rank_id)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

fn place() -> Columns {
    columns! {
        Column::number("id", |s: &Sample| Some(s.id as u64), |s, n| s.id = n as i64).key().hidden().doc("in the order of time");
        Column::number("cell_id", |s: &Sample| Some(s.cell as u64), |s, n| s.cell = n as i64).hidden().doc("the cell");
        Column::number("block", |s: &Sample| Some(s.block.into()), |s, n| s.block = n as u32).between(0, u32::MAX.into())
            .doc("the block; block 0 is the warm-up");
        Column::number("visit", |s: &Sample| Some(s.visit.into()), |s, n| s.visit = n as u32).between(0, u32::MAX.into()).hidden()
            .doc("which visit of the block to the cell, from 0. There is one `ok` sample at most per cell, block and visit");
        Column::number("position", |s: &Sample| Some(s.position.into()), |s, n| s.position = n as u32).between(0, u32::MAX.into())
            .doc("the place within the block");
        Column::flag("warmup", |s: &Sample| Some(s.warmup), |s, on| s.warmup = on)
            .doc("1: to be left out of summaries: the cell's first trial; in a run with finer sizes also every trial before these were added, once the run is done");
        Column::flag("ok", |s: &Sample| Some(s.ok), |s, on| s.ok = on).doc("0: the trial failed");
        text!("started_utc", Sample, started_utc).doc("when it began");
        ended();
    }
}

fn ended() -> Column<Sample> {
    word!("ended", Sample, ended, Ended)
        .doc("`done` (bytes, requests or the pass), `time`, `failed`")
}

fn timing() -> Columns {
    columns! {
        Column::real("throughput_mb_s", |s: &Sample| Some(s.throughput_mb_s()), |_, _| ()).derived()
            .doc("bytes transferred over `elapsed_ns`, MB/s (10^6 bytes)");
        Column::real("iops", |s: &Sample| Some(s.iops()), |_, _| ()).derived().doc("requests completed over `elapsed_ns`, per second");
        plain!("elapsed_ns", elapsed_ns, "first worker's start to last worker's end");
        plain!("all_active_ns", all_active_ns, "span in which every worker was active");
        Column::real("in_flight", |s: &Sample| s.in_flight, |s, n| s.in_flight = Some(n)).within(0.0, f64::MAX).null(Null::Free).since(6)
            .doc("requests in flight on average while every worker was active: the times of a worker's requests over its span, added up; NULL where times were not recorded");
        plain!("end_sync_ns", end_sync_ns, "the part of `elapsed_ns` in the final `fsync` of policy `end`");
        plain!("paused_ns", paused_ns, "time in pauses (`thinktime`, `bursts`), summed over all threads").null(Null::Free).since(6);
        plain!("wall_ns", wall_ns, "idle time, preparation, trial and bookkeeping: what it took from the budget");
        Column::real(
            "clock_drift_ppm",
            |s: &Sample| Some(s.clock_drift_ppm).filter(|ppm| !ppm.is_nan()),
            |s, n| s.clock_drift_ppm = n,
        )
        .null(Null::Account)
        .doc("time-stamp counter against CLOCK_MONOTONIC_RAW over the trial");
        plain!("seed", seed, "seed of the trial").any();
        plain!("syncs", operations.sync.requests, "`fsync` and `fdatasync` calls");
        plain!("errors", errors, "requests that failed");
        text!("failure", Sample, failure?).doc("the first of them in words");
    }
}

fn rank_activity() -> Columns {
    const SKEW: &str = "first worker's start to last worker's start over all ranks, and how far that can be from the truth";
    const ALL: &str = "bytes that the ranks moved in `all_active_ns`, at least and at most";
    let columns = [
        of!(
            "elapsed_error_ns",
            together => elapsed_error_ns,
            "how far `elapsed_ns` can be from the truth by the bound of the ranks' clocks; NULL where one process measured, like the next"
        ),
        of!("start_skew_ns", together => start_skew_ns, SKEW),
        of!("start_skew_error_ns", together => start_skew_error_ns, SKEW),
        of!("all_active_least_bytes", together => all_active_least_bytes, ALL),
        of!("all_active_most_bytes", together => all_active_most_bytes, ALL),
    ];
    columns.map(|column| column.since(6).hidden()).into()
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
        .since(6)
        .doc("requests by direction and size, if `bs_mix` is set: `read 4096 601,read 65536 299`; NULL otherwise"),
    ]
}

fn cpus() -> Columns {
    columns! {
        known!("waited_requests",
            waited, "requests that would have waited (RWF_NOWAIT) and were repeated without the flag; NULL without `nowait`").since(6);
        known!("run_delay_ns",
            run_delay_ns, "time in which workers were ready to run and waited for a CPU (schedstat), summed over all threads; NULL where the kernel does not count it, and for several ranks").since(6);
        Column::text(
            "cpus_used",
            |s: &Sample| {
                let cpus: &Cpus = &s.cpus_used;
                (!cpus.is_empty()).then(|| cpus.to_string().into())
            },
            |s, text| text.parse().map(|cpus| s.cpus_used = cpus).is_ok(),
        )
        .null(Null::Free)
        .since(6)
        .doc("CPUs that threads ran on (`0-3,8`), sampled at start and end of each thread and at every interval of its series; NULL if not sampled");
    }
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
        .doc(RATES),
        Column::real(
            "rate_achieved",
            |s: &Sample| s.rate_report.map(|p| p.rate_achieved),
            |s, n| s.rate_report.get_or_insert_default().rate_achieved = n,
        )
        .within(0.0, f64::MAX)
        .null(Null::Account)
        .doc(RATES),
        of!("backlog_max", rate_report => backlog_max, BACKLOG),
        of!("backlog_end", rate_report => backlog_end, BACKLOG),
    ]
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
    columns
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
    let stored = columns.map(|column| column.hidden());
    let mut columns = columns! {
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
        .one_of(NoHardware::NAMES)
        .doc("why no events were counted; NULL when they were");
        Column::text("effective", |s: &Sample| Some(s.effective_text().into()), |_, _| true).derived()
            .doc("what was in force where that can differ from what was asked for, then the command line of another tool and the note");
    };
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
