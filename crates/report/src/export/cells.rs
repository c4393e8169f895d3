//! Rows of cells: one per cell of each run, or per group of a cell and for all of them together, with the clients
//! of runs across hosts.

use serde_json::{Map, Value};

use crate::block::Table;
use crate::data_column::{self, DataColumn, DataRows, Place, RunRows, quantiles, row_schema};
use crate::layout::{Column, level_columns, none};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{
    Analysis, CellAnalysis, CellRanks, CellRate, ClientAnalysis, Concurrency, Efficiency, Response,
    StageNumbers,
};
use iolab_analysis::disturbance::CellDisturbance;
use iolab_analysis::runs::RunName;
use iolab_figure::labels;
use iolab_record::EndedBy;
use iolab_stats::{Summary, median};
use iolab_workload::escape_control::escape_control;
use iolab_workload::stages::{CarriedBy, Journal, Stage, SyncCounts};
use iolab_workload::table;
use iolab_workload::units::{format_ns, format_percent, significant};

/// A run with the name of its file.
type NamedRun = (RunName, AnalysedRun);

/// Data of one row.
pub(crate) struct ExportedCell<'a> {
    analysis: &'a Analysis,
    cell: &'a CellAnalysis,
}

type Columns<'a> = Vec<DataColumn<'a, ExportedCell<'a>>>;

/// The rows of all cells of some runs.
pub(crate) fn rows(runs: &[NamedRun]) -> DataRows<'_, ExportedCell<'_>> {
    DataRows::new(columns(), runs.iter().map(rows_of_run).collect())
}

fn rows_of_run((name, run): &NamedRun) -> RunRows<ExportedCell<'_>> {
    let (analysis, of) = (run.analysis(), (name, run.record(), run.answer()));
    let (mut places, mut rows) = (Vec::new(), Vec::new());
    for whole in &analysis.cells {
        let groups = whole.groups.iter().map(|group| &group.cell);
        let own = std::iter::once((0, whole)).filter(|_| whole.groups.is_empty());
        for (group, cell) in own.chain((1..).zip(groups)) {
            rows.push((places.len(), ExportedCell { analysis, cell }));
            places.push(Place::new(of, Some(&whole.cell), group).fields());
        }
    }
    RunRows { places, rows }
}

/// JSON schema of a row.
pub(crate) fn schema() -> Value {
    data_column::schema(&columns())
}

fn columns<'a>() -> Columns<'a> {
    let topics = [trials, ranks, disturbance, limits, load, stages, verdict];
    topics.iter().flat_map(|topic| topic()).collect()
}

