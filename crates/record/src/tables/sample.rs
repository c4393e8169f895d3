//! The columns of table `sample`, in the order of exports.

use std::sync::LazyLock;

use iolab_workload::region_state::FaultKind;
use iolab_workload::response::Response;

use crate::column::{Access, Column, Null, Table};
use crate::{Cpus, Ended, Hardware, NoHardware, RequestSizes, Sample, ServedBy};
use iolab_workload::table;

type Columns = Vec<Column<Sample>>;

mod evidence;

use evidence::{
    bottom, cache_after, cache_before, device, extents, hardware, machine, operations, process,
    stages,
};

/// Table `sample`.
pub static SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| Table {
    name: "sample",
    doc: "one row per trial",
    columns: [
        place(),
        timing(),
        operations(),
        unsplit(),
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
        rank_activity(),
    ]
    .into_iter()
    .flatten()
    .collect(),
    constraints: &["FOREIGN KEY (cell_id) REFERENCES cell (id)"],
});

/// Columns of [`SAMPLE`] that parts of a trial lack.
const OF_TRIAL: [&str; 4] = [
    "wall_ns", "clock_drift_ppm", "unsplit_requests", "unsplit_bytes",
];

/// Requests of an imported trial without a direction.
fn unsplit() -> Columns {
    const UNSPLIT: &str = "of an imported trial: requests, and their bytes, of which the report does not say whether they read or wrote; included in throughput and IOPS; NULL without any";
    table! {
        Column::of("unsplit_requests", Access::number(|s: &Sample| Some(s.unsplit.requests).filter(|n| *n > 0), |s, n| s.unsplit.requests = n));
        Column::of("unsplit_bytes", Access::number(|s: &Sample| Some(s.unsplit.bytes).filter(|n| *n > 0), |s, n| s.unsplit.bytes = n));
    }
    .map(|column| column.null(Null::Free).doc(UNSPLIT))
    .into()
}

/// The trial that a row about a part belongs to.
fn whole_trial() -> Column<Sample> {
    whole!("sample_id", Sample, id as i64).doc("the sample of the whole trial")
}

/// When a part of a trial started.
fn own_start() -> Column<Sample> {
    number!("start_ns", Sample, start_ns)
        .doc("its first worker's start, from the start of the trial")
}

