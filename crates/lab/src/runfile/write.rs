//! From plain values to rows.

use std::path::Path;

use iolab_engine::{Error, Result};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use serde_json::json;

use super::fault::fault;
use super::names;
use crate::record::{
    Cell, Direction, Event, ExperimentRecord, Interval, LatencySummary, Run, Sample,
};

/// A row that is being put together: column names and values.
pub(super) struct Row {
    table: &'static str,
    columns: Vec<(String, Value)>,
    beyond: Option<String>,
}

impl Row {
    fn of(table: &'static str) -> Self {
        Self {
            table,
            columns: Vec::new(),
            beyond: None,
        }
    }

    fn put(mut self, column: impl Into<String>, value: impl Into<Value>) -> Self {
        self.columns.push((column.into(), value.into()));
        self
    }

    /// SQLite's integers are signed: what does not fit makes the whole row fail.
    fn int(self, column: impl Into<String>, value: impl Into<u64>) -> Self {
        self.optional_int(column, Some(value.into()))
    }

    fn optional_int(mut self, column: impl Into<String>, value: Option<u64>) -> Self {
        let column = column.into();
        match value.map(i64::try_from).transpose() {
            Ok(value) => self.put(column, value),
            Err(_) => {
                self.beyond.get_or_insert(column);
                self
            }
        }
    }

    fn optional_ints(self, columns: impl IntoIterator<Item = (&'static str, Option<u64>)>) -> Self {
        columns
            .into_iter()
            .fold(self, |row, (column, value)| row.optional_int(column, value))
    }

    fn text(self, column: &'static str, value: &str) -> Self {
        self.put(column, value.to_owned())
    }

    fn optional_text(self, column: &'static str, value: Option<&str>) -> Self {
        self.put(column, value.map(str::to_owned))
    }

    /// Requests of one direction, with the direction's name before each column's.
    fn direction(self, prefix: &str, direction: &Direction) -> Self {
        self.int(format!("{prefix}_requests"), direction.requests)
            .int(format!("{prefix}_bytes"), direction.bytes)
            .int(
                format!("{prefix}_short_transfers"),
                direction.short_transfers,
            )
            .latency(&format!("{prefix}_latency"), direction.latency)
            .latency(&format!("{prefix}_response"), direction.response)
            .latency(&format!("{prefix}_lateness"), direction.lateness)
    }

    /// Mean and quantiles, with a name before each column's.
    fn latency(self, prefix: &str, latency: Option<LatencySummary>) -> Self {
        let column = |name: &str| format!("{prefix}_{name}_ns");
        self.put(column("mean"), latency.map(|l| l.mean_ns))
            .optional_int(column("p50"), latency.map(|l| l.p50_ns))
            .optional_int(column("p90"), latency.map(|l| l.p90_ns))
            .optional_int(column("p99"), latency.map(|l| l.p99_ns))
            .optional_int(column("p999"), latency.map(|l| l.p999_ns))
            .optional_int(column("max"), latency.map(|l| l.max_ns))
    }

    /// Inserts the row into the run file at `path` and gives its number.
    pub(super) fn insert(self, connection: &Connection, path: &Path) -> Result<i64> {
        if let Some(column) = self.beyond {
            return Err(Error::failed(format!(
                "{column} is 2^63 or more and does not fit a run file"
            ))
            .hint("choose a seed below 2^63; for any other number please report this"));
        }
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.table,
            names.join(", "),
            vec!["?"; names.len()].join(", ")
        );
        let values = params_from_iter(self.columns.iter().map(|(_, value)| value));
        connection
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.insert(values))
            .map_err(|error| fault(path, &error))
    }
}

pub(super) fn run(run: &Run) -> Row {
    Row::of("run")
        .int("id", 1u64)
        .text("status", names::status(run.status))
        .text("tool_version", &run.tool_version)
        .text("started_utc", &run.started_utc)
        .optional_text("ended_utc", run.ended_utc.as_deref())
        .text("target", &run.target)
        .text("target_kind", &run.target_kind)
        .int("target_bytes", run.target_bytes)
        .int("seed", run.seed)
        .put("clock_cost_ns", run.clock_cost_ns)
        .text("clock_source", &run.clock_source)
        .put("floor_ns", run.floor_ns)
}

pub(super) fn environment(position: usize, key: &str, value: &str) -> Row {
    Row::of("environment")
        .int("position", position as u64)
        .put("key", key.to_owned())
        .put("value", value.to_owned())
}

