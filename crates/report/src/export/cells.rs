//! Rows of cells: one per cell of each run, or per group of a cell and for all of them together, with the clients
//! of runs across hosts.

use crate::notation::clean;
use serde_json::{Map, Value};

use crate::block::Table;
use crate::data_column::{self, DataColumn, DataRows, quantiles, row_schema};
use crate::layout::{Column, level_columns, none};
use crate::table::{bare, latencies};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{
    Analysis, CellAnalysis, CellRanks, CellRate, CellStages, ClientAnalysis, Response, StageNumbers,
};
use iolab_analysis::disturbance::CellDisturbance;
use iolab_analysis::runs::RunName;
use iolab_figure::labels;
use iolab_record::EndedBy;
use iolab_stats::{Summary, median};
use iolab_workload::stages::{CarriedBy, Journal, Stage};
use iolab_workload::table;
use iolab_workload::units::{format_ns, format_percent};

/// A run with the name of its file.
type NamedRun = (RunName, AnalysedRun);

/// Data of one row.
pub(crate) struct ExportedCell<'a> {
    analysis: &'a Analysis,
    cell: &'a CellAnalysis,
}

type Columns<'a> = Vec<CellColumn<'a>>;

/// A column of cells.
type CellColumn<'a> = DataColumn<'a, ExportedCell<'a>>;

/// The rows of all cells of some runs.
pub(crate) fn rows(runs: &[NamedRun]) -> DataRows<'_, ExportedCell<'_>> {
    let runs = runs.iter().map(|(name, run)| {
        let analysis = run.analysis();
        let rows = analysis.cells.iter().flat_map(move |whole| {
            let groups = whole.groups.iter().map(|group| &group.cell);
            let own = std::iter::once((0, whole)).filter(|_| whole.groups.is_empty());
            let all = own.chain((1..).zip(groups));
            // The cell of the analysis has the names that the user gave targets as levels.
            all.map(move |(group, cell)| {
                (Some(&whole.cell), group, ExportedCell { analysis, cell })
            })
        });
        ((name, run.record(), run.answer()), rows)
    });
    DataRows::new(columns(), runs)
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
    let all_active = PARTS.map(|(part, doc, value)| {
        let (name, doc) = (
            format!("all_active_mb_s_{part}"),
            format!("{doc} of the throughput while all ranks were active, MB/s"),
        );
        CellColumn::number(&name, &doc, move |row| {
            of(row)?.all_active.as_ref().and_then(value)
        })
    });
    let before = table! {
        CellColumn::whole("ranks", "processes (ranks) that took part", |row| of(row).map(|r| r.ranks));
        CellColumn::whole("hosts", "hosts that they ran on", |row| of(row).map(|r| r.hosts));
        CellColumn::number("clock_bound", "greatest error that the clocks of the hosts allow in the throughput from the first start to the last end, a share of it",
            |row| of(row).map(|r| r.clock_bound));
    };
    let behind = table! {
        CellColumn::number("all_active_clock_bound", "greatest error that the clocks allow in the throughput while all ranks were active, a share of it",
            |row| of(row).map(|r| r.all_active_bound));
        CellColumn::whole("start_skew_ns_max", "longest time from the first start of a rank to the last one, ns", |row| of(row).map(|r| r.start_skew_ns));
        CellColumn::objects("clients", "the ranks that share a page cache: all ranks of a host, or one rank with a target of its own",
            row_schema(client_columns().iter().map(DataColumn::described), false), |row| client_objects(row.cell));
    };
    let columns = before.into_iter().chain(all_active).chain(behind);
    columns
        .map(|column| column.only_of(|row| row.analysis.spans_ranks()))
        .collect()
}