/// Columns on the processes of a run across hosts; empty for a single process.
fn ranks<'a>() -> Columns<'a> {
    fn of<'r>(row: &'r ExportedCell<'_>) -> Option<&'r CellRanks> {
        row.cell.ranks.as_ref()
    }
    let mut columns = Vec::from(table! {
        DataColumn::whole("ranks", "processes (ranks) that took part", |row: &ExportedCell<'_>| of(row).map(|r| r.ranks));
        DataColumn::whole("hosts", "hosts that they ran on", |row: &ExportedCell<'_>| of(row).map(|r| r.hosts));
        DataColumn::number("clock_bound", "greatest error that the clocks of the hosts allow in the throughput from the first start to the last end, a share of it",
            |row: &ExportedCell<'_>| of(row).map(|r| r.clock_bound));
    });
    columns.extend(PARTS.map(|(part, doc, value)| {
        let doc = format!("{doc} of the throughput while all ranks were active, MB/s");
        DataColumn::number(
            &format!("all_active_mb_s_{part}"),
            &doc,
            move |row: &ExportedCell<'_>| of(row)?.all_active.as_ref().and_then(value),
        )
    }));
    columns.extend([
        DataColumn::number(
            "all_active_clock_bound",
            "greatest error that the clocks allow in the throughput while all ranks were active, a share of it",
            |row: &ExportedCell<'_>| of(row).map(|r| r.all_active_bound),
        ),
        DataColumn::whole("start_skew_ns_max", "longest time from the first start of a rank to the last one, ns", |row: &ExportedCell<'_>| {
            of(row).map(|r| r.start_skew_ns)
        }),
        DataColumn::objects(
            "clients",
            "the ranks that share a page cache: all ranks of a host, or one rank with a target of its own",
            schema_of_clients(),
            |row: &ExportedCell<'_>| client_objects(row.cell),
        ),
    ]);
    let of_several = columns
        .into_iter()
        .map(|column| column.only_of(|row| row.analysis.spans_ranks()));
    of_several.collect()
}

/// Columns on disturbances around the trials.
fn disturbance<'a>() -> Columns<'a> {
    let mut columns = Vec::from(table! {
        DataColumn::number("other_traffic", "bytes that the device carried for others, a share of all that it carried",
            |row: &ExportedCell<'_>| row.cell.disturbance.others);
        DataColumn::number("read_ahead", "bytes that were fetched from storage over the bytes that were read through the page cache",
            |row: &ExportedCell<'_>| row.cell.disturbance.read_ahead);
        DataColumn::number("device_ios_per_request_median", "requests that reached the device over the requests that were issued; median over the trials",
            |row: &ExportedCell<'_>| row.cell.disturbance.ios_per_request);
        DataColumn::number("device_mean_ns_median", "mean time of a request at the device by the device's own counters, ns, where it carried nothing for others; median over the trials",
            |row: &ExportedCell<'_>| row.cell.disturbance.device_mean_ns);
    });
    columns.extend(STALLS.map(|(name, doc, value)| {
        DataColumn::number(name, doc, move |row: &ExportedCell<'_>| {
            value(&row.cell.disturbance)
        })
    }));
    columns.extend([
        DataColumn::number(
            "cpu_quota_wait",
            "time in which the CPU quota of the control group was used up, a share of the time of all CPUs",
            |row: &ExportedCell<'_>| row.cell.disturbance.quota_wait,
        ),
        DataColumn::number("preemptions_per_s", "times per second that a worker was preempted", |row: &ExportedCell<'_>| {
            row.cell.disturbance.preemptions
        }),
        DataColumn::whole("suspended_ns", "time that the machine slept, or iolab was stopped, during the trials, ns", |row: &ExportedCell<'_>| {
            Some(row.cell.disturbance.suspended_ns)
        })
        .known(),
        DataColumn::number(
            "owed_sync_ns_median",
            "time of the `fdatasync` that followed writes without a sync, ns; median over the trials",
            |row: &ExportedCell<'_>| row.cell.disturbance.owed_sync_ns,
        ),
        DataColumn::number(
            "empty_median",
            "part of the region in holes and unwritten extents, a share; median over the trials",
            |row: &ExportedCell<'_>| row.cell.disturbance.empty,
        ),
    ]);
    columns
}

/// Columns on requests in flight, and on the ceiling of the device.
fn limits<'a>() -> Columns<'a> {
    fn at_once(row: &ExportedCell<'_>) -> Option<Concurrency> {
        row.cell.concurrency
    }
    fn efficiency(row: &ExportedCell<'_>) -> Option<Efficiency> {
        row.cell.efficiency
    }
    Vec::from(table! {
        DataColumn::whole("in_flight_asked", "requests in flight that were asked for: threads times depth",
            |row: &ExportedCell<'_>| at_once(row).map(|c| c.asked));
        DataColumn::number("in_flight_median", "requests in flight, seen from the threads; median over the trials",
            |row: &ExportedCell<'_>| at_once(row)?.in_flight);
        DataColumn::number("device_in_flight_median", "requests in flight at the device, in requests of this cell's size; median over the trials",
            |row: &ExportedCell<'_>| at_once(row)?.at_device);
        DataColumn::number("iops_over_one_in_flight", "requests per second over the requests per second of the cell with one request in flight, a ratio",
            |row: &ExportedCell<'_>| at_once(row)?.served);
        DataColumn::number("ceiling", "what the device gives at most, in `ceiling_unit`",
            |row: &ExportedCell<'_>| efficiency(row).map(|e| e.ceiling));
        DataColumn::text("ceiling_unit", "unit of `ceiling`",
            |row: &ExportedCell<'_>| { efficiency(row).map(|e| if e.is_iops { "IOPS" } else { "MB/s" }) }).one_of(&["IOPS", "MB/s"]);
        DataColumn::text("ceiling_source", "where the ceiling is from: stated, linked or measured",
            |row: &ExportedCell<'_>| efficiency(row).map(|e| e.source.to_string()));
        DataColumn::number("efficiency", "median over the ceiling, a share", |row: &ExportedCell<'_>| efficiency(row).map(|e| e.share));
        DataColumn::text("efficiency_cause", "why `efficiency` is above 1, where the evidence says so",
            |row: &ExportedCell<'_>| efficiency(row)?.cause.map(|cause| cause.to_string()));
    })
}

/// Columns on how a rate was kept, and on latencies other than the requests' own.
fn load<'a>() -> Columns<'a> {
    fn kept<'r>(row: &'r ExportedCell<'_>) -> Option<&'r CellRate> {
        row.cell.rate_report.as_ref()
    }
    let mut columns = Vec::from(table! {
        DataColumn::number("latency_max_ns", "greatest latency of any request of any trial, ns",
            |row: &ExportedCell<'_>| row.cell.latency.map(|l| l.max_ns));
        DataColumn::number("rate_wanted", "requests per second that were asked for", |row: &ExportedCell<'_>| kept(row).map(|p| p.rate_wanted));
        DataColumn::number("rate_achieved_median", "requests per second that were submitted; median over the trials",
            |row: &ExportedCell<'_>| kept(row).map(|p| p.rate_achieved));
        DataColumn::whole("rate_not_held_trials", "trials in which the rate was not held",
            |row: &ExportedCell<'_>| kept(row).map(|p| p.not_held));
        DataColumn::whole("backlog_max", "most requests that were due and not submitted, of any trial",
            |row: &ExportedCell<'_>| kept(row).map(|p| p.backlog_max));
        DataColumn::whole("backlog_end_max", "most of these at the end of a trial, of any trial",
            |row: &ExportedCell<'_>| kept(row).map(|p| p.backlog_end));
    });
    columns.extend(quantiles(
        "service",
        "service time (completion minus submission) where there is a rate",
        |row: &ExportedCell<'_>| kept(row)?.service,
    ));
    columns.extend(quantiles(
        "lateness",
        "lateness (submission minus scheduled start) where there is a rate",
        |row: &ExportedCell<'_>| kept(row)?.lateness,
    ));
    columns.extend(quantiles(
        "sync",
        "time of `fsync` and `fdatasync` calls",
        |row: &ExportedCell<'_>| row.cell.sync,
    ));
    columns
}

/// Columns on how far the numbers can be trusted.
fn verdict<'a>() -> Columns<'a> {
    Vec::from(table! {
        DataColumn::text("served_by", "where the bytes came from: `device`, `page-cache`, `mixed`, `hole`, `not-storage`, `network`, `model`, `unknown`; several with their numbers of trials; `null` for one of several groups, whose origin is known of `all` only",
            |row: &ExportedCell<'_>| row.cell.served_alone().map(labels::served));
        DataColumn::number("device_fraction", "bytes that the device carried, a share; median over the trials",
            |row: &ExportedCell<'_>| row.cell.served_alone()?.device_fraction);
        DataColumn::text("response", "quantity that the experiment asks about, or `--metric` names",
            |row: &ExportedCell<'_>| Some(row.analysis.response_name())).known();
        DataColumn::number("precision", "half of the interval of the response's median, a share of the median",
            |row: &ExportedCell<'_>| row.cell.precision);
        DataColumn::number("precision_goal", "precision at which repetition ends, a share",
            |row: &ExportedCell<'_>| Some(row.analysis.precision_goal)).known();
        DataColumn::text("ended_by", "what ended the repetition of the cell",
            |row: &ExportedCell<'_>| row.cell.cell.ended_by.map(EndedBy::name)).one_of(EndedBy::NAMES);
        DataColumn::text(
            "flags",
            "what to be careful about, separated by `, `; METHODS.md has the rules",
            |row: &ExportedCell<'_>| {
                let flags: Vec<String> = row.cell.flags.iter().map(ToString::to_string).collect();
                Some(flags.join(", "))
            },
        )
        .known();
    })
}

/// A count of what traced syncs waited for: the name of its column, its description, its value.
type SyncCount = (&'static str, &'static str, fn(SyncCounts) -> u64);

const SYNCS: [SyncCount; 5] = [
    (
        "traced_syncs",
        "traced syncs that followed writes, over all trials",
        |counts| counts.syncs,
    ),
    (
        "sync_commits",
        "journal commits that these waited for",
        |counts| counts.commits,
    ),
    (
        "shared_commits",
        "journal commits that several syncs waited for",
        |counts| counts.shared_commits,
    ),
    (
        "sync_flushes",
        "flushes of the device's cache within traced syncs",
        |counts| counts.flushes,
    ),
    (
        "shared_flushes",
        "flushes within several traced syncs",
        |counts| counts.shared_flushes,
    ),
];

/// Columns on the time of a traced cell by layer.
fn stages<'a>() -> Columns<'a> {
    let mut columns = vec![DataColumn::number(
        "unjoined_share_max",
        "requests of a traced trial that miss events of the kernel, a share; the greatest of any trial",
        |row: &ExportedCell<'_>| row.cell.stages.as_ref().map(|stages| stages.unjoined_share),
    )];
    for stage in Stage::ALL {
        let name = stage.name().replace('-', "_");
        let mut add = |part: &str, what: &str, value: fn(&StageNumbers) -> Option<f64>| {
            columns.push(DataColumn::number(
                &format!("stage_{name}_{part}"),
                &format!("{what} of stage {stage} (docs/METHODS.md), where requests were traced; median over the trials"),
                move |row: &ExportedCell<'_>| value(row.cell.stages.as_ref()?.stages[*stage].as_ref()?),
            ));
        };
        add("mean_ns", "mean", |stage| Some(stage.mean_ns));
        add("p50_ns", "50th percentile", |stage| Some(stage.p50_ns));
        add("p99_ns", "99th percentile", |stage| Some(stage.p99_ns));
        let (whole, slowest) = match stage.is_of_sync() {
            false => (
                "share of the mean service time (without syncs that follow writes or are within them)",
                "share of the mean time of the slowest 1 % of the requests",
            ),
            true => (
                "share of the mean time of a sync",
                "share of the mean time of the slowest 1 % of the syncs",
            ),
        };
        add("share", whole, StageNumbers::share);
        add("tail_share", slowest, StageNumbers::tail_share);
    }
    let syncs = |row: &ExportedCell<'_>| -> Option<SyncCounts> {
        let stages = row.cell.stages.as_ref()?;
        stages.journal.map(|_| stages.syncs)
    };
    columns.extend(SYNCS.map(|(name, meaning, count)| {
        DataColumn::whole(name, meaning, move |row: &ExportedCell<'_>| {
            syncs(row).map(count)
        })
    }));
    columns.push(
        DataColumn::text(
            "trace_journal",
            "how the journal of the file system shows in traced syncs",
            |row: &ExportedCell<'_>| Some(row.cell.stages.as_ref()?.journal?.name().to_owned()),
        )
        .one_of(Journal::NAMES),
    );
    columns.push(
        DataColumn::text(
            "trace_carrier",
            "what has a request in the stage device: a disk, layers with the disks below them (device mapper, md), or both, of groups",
            |row: &ExportedCell<'_>| Some(row.cell.stages.as_ref()?.carried_by.name().to_owned()),
        )
        .one_of(CarriedBy::NAMES),
    );
    columns
        .into_iter()
        .map(|column| column.only_of(|row| row.cell.stages.is_some()))
        .collect()
}

/// Trials, and the quantities that are summarised over them.
fn trials<'a>() -> Columns<'a> {
    let mut columns = Vec::from(table! {
        DataColumn::whole("n", "measured trials, warm-up and failed ones excluded", |row: &ExportedCell<'_>| Some(row.cell.n)).known();
        DataColumn::whole("failed", "trials that failed", |row: &ExportedCell<'_>| Some(row.cell.failed)).known();
    });
    for response in Response::ALL {
        let times = match response.is_latency() {
            true => ": service time, or response time where there is a rate",
            false => "",
        };
        columns.extend(PARTS.map(|(part, doc, value)| {
            let name = format!("{}_{part}", response.column());
            let doc = format!("{doc} of the {response} of a trial{times}");
            DataColumn::number(&name, &doc, move |row: &ExportedCell<'_>| {
                row.cell.of[response].as_ref().and_then(value)
            })
        }));
    }
    columns
}

/// A part of a summary: the end of its column's name, its description, its value.
type SummaryPart = (&'static str, &'static str, fn(&Summary) -> Option<f64>);

const PARTS: [SummaryPart; 14] = table! {
    ("median", "median over the trials", |s| Some(s.median));
    ("median_low", "low end of the exact interval of the median", |s| s.median_interval.map(|i| i.low));
    ("median_high", "high end of the exact interval of the median", |s| s.median_interval.map(|i| i.high));
    ("median_confidence", "confidence of the exact interval of the median, a share,", |s| s.median_interval.map(|i| i.confidence));
    ("median_interpolated_low", "low end of the interpolated 95 % interval of the median, which is narrower and not exact,",
     |s| s.median_interpolated.map(|i| i.low));
    ("median_interpolated_high", "high end of the interpolated 95 % interval of the median", |s| s.median_interpolated.map(|i| i.high));
    ("q1", "first quartile over the trials", |s| { Some(s.quartiles()?.0) });
    ("q3", "third quartile over the trials", |s| { Some(s.quartiles()?.1) });
    ("min", "least value over the trials", |s| Some(s.min));
    ("max", "greatest value over the trials", |s| Some(s.max));
    ("mean", "mean over the trials", |s| s.mean);
    ("mean_low", "low end of the 95 % t interval of the mean", |s| s.mean_interval.map(|i| i.low));
    ("mean_high", "high end of the 95 % t interval of the mean", |s| s.mean_interval.map(|i| i.high));
    ("sd", "standard deviation over the trials", |s| s.sd);
};

/// The table, with one row per cell and client; `None` for a single process.
pub(crate) fn table_of_clients(analysis: &Analysis) -> Option<Table> {
    let cells = analysis.cells.iter();
    let rows: Vec<(&CellAnalysis, &ClientAnalysis)> = cells
        .flat_map(|cell| clients_of(cell).iter().map(move |client| (cell, client)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let column = |heading: &str, value: &dyn Fn(&CellAnalysis, &ClientAnalysis) -> String| {
        let values = rows.iter().map(|(cell, client)| value(cell, client));
        Column::new(heading, 0, values)
    };
    let levels = rows.iter().map(|(cell, _)| cell.cell.levels.as_slice());
    let mut columns = level_columns(&analysis.factors, levels);
    let or_none = |value: Option<f64>, format: fn(f64) -> String| value.map_or_else(none, format);
    columns.extend([
        column("client", &|_, client| {
            escape_control(&labels::client(&client.name)).into_owned()
        })
        .left(),
        column("ranks", &|_, client| client.ranks.to_string()),
        column("MB/s", &|_, client| {
            or_none(client.cell.median(Response::Throughput), significant)
        }),
        column("p50", &|_, client| {
            or_none(client.cell.latency.map(|l| l.p50_ns), format_ns)
        }),
        column("p99", &|_, client| {
            or_none(client.cell.latency.map(|l| l.p99_ns), format_ns)
        }),
        column("served by", &|_, client| {
            let served = client.cell.served.as_ref();
            served.map_or_else(none, labels::served)
        })
        .left(),
        column("cached before", &|_, client| {
            or_none(median(&client.cached), format_percent)
        }),
        column("CPU per request", &|_, client| {
            or_none(client.cell.median(Response::Cpu), format_ns)
        }),
        column("steal", &|_, client| {
            or_none(client.cell.disturbance.steal, format_percent)
        }),
        column("waits for I/O", &|_, client| {
            or_none(client.cell.disturbance.io_stall, format_percent)
        }),
    ]);
    let notes = [
        "the ranks of a host together, or a rank with a target of its own",
        "medians over the measured trials",
        "latencies of all ranks of a client merged",
        "cached before: share of what its ranks go over that its page cache held before the trial",
        "steal: CPU time of the host that the hypervisor took",
    ];
    let notes = notes.map(str::to_owned);
    Some(Table::new("Clients of each cell", notes, columns))
}

/// The clients of a cell as a list of objects.
fn client_objects(cell: &CellAnalysis) -> Value {
    let columns = client_columns();
    let object = |client: &ClientAnalysis| {
        let fields = columns.iter().filter_map(|column| column.field(client));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    clients_of(cell).iter().map(object).collect()
}

/// JSON schema of a client's object.
fn schema_of_clients() -> Value {
    row_schema(&client_columns(), &[])
}

fn client_columns() -> Vec<DataColumn<'static, ClientAnalysis>> {
    type Client = ClientAnalysis;
    let served = |client: &Client| client.cell.served.clone();
    let mut columns = Vec::from(table! {
        DataColumn::text("client", "name of its host, with the rank where a host has several clients",
            |c: &Client| Some(labels::client(&c.name))).known();
        DataColumn::whole("rank", "the first of its ranks", |c: &Client| Some(c.rank)).known();
        DataColumn::whole("ranks", "its ranks", |c: &Client| Some(c.ranks)).known();
        DataColumn::whole("n", "measured trials", |c: &Client| Some(c.cell.n)).known();
        DataColumn::number("throughput_mb_s_median", "median throughput over the trials, MB/s",
            |c: &Client| c.cell.median(Response::Throughput));
    });
    columns.extend(quantiles("latency", "latency", |c: &Client| c.cell.latency));
    columns.extend([
        DataColumn::text("served_by", "where its bytes came from", move |c: &Client| served(c).as_ref().map(labels::served)),
        DataColumn::text("served_by_reason", "why this verdict", move |c: &Client| served(c).map(|s| s.reason)),
        DataColumn::number("device_fraction", "bytes that its device carried, a share", move |c: &Client| served(c)?.device_fraction),
        DataColumn::number(
            "cached_before_median",
            "part of what its ranks go over that its page cache held before the trial, a share; median over the trials",
            |c: &Client| median(&c.cached),
        ),
        DataColumn::number("cpu_ns_per_request_median", "CPU time per request, ns; median over the trials", |c: &Client| {
            c.cell.median(Response::Cpu)
        }),
    ]);
    columns.extend(STALLS.map(|(name, doc, value)| {
        DataColumn::number(name, doc, move |c: &Client| value(&c.cell.disturbance))
    }));
    columns.push(
        DataColumn::whole(
            "suspended_ns",
            "time that the machine slept, or iolab was stopped, during the trials, ns",
            |c: &Client| Some(c.cell.disturbance.suspended_ns),
        )
        .known(),
    );
    columns
}

/// A share of the time: the name of its column, its description, its value.
type Stall = (
    &'static str,
    &'static str,
    fn(&CellDisturbance) -> Option<f64>,
);

/// Shares of the time in which others had the CPU, or work waited.
const STALLS: [Stall; 5] = [
    (
        "steal",
        "CPU time that the hypervisor took, a share of the time of all CPUs",
        |d| d.steal,
    ),
    (
        "cpu_stall",
        "time in which some task waited for a CPU, a share",
        |d| d.cpu_stall,
    ),
    (
        "worker_wait",
        "time in which workers were ready to run and waited for a CPU, a share of the time of all workers",
        |d| d.worker_wait,
    ),
    (
        "io_stall",
        "time in which some task waited for I/O, a share",
        |d| d.io_stall,
    ),
    (
        "memory_stall",
        "time in which some task waited for memory, a share",
        |d| d.memory_stall,
    ),
];

fn clients_of(cell: &CellAnalysis) -> &[ClientAnalysis] {
    cell.ranks.as_ref().map_or(&[], |ranks| &ranks.clients)
}