/// Table `group_sample`: the sample of one group.
pub static GROUP_SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| {
    let key = Vec::from(table! {
        whole_trial();
        whole!("group_id", Sample, group as u32).between(1, u32::MAX.into())
            .doc("the group, as in table `cell_group`");
        own_start();
        ended();
    });
    Table {
        name: "group_sample",
        doc: "one row per trial and group, if a cell has groups",
        columns: [
            key,
            timing(),
            operations(),
            rate_report(),
            process(),
            hardware(),
            verified(),
            effective(),
        ]
        .into_iter()
        .flatten()
        .filter(|column| !OF_TRIAL.contains(&column.name))
        .collect(),
        constraints: &[
            "PRIMARY KEY (sample_id, group_id)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

/// Table `stages`: the result of tracing of a trial, or of one of its groups.
pub static STAGES: LazyLock<Table<Sample>> = LazyLock::new(|| {
    let key = table! {
        whole_trial().hidden();
        whole!("group_id", Sample, group as u32).hidden()
            .doc("the group, as in table `cell_group`; 0 for the whole trial");
    };
    Table {
        name: "stages",
        doc: "one row per traced trial (`trace=true`), and per group of it if a cell has groups",
        columns: key.into_iter().chain(stages()).collect(),
        constraints: &[
            "PRIMARY KEY (sample_id, group_id)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

/// Table `client_sample`: the sample of one client.
pub static CLIENT_SAMPLE: LazyLock<Table<Sample>> = LazyLock::new(|| {
    let key = Vec::from(table! {
        whole_trial();
        whole!("rank_id", Sample, client as u32)
            .doc("the client, by the first of its ranks that took part");
        own_start();
        number!("elapsed_ns", Sample, elapsed_ns).doc("its first worker's start to its last worker's end");
        number!("syncs", Sample, operations.sync.requests).doc("`fsync` and `fdatasync` calls");
        number!("errors", Sample, errors).doc("requests that failed");
    });
    Table {
        name: "client_sample",
        doc: "one row per trial and client, where several ranks measured",
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
        .collect(),
        constraints: &[
            "PRIMARY KEY (sample_id, rank_id)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

fn place() -> Columns {
    Vec::from(table! {
        Column::of("id", Access::number(|_: &Sample| None, |s, n| s.id = n as i64)).null(Null::Free).key().hidden().doc("in the order of time");
        Column::of("cell_id", Access::number(|s: &Sample| Some(s.cell as u64), |s, n| s.cell = n as i64)).hidden().doc("the cell");
        whole!("block", Sample, block as u32)
            .doc("the block; block 0 is the warm-up. There is one `ok` sample at most per cell and block");
        whole!("position", Sample, position as u32)
            .doc("the place within the block");
        flag!("warmup", Sample, warmup)
            .doc("1: to be left out of summaries: the cell's first trial; in a run with finer sizes also every trial before these were added, once the run is done");
        flag!("ok", Sample, ok).doc("0: the trial failed");
        text!("started_utc", Sample, started_utc).doc("when it began");
        ended();
    })
}

fn ended() -> Column<Sample> {
    word!("ended", Sample, ended, Ended)
        .doc("`done` (bytes, requests or the pass), `time`, `failed`")
}

/// A computed column of exports.
fn of_trial(response: Response, access: Access<Sample>) -> Column<Sample> {
    let column = Column::of(response.column(), access).derived();
    column.doc(response.meaning())
}

fn timing() -> Columns {
    Vec::from(table! {
        of_trial(Response::Throughput, Access::real(|s: &Sample| Some(s.throughput_mb_s()), |_, _| ()));
        of_trial(Response::Iops, Access::real(|s: &Sample| Some(s.iops()), |_, _| ()));
        number!("elapsed_ns", Sample, elapsed_ns).doc("first worker's start to last worker's end");
        number!("all_active_ns", Sample, all_active_ns).doc("span in which every worker was active");
        real!("in_flight", Sample, in_flight?)
            .doc("requests in flight on average while every worker was active: the times of a worker's requests over its span, added up; NULL where times were not recorded")
            .within(0.0, f64::MAX);
        number!("end_sync_ns", Sample, end_sync_ns).doc("the part of `elapsed_ns` in the final `fsync` of policy `end`");
        number!("paused_ns", Sample, paused_ns).doc("time in pauses (`thinktime`), summed over all threads").null(Null::Free);
        number!("wall_ns", Sample, wall_ns).doc("idle time, preparation, trial and bookkeeping: what it took from the budget");
        real!("clock_drift_ppm", Sample, clock_drift_ppm?).doc("time-stamp counter against CLOCK_MONOTONIC_RAW over the trial");
        number!("seed", Sample, seed).doc("seed of the trial").any();
        number!("syncs", Sample, operations.sync.requests).doc("`fsync` and `fdatasync` calls");
        number!("errors", Sample, errors).doc("requests that failed");
        text!("failure", Sample, failure?).doc("the first of them in words");
    })
}

fn rank_activity() -> Columns {
    const SKEW: &str = "first worker's start to last worker's start over all ranks, and how far that can be from the truth";
    const ALL: &str = "bytes that the ranks moved in `all_active_ns`, at least and at most";
    let columns = [
        number!(
            "elapsed_error_ns",
            Sample,
            together?.elapsed_error_ns)
            .doc("how far `elapsed_ns` can be from the truth by the bound of the ranks' clocks; NULL where one process measured, like the next"),
        number!("start_skew_ns", Sample, together?.start_skew_ns).doc(SKEW),
        number!(
            "start_skew_error_ns",
            Sample,
            together?.start_skew_error_ns)
            .doc(SKEW),
        number!(
            "all_active_least_bytes",
            Sample,
            together?.all_active_least_bytes)
            .doc(ALL),
        number!(
            "all_active_most_bytes",
            Sample,
            together?.all_active_most_bytes)
            .doc(ALL),
    ];
    columns.map(|column| column.hidden()).into()
}

fn sizes() -> Columns {
    vec![
        Column::of(
            "request_sizes",
            Access::Text(
                |s: &Sample| {
                    let sizes: &RequestSizes = &s.request_sizes;
                    let drawn = !sizes.counts().is_empty();
                    drawn.then(|| sizes.to_string().into())
                },
                |s, text| text.parse().map(|sizes| s.request_sizes = sizes).is_ok(),
            ),
        )
        .null(Null::Free)
        .doc("requests by direction and size, if `bs_mix` is set: `read 4096 601,read 65536 299`; NULL otherwise"),
    ]
}

fn cpus() -> Columns {
    Vec::from(table! {
        number!("run_delay_ns", Sample,
            run_delay_ns?).doc("time in which workers were ready to run and waited for a CPU (schedstat), summed over all threads; NULL where the kernel does not count it, and for several ranks");
        Column::of(
            "cpus_used",
            Access::Text(
                |s: &Sample| {
                    let cpus: &Cpus = &s.cpus_used;
                    (!cpus.is_empty()).then(|| cpus.to_string().into())
                },
                |s, text| text.parse().map(|cpus| s.cpus_used = cpus).is_ok(),
            ),
        )
        .null(Null::Free)
        .doc("CPUs that threads ran on (`0-3,8`), sampled at start and end of each thread and at every interval of its series; NULL if not sampled");
    })
}

fn rate_report() -> Columns {
    const RATES: &str = "requests per second asked for, and submitted until the time was up or the last one was submitted; NULL in the closed loop, like the next two";
    const BACKLOG: &str = "requests that were due and not submitted because every slot was taken: the most, and when the time was up or the last one was submitted; see METHODS.md";
    Vec::from(table! {
        real!("rate_wanted", Sample, rate_report?.rate_wanted).doc(RATES).within(0.0, f64::MAX);
        real!("rate_achieved", Sample, rate_report?.rate_achieved).doc(RATES).within(0.0, f64::MAX);
        number!("backlog_max", Sample, rate_report?.backlog_max).doc(BACKLOG);
        number!("backlog_end", Sample, rate_report?.backlog_end).doc(BACKLOG);
    })
}

fn verified() -> Columns {
    const READ: &str = "blocks that were read back after the timed span, each once, and their bytes; NULL without `verify`, like all of the next";
    const WRONG: &str = "blocks that were not as they were written, by kind; see METHODS.md";
    const FIRST: &str = "the first byte of the target that is wrong with any of them; NULL without";
    let mut columns = vec![
        number!("verified_blocks", Sample, verified?.blocks).doc(READ),
        number!("verified_bytes", Sample, verified?.bytes).doc(READ),
        number!("verified_cached_bytes", Sample, verified?.cached_bytes?)
            .doc("bytes of the region that the page cache still held when that began"),
    ];
    for (place, kind) in FaultKind::ALL.iter().enumerate() {
        let faults = move |s: &Sample| s.verified.map(|verified| verified.faults[place]);
        let found = move |s: &Sample| faults(s).filter(|faults| faults.blocks > 0);
        let blocks = Access::number(
            move |s| faults(s).map(|faults| faults.blocks),
            move |s, n| s.verified.get_or_insert_default().faults[place].blocks = n,
        );
        let first = Access::number(
            move |s| found(s).map(|faults| faults.first_offset),
            move |s, n| s.verified.get_or_insert_default().faults[place].first_offset = n,
        );
        let columns_of_kind = [
            Column::of(format!("{kind}_blocks").leak(), blocks).doc(WRONG),
            Column::of(format!("{kind}_first_offset").leak(), first).doc(FIRST),
        ];
        columns.extend(columns_of_kind.map(|column| column.null(Null::Account)));
    }
    columns
}

fn effective() -> Columns {
    const REGISTERED: &str = "1: io_uring had the file, the buffers registered";
    let columns = [
        flag!("fixed_file", Sample, effective.fixed_file).doc(REGISTERED),
        flag!("fixed_buffers", Sample, effective.fixed_buffers).doc(REGISTERED),
        Column::of(
            "ring_flags",
            Access::Text(
                |s: &Sample| {
                    let flags = s.effective.ring.iter();
                    let names: Vec<&str> = flags.map(|flag| flag.name()).collect();
                    Some(names.join(",").into())
                },
                |s, text| {
                    let flags = text.split(',').filter(|name| !name.is_empty());
                    let flags = flags.map(str::parse).collect::<Result<_, _>>();
                    flags.map(|flags| s.effective.ring = flags).is_ok()
                },
            ),
        )
        .doc("how the ring of io_uring was set up: `sqpoll`, `single_issuer`, `defer_taskrun`, `coop_taskrun`, `iopoll`, `spin`, with commas between"),
        flag!("polled", Sample, effective.polled).doc("1: submissions or completions were polled for"),
        text!("peer_command", Sample, effective.command?)
            .doc("version and command line of another tool's trial"),
        text!("note", Sample, effective.note)
            .doc("why something asked for was not in force, or not counted"),
    ];
    let stored = columns.map(|column| column.hidden());
    let mut columns = Vec::from(table! {
        Column::of(
            "hardware_missing",
            Access::Text(
                |s: &Sample| {
                    let missing: Option<NoHardware> = s.counters.hardware.missing();
                    missing.map(|reason| reason.to_string().into())
                },
                |s, text| {
                    let reason = text.parse().map(Hardware::Missing);
                    reason.map(|missing| s.counters.hardware = missing).is_ok()
                },
            ),
        )
        .null(Null::Free)
        .one_of(NoHardware::NAMES)
        .doc("why no events were counted; NULL when they were");
        Column::of("effective", Access::Text(|s: &Sample| Some(s.effective_text().into()), |_, _| true)).derived()
            .doc("what was in force where that can differ from what was asked for, then the command line of another tool and the note");
    });
    columns.extend(stored);
    columns
}

fn verdict() -> Columns {
    vec![
        word!("served_by", Sample, verdict.served_by, ServedBy).doc("rules in METHODS.md"),
        real!("device_fraction", Sample, verdict.device_fraction?)
            .doc("share of the bytes that the device carried, 0 to 1, where it is known")
            .within(0.0, 1.0),
        text!("served_by_reason", Sample, verdict.reason).doc("why this verdict"),
    ]
}