/// Columns on disturbances around the trials.
fn disturbance<'a>() -> Columns<'a> {
    let mut columns = Vec::from(table! {
        CellColumn::number("other_traffic", "bytes that the device carried for others, a share of all that it carried", |row| row.cell.disturbance.others);
        CellColumn::number("read_ahead", "bytes that were fetched from storage over the bytes that were read through the page cache",
            |row| row.cell.disturbance.read_ahead);
        CellColumn::number("device_ios_per_request_median", "requests that reached the device over the requests that were issued; median over the trials",
            |row| row.cell.disturbance.ios_per_request);
        CellColumn::number("device_mean_ns_median", "mean time of a request at the device by the device's own counters, ns, where it carried nothing for others; median over the trials",
            |row| row.cell.disturbance.device_mean_ns);
    });
    columns.extend(stalls(|row: &ExportedCell<'_>| row.cell));
    columns.extend(table! {
        CellColumn::number("cpu_quota_wait", "time in which the CPU quota of the control group was used up, a share of the time of all CPUs",
            |row| row.cell.disturbance.quota_wait);
        CellColumn::number("preemptions_per_s", "times per second that a worker was preempted", |row| row.cell.disturbance.preemptions);
        suspended(|row: &ExportedCell<'_>| row.cell);
        CellColumn::number("owed_sync_ns_median", "time of the `fdatasync` that followed writes without a sync, ns; median over the trials",
            |row| row.cell.disturbance.owed_sync_ns);
        CellColumn::number("empty_median", "part of the region in holes and unwritten extents, a share; median over the trials", |row| row.cell.disturbance.empty);
    });
    columns
}

/// Columns on requests in flight, and on the ceiling of the device.
fn limits<'a>() -> Columns<'a> {
    Vec::from(table! {
        CellColumn::whole("in_flight_asked", "requests in flight that were asked for: threads times depth", |row| row.cell.concurrency.map(|c| c.asked));
        CellColumn::number("in_flight_median", "requests in flight, seen from the threads; median over the trials", |row| row.cell.concurrency?.in_flight);
        CellColumn::number("device_in_flight_median", "requests in flight at the device, in requests of this cell's size; median over the trials",
            |row| row.cell.concurrency?.at_device);
        CellColumn::number("iops_over_one_in_flight", "requests per second over the requests per second of the cell with one request in flight, a ratio",
            |row| row.cell.concurrency?.served);
        CellColumn::number("ceiling", "what the device gives at most, in `ceiling_unit`", |row| row.cell.efficiency.map(|e| e.ceiling));
        CellColumn::text("ceiling_unit", "unit of `ceiling`", |row| row.cell.efficiency.map(|e| if e.is_iops { "IOPS" } else { "MB/s" })).one_of(&["IOPS", "MB/s"]);
        CellColumn::text("ceiling_source", "where the ceiling is from: stated, linked or measured", |row| row.cell.efficiency.map(|e| e.source.to_string()));
        CellColumn::number("efficiency", "median over the ceiling, a share", |row| row.cell.efficiency.map(|e| e.share));
        CellColumn::text("efficiency_cause", "why `efficiency` is above 1, where the evidence says so", |row| row.cell.efficiency?.cause.map(|cause| cause.to_string()));
    })
}

/// Columns on how a rate was kept, and on latencies other than the requests' own.
fn load<'a>() -> Columns<'a> {
    fn kept<'r>(row: &'r ExportedCell<'_>) -> Option<&'r CellRate> {
        row.cell.rate_report.as_ref()
    }
    let mut columns = Vec::from(table! {
        CellColumn::number("latency_max_ns", "greatest latency of any request of any trial, ns", |row| row.cell.latency?[Response::Max]);
        CellColumn::number("rate_wanted", "requests per second that were asked for", |row| kept(row).map(|p| p.rate_wanted));
        CellColumn::number("rate_achieved_median", "requests per second that were submitted, or completed where most trials missed the rate; median over the trials", |row| kept(row).map(|p| p.rate_achieved));
        CellColumn::whole("rate_not_held_trials", "trials in which the rate was not held", |row| kept(row).map(|p| p.not_held));
        CellColumn::whole("backlog_max", "most requests that were due and not submitted, of any trial", |row| kept(row).map(|p| p.backlog_max));
        CellColumn::whole("backlog_end_max", "most of these at the end of a trial, of any trial", |row| kept(row).map(|p| p.backlog_end));
    });
    let service = "service time (completion minus submission) where there is a rate";
    columns.extend(quantiles("service", service, |row| kept(row)?.service));
    let lateness = "lateness (submission minus scheduled start) where there is a rate";
    columns.extend(quantiles("lateness", lateness, |row| kept(row)?.lateness));
    let sync = "time of `fsync` and `fdatasync` calls";
    columns.extend(quantiles("sync", sync, |row: &ExportedCell<'_>| {
        row.cell.sync
    }));
    columns
}

/// Columns on how far the numbers can be trusted.
fn verdict<'a>() -> Columns<'a> {
    let flags = |row: &ExportedCell<'_>| {
        let flags: Vec<String> = row.cell.flags.iter().map(ToString::to_string).collect();
        Some(flags.join(", "))
    };
    Vec::from(table! {
        CellColumn::text("served_by", "where the bytes came from: `device`, `page-cache`, `mixed`, `hole`, `not-storage`, `network`, `model`, `unknown`; several with their numbers of trials; `null` for one of several groups, whose origin is known of `all` only",
            |row| row.cell.served_alone().map(labels::served));
        CellColumn::number("device_fraction", "bytes that the device carried, a share; median over the trials", |row| row.cell.served_alone()?.device_fraction);
        CellColumn::text("response", "quantity that the experiment asks about, or `--metric` names", |row| Some(row.analysis.response_name())).known();
        CellColumn::number("precision", "distance of the response's median to the farther end of its interval, a share of the median", |row| row.cell.precision);
        CellColumn::number("precision_goal", "precision at which repetition ends, a share", |row| Some(row.analysis.precision_goal)).known();
        CellColumn::text("ended_by", "what ended the repetition of the cell", |row| row.cell.cell.ended_by.map(EndedBy::name)).one_of(EndedBy::NAMES);
        CellColumn::text("flags", "what to be careful about, separated by `, `; METHODS.md has the rules", flags).known();
    })
}

/// Columns on the time of a traced cell by layer.
fn stages<'a>() -> Columns<'a> {
    fn of<'r>(row: &'r ExportedCell<'_>) -> Option<&'r CellStages> {
        row.cell.stages.as_ref()
    }
    let mut columns = vec![CellColumn::number(
        "unjoined_share_max",
        "requests of a traced trial that miss events of the kernel, a share; the greatest of any trial",
        |row| of(row).map(|stages| stages.unjoined_share),
    )];
    for stage in Stage::ALL {
        let name = stage.name().replace('-', "_");
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
        type Part = (&'static str, &'static str, fn(&StageNumbers) -> Option<f64>);
        let parts: [Part; 5] = table! {
            ("mean_ns", "mean", |stage| Some(stage.mean_ns));
            ("p50_ns", "50th percentile", |stage| Some(stage.p50_ns));
            ("p99_ns", "99th percentile", |stage| Some(stage.p99_ns));
            ("share", whole, StageNumbers::share);
            ("tail_share", slowest, StageNumbers::tail_share);
        };
        columns.extend(parts.map(|(part, what, value)| {
            CellColumn::number(
                &format!("stage_{name}_{part}"),
                &format!("{what} of stage {stage} (docs/METHODS.md), where requests were traced; median over the trials"),
                move |row| value(of(row)?.stages[*stage].as_ref()?),
            )
        }));
    }
    let syncs = |row: &ExportedCell<'_>| {
        let stages = of(row)?;
        stages.journal.map(|_| stages.syncs)
    };
    columns.extend(table! {
        CellColumn::whole("traced_syncs", "traced syncs that followed writes, over all trials", move |row| syncs(row).map(|counts| counts.syncs));
        CellColumn::whole("sync_commits", "journal commits that these waited for", move |row| syncs(row).map(|counts| counts.commits));
        CellColumn::whole("shared_commits", "journal commits that several syncs waited for", move |row| syncs(row).map(|counts| counts.shared_commits));
        CellColumn::whole("sync_flushes", "flushes of the device's cache within traced syncs", move |row| syncs(row).map(|counts| counts.flushes));
        CellColumn::whole("shared_flushes", "flushes within several traced syncs", move |row| syncs(row).map(|counts| counts.shared_flushes));
        CellColumn::text("trace_journal", "how the journal of the file system shows in traced syncs", |row| Some(of(row)?.journal?.name())).one_of(Journal::NAMES);
        CellColumn::text("trace_carrier", "what has a request in the stage device: a disk, layers with the disks below them (device mapper, md), or both, of groups",
            |row| Some(of(row)?.carried_by.name())).one_of(CarriedBy::NAMES);
    });
    let columns = columns.into_iter();
    columns
        .map(|column| column.only_of(|row| row.cell.stages.is_some()))
        .collect()
}