pub(super) fn experiment(experiment: &ExperimentRecord) -> Row {
    Row::of("experiment")
        .int("id", 1u64)
        .text("name", &experiment.name)
        .text("question", &experiment.question)
        .text("response", &experiment.response)
        .text("toml", &experiment.toml)
        .text("factors", &json!(experiment.factors).to_string())
        .put("precision", experiment.precision)
        .int("budget_ns", experiment.budget_ns)
        .int("trials_min", experiment.trials_min)
        .int("trials_max", experiment.trials_max)
}

pub(super) fn cell(factors: &[String], cell: &Cell) -> Row {
    let levels: serde_json::Map<String, serde_json::Value> = factors
        .iter()
        .zip(&cell.levels)
        .map(|(factor, level)| (factor.clone(), json!(level)))
        .collect();
    Row::of("cell")
        .put("id", cell.id)
        .text("levels", &serde_json::Value::Object(levels).to_string())
        .optional_text("command", cell.command.as_deref())
        .text("tool", &cell.tool)
        .text("backend", &cell.backend)
        .text("pattern", &cell.pattern)
        .int("bs_bytes", cell.bs_bytes)
        .int("skip_bytes", cell.skip_bytes)
        .int("offset_bytes", cell.offset_bytes)
        .int("region_bytes", cell.region_bytes)
        .int("threads", cell.threads)
        .int("depth", cell.depth)
        .text("batch", &cell.batch)
        .int("read_percent", cell.read_percent)
        .text("layout", &cell.layout)
        .text("descriptors", &cell.descriptors)
        .int("fresh", u64::from(cell.fresh))
        .text("sync", &cell.sync)
        .text("cache", &cell.cache)
        .text("buffer_init", &cell.buffer_init)
        .text("content", &cell.content)
        .int("verify", u64::from(cell.verify))
        .optional_int("rate", cell.rate)
        .optional_text("arrivals", cell.arrivals.as_deref())
        .optional_text("ended_by", cell.ended_by.as_deref())
}

/// The sample's own `id` is not written: the file numbers its samples.
pub(super) fn sample(sample: &Sample) -> Row {
    Row::of("sample")
        .put("cell_id", sample.cell)
        .int("block", sample.block)
        .int("position", sample.position)
        .int("warmup", u64::from(sample.warmup))
        .int("ok", u64::from(sample.ok))
        .text("started_utc", &sample.started_utc)
        .direction("read", &sample.reads)
        .direction("write", &sample.writes)
        .int("syncs", sample.syncs)
        .int("errors", sample.errors)
        .optional_text("failure", sample.failure.as_deref())
        .text("ended", &sample.ended)
        .int("elapsed_ns", sample.elapsed_ns)
        .int("all_active_ns", sample.all_active_ns)
        .int("end_sync_ns", sample.end_sync_ns)
        .int("wall_ns", sample.wall_ns)
        .put("clock_drift_ppm", sample.clock_drift_ppm)
        .int("seed", sample.seed)
        .optional_ints(sample.counts())
        .put(
            "hardware_missing",
            sample
                .counters
                .hardware
                .missing()
                .map(|reason| reason.to_string()),
        )
        .put("rate_wanted", sample.pace.map(|p| p.rate_wanted))
        .put("rate_achieved", sample.pace.map(|p| p.rate_achieved))
        .optional_int("backlog_max", sample.pace.map(|p| p.backlog_max))
        .optional_int("backlog_end", sample.pace.map(|p| p.backlog_end))
        .text("effective", &sample.effective)
        .text("served_by", crate::analysis::name(sample.verdict.served_by))
        .put("device_fraction", sample.verdict.device_fraction)
        .text("served_by_reason", &sample.verdict.reason)
}

pub(super) fn latency(sample_id: i64, direction: &'static str, histogram: Vec<u8>) -> Row {
    Row::of("latency")
        .put("sample_id", sample_id)
        .text("direction", direction)
        .put("histogram", histogram)
}

pub(super) fn interval(sample_id: i64, interval: &Interval) -> Row {
    let done = &interval.done;
    Row::of("series")
        .put("sample_id", sample_id)
        .int("start_ns", interval.start_ns)
        .int("length_ns", interval.length_ns)
        .int("read_requests", done.read_requests)
        .int("read_bytes", done.read_bytes)
        .int("write_requests", done.write_requests)
        .int("write_bytes", done.write_bytes)
}

pub(super) fn event(event: &Event) -> Row {
    Row::of("event")
        .text("at_utc", &event.at_utc)
        .text("kind", &event.kind)
        .put("cell_id", event.cell)
        .text("message", &event.message)
}
