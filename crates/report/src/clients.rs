//! What the clients of a run across hosts did and saw, each by itself.

use serde_json::{Map, Value};

use iolab_analysis::analysis::{Analysis, CellAnalysis, CellDisturbance, ClientAnalysis};
use iolab_stats::median;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::{format_ns, format_percent, significant};

use crate::layout::{Column, none};
use crate::rows::{Field, field, text};

/// How to read the columns.
pub(crate) fn caption() -> String {
    "Clients of each cell: the ranks of a host together, or a rank with a target of its own. Medians over the measured trials; \
     latencies of all ranks of a client merged. Cached before: share of what its ranks go over that its page cache held before the trial. \
     Steal: CPU time of the host that the hypervisor took."
        .to_owned()
}

/// One row per cell and client; none where one process measured.
pub(crate) fn columns(analysis: &Analysis) -> Vec<Column> {
    let cells = analysis.cells.iter();
    let rows: Vec<(&CellAnalysis, &ClientAnalysis)> = cells
        .flat_map(|cell| of(cell).iter().map(move |client| (cell, client)))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let column = |heading: &str, value: &dyn Fn(&CellAnalysis, &ClientAnalysis) -> String| {
        let values = rows.iter().map(|(cell, client)| value(cell, client));
        Column::new(heading, 0, values)
    };
    let mut columns: Vec<Column> = Vec::new();
    for (i, factor) in analysis.factors.iter().enumerate() {
        columns.push(column(&escape_control(factor), &|cell, _| {
            let level = cell.cell.levels.get(i);
            level.map_or_else(none, |level| escape_control(level).into_owned())
        }));
    }
    let or_none = |value: Option<f64>, format: fn(f64) -> String| value.map_or_else(none, format);
    columns.extend([
        column("client", &|_, client| {
            escape_control(&client.name).into_owned()
        })
        .left(),
        column("ranks", &|_, client| client.ranks.to_string()),
        column("MB/s", &|_, client| {
            or_none(client.cell.throughput.map(|t| t.median), significant)
        }),
        column("p50", &|_, client| {
            or_none(client.cell.latency.map(|l| l.p50_ns), format_ns)
        }),
        column("p99", &|_, client| {
            or_none(client.cell.latency.map(|l| l.p99_ns), format_ns)
        }),
        column("served by", &|_, client| {
            let served = client.cell.served.as_ref();
            served.map_or_else(none, ToString::to_string)
        })
        .left(),
        column("cached before", &|_, client| {
            or_none(median(&client.cached), format_percent)
        }),
        column("CPU per request", &|_, client| {
            or_none(client.cell.cpu_ns_per_request, format_ns)
        }),
        column("steal", &|_, client| {
            or_none(client.cell.disturbance.steal, format_percent)
        }),
        column("waits for I/O", &|_, client| {
            or_none(client.cell.disturbance.io_stall, format_percent)
        }),
    ]);
    columns
}

/// The clients of a cell as a list of objects.
pub(crate) fn objects(cell: &CellAnalysis) -> Value {
    let object = |client: &ClientAnalysis| -> Value {
        let (own, latency) = (&client.cell, client.cell.latency);
        let served = own.served.as_ref();
        let around = &own.disturbance;
        let fields = [
            text("client", &client.name),
            field("rank", client.rank),
            field("ranks", client.ranks),
            field("n", own.n),
            field("throughput_mb_s_median", own.throughput.map(|t| t.median)),
            field("latency_p50_ns_median", latency.map(|l| l.p50_ns)),
            field("latency_p99_ns_median", latency.map(|l| l.p99_ns)),
            field("latency_p999_ns_median", latency.map(|l| l.p999_ns)),
            field("latency_max_ns", latency.map(|l| l.max_ns)),
            field("served_by", served.map(ToString::to_string)),
            field(
                "served_by_reason",
                served.map(|s| escape_control(&s.reason).into_owned()),
            ),
            field("device_fraction", served.and_then(|s| s.device_fraction)),
            field("cached_before_median", median(&client.cached)),
            field("cpu_ns_per_request_median", own.cpu_ns_per_request),
        ];
        let fields = fields.into_iter().chain(stall_fields(around));
        let suspended = field("suspended_ns", around.suspended_ns);
        Value::Object(fields.chain([suspended]).collect::<Map<_, _>>())
    };
    of(cell).iter().map(object).collect()
}

/// For which shares of the time others had the CPU, or work waited.
pub(crate) fn stall_fields(around: &CellDisturbance) -> [Field; 4] {
    [
        field("steal", around.steal),
        field("cpu_stall", around.cpu_stall),
        field("io_stall", around.io_stall),
        field("memory_stall", around.memory_stall),
    ]
}

fn of(cell: &CellAnalysis) -> &[ClientAnalysis] {
    cell.ranks.as_ref().map_or(&[], |ranks| &ranks.clients)
}