/// Trials, and the quantities that are summarised over them.
fn trials<'a>() -> Columns<'a> {
    let mut columns = Vec::from(table! {
        CellColumn::whole("n", "measured trials, warm-up and failed ones excluded", |row| Some(row.cell.n)).known();
        CellColumn::whole("failed", "trials that failed", |row| Some(row.cell.failed)).known();
    });
    for response in Response::ALL {
        let column = |part| of_trials(part, response, |row: &ExportedCell<'_>| row.cell);
        columns.extend(PARTS.map(column));
    }
    columns
}

/// The column of a part of the summary of a quantity.
fn of_trials<'c, R: 'c>(
    (part, doc, value): SummaryPart,
    response: Response,
    of: fn(&R) -> &CellAnalysis,
) -> DataColumn<'c, R> {
    let times = match response.is_latency() {
        true => ": service time, or response time where there is a rate",
        false => "",
    };
    let name = format!("{}_{part}", response.column());
    let doc = format!("{doc} of the {response} of a trial{times}");
    DataColumn::number(&name, &doc, move |row: &R| {
        of(row).of[response].as_ref().and_then(value)
    })
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
    let column = |heading: &str, value: &dyn Fn(&ClientAnalysis) -> Option<String>| {
        let values = rows.iter().map(|(_, client)| value(client));
        Column::new(heading, 0, values.map(|value| value.unwrap_or_else(none)))
    };
    let median_of = |of: Response| column(of.heading(), &|c| Some(bare(of, c.cell.median(of)?)));
    let latencies =
        latencies().map(|(of, _)| column(of.heading(), &|c| c.cell.latency?[of].map(format_ns)));
    let levels = rows.iter().map(|(cell, _)| cell.cell.levels.as_slice());
    let mut columns = level_columns(&analysis.factors, levels);
    columns.extend(table! {
        column("client", &|c| Some(clean(&labels::client(&c.name)))).left();
        column("ranks", &|c| Some(c.ranks.to_string()));
        median_of(Response::Throughput);
    });
    columns.extend(latencies);
    columns.extend(table! {
        column("served by", &|c| c.cell.served.as_ref().map(labels::served)).left();
        column("cached before", &|c| median(&c.cached).map(format_percent));
        median_of(Response::Cpu);
        column("steal", &|c| c.cell.disturbance.steal.map(format_percent));
        column("waits for I/O", &|c| c.cell.disturbance.io_stall.map(format_percent));
    });
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
        let fields = columns.iter().map(|column| column.field(client));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    clients_of(cell).iter().map(object).collect()
}

