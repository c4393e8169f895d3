//! The results of each client of a run across hosts.

use serde_json::{Map, Value};

use iolab_analysis::analysis::{Analysis, CellAnalysis, ClientAnalysis, Response};
use iolab_analysis::disturbance::CellDisturbance;
use iolab_figure::labels;
use iolab_stats::median;
use iolab_workload::escape_control::escape_control;
use iolab_workload::table;
use iolab_workload::units::{format_ns, format_percent, significant};

use crate::block::Table;
use crate::data_column::{DataColumn, quantiles, row_schema};
use crate::layout::{Column, level_columns, none};

/// The table, with one row per cell and client; `None` for a single process.
pub(crate) fn table(analysis: &Analysis) -> Option<Table> {
    let cells = analysis.cells.iter();
    let rows: Vec<(&CellAnalysis, &ClientAnalysis)> = cells
        .flat_map(|cell| of(cell).iter().map(move |client| (cell, client)))
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
pub(crate) fn objects(cell: &CellAnalysis) -> Value {
    let columns = data_columns();
    let object = |client: &ClientAnalysis| {
        let fields = columns.iter().filter_map(|column| column.field(client));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    of(cell).iter().map(object).collect()
}

/// JSON schema of a client's object.
pub(crate) fn schema() -> Value {
    row_schema(&data_columns(), &[])
}

fn data_columns() -> Vec<DataColumn<'static, ClientAnalysis>> {
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
pub(crate) const STALLS: [Stall; 5] = [
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

fn of(cell: &CellAnalysis) -> &[ClientAnalysis] {
    cell.ranks.as_ref().map_or(&[], |ranks| &ranks.clients)
}