fn client_columns() -> Vec<DataColumn<'static, ClientAnalysis>> {
    type Column = DataColumn<'static, ClientAnalysis>;
    let mut columns = Vec::from(table! {
        Column::text("client", "name of its host, with the rank where a host has several clients", |c| Some(labels::client(&c.name))).known();
        Column::whole("rank", "the first of its ranks", |c| Some(c.rank)).known();
        Column::whole("ranks", "its ranks", |c| Some(c.ranks)).known();
        Column::whole("n", "measured trials", |c| Some(c.cell.n)).known();
        of_trials(PARTS[0], Response::Throughput, |c: &ClientAnalysis| &c.cell);
    });
    columns.extend(quantiles("latency", "latency", |c: &ClientAnalysis| {
        c.cell.latency
    }));
    columns.extend(table! {
        Column::text("served_by", "where its bytes came from", |c| c.cell.served.as_ref().map(labels::served));
        Column::text("served_by_reason", "why this verdict", |c| Some(c.cell.served.as_ref()?.reason.clone()));
        Column::number("device_fraction", "bytes that its device carried, a share", |c| c.cell.served.as_ref()?.device_fraction);
        Column::number("cached_before_median", "part of what its ranks go over that its page cache held before the trial, a share; median over the trials",
            |c| median(&c.cached));
        of_trials(PARTS[0], Response::Cpu, |c: &ClientAnalysis| &c.cell);
    });
    columns.extend(stalls(|c: &ClientAnalysis| &c.cell));
    columns.push(suspended(|c: &ClientAnalysis| &c.cell));
    columns
}

/// Columns of the shares of the time in which others had the CPU, or work waited.
fn stalls<'c, R: 'c>(of: fn(&R) -> &CellAnalysis) -> [DataColumn<'c, R>; 5] {
    type Stall = (
        &'static str,
        &'static str,
        fn(&CellDisturbance) -> Option<f64>,
    );
    const STALLS: [Stall; 5] = table! {
        ("steal", "CPU time that the hypervisor took, a share of the time of all CPUs", |d| d.steal);
        ("cpu_stall", "time in which some task waited for a CPU, a share", |d| d.cpu_stall);
        ("worker_wait", "time in which workers were ready to run and waited for a CPU, a share of the time of all workers", |d| d.worker_wait);
        ("io_stall", "time in which some task waited for I/O, a share", |d| d.io_stall);
        ("memory_stall", "time in which some task waited for memory, a share", |d| d.memory_stall);
    };
    STALLS.map(|(name, doc, value)| {
        DataColumn::number(name, doc, move |row: &R| value(&of(row).disturbance))
    })
}

/// The column of the time in which nothing ran.
fn suspended<'c, R: 'c>(of: fn(&R) -> &CellAnalysis) -> DataColumn<'c, R> {
    let doc = "time that the machine slept, or iolab was stopped, during the trials, ns";
    let value = move |row: &R| Some(of(row).disturbance.suspended_ns);
    DataColumn::whole("suspended_ns", doc, value).known()
}

fn clients_of(cell: &CellAnalysis) -> &[ClientAnalysis] {
    cell.ranks.as_ref().map_or(&[], |ranks| &ranks.clients)
}
