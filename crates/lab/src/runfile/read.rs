//! From rows to plain values. The file may be a stranger's: every value is checked.

use std::path::Path;

use iolab_engine::Result;
use iolab_engine::schedule::Arrivals;
use iolab_engine::spec::{
    Backend, Batch, BufferInit, CacheState, Content, Descriptors, Layout, Pattern, SyncPolicy,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::counts;
use super::fault::{damaged, fault, too_large};
use super::fields::{Columns, Fields};
use super::names;
use super::schema::DIRECTIONS;
use super::series;
use crate::experiment::RESPONSES;
use crate::peer::Tool;
use crate::record::{
    Cell, Direction, Event, ExperimentRecord, LatencySummary, Pace, Run, RunRecord, Sample, Verdict,
};

/// Most rows of a table that are read; a million samples take above 1 GB of memory.
pub(super) const ROWS_MAX: usize = 1_000_000;
/// Most bytes of text that are read. A row may have more of it than the file: the defaults of its columns.
const TEXT_MAX: u64 = 256 << 20;

/// Reads all tables but the latencies, of a file with this schema version.
pub(super) fn record(connection: &Connection, path: &Path, version: i64) -> Result<RunRecord> {
    // All tables at one moment, while the run may be going on; and one lock for all queries.
    let _snapshot = connection
        .unchecked_transaction()
        .map_err(|error| fault(path, &error))?;
    let tables = Tables {
        connection,
        path,
        version,
        text: std::cell::Cell::new(0),
    };
    let experiment = tables.only("experiment", experiment)?;
    let cells = tables.all("cell", "id", |row| cell(row, &experiment.factors))?;
    for (expected, cell) in cells.iter().enumerate() {
        if cell.id != expected as i64 {
            return Err(damaged(path, format!("cell {expected} is missing")));
        }
    }
    let in_plan = |cell: i64| usize::try_from(cell).is_ok_and(|cell| cell < cells.len());
    let samples = tables.all("sample", "id", sample)?;
    if let Some(stray) = samples.iter().find(|sample| !in_plan(sample.cell)) {
        let what = format!("sample {} is of an unknown cell {}", stray.id, stray.cell);
        return Err(damaged(path, what));
    }
    let events = tables.all("event", "id", event)?;
    if let Some(cell) = events
        .iter()
        .filter_map(|event| event.cell)
        .find(|cell| !in_plan(*cell))
    {
        return Err(damaged(
            path,
            format!("an event is of an unknown cell {cell}"),
        ));
    }
    Ok(RunRecord {
        run: tables.only("run", run)?,
        environment: tables.all("environment", "position", |row| {
            Ok((row.text("key")?, row.text("value")?))
        })?,
        experiment,
        cells,
        series: series::of_record(connection, path, version, &samples)?,
        samples,
        events,
    })
}

/// The keys of all latency histograms, in the order of the samples.
pub(super) fn latency_keys(
    connection: &Connection,
    path: &Path,
) -> Result<Vec<(i64, &'static str)>> {
    let wrong = |error| fault(path, &error);
    let sql = "SELECT sample_id, direction FROM latency ORDER BY sample_id, direction";
    let mut statement = connection.prepare(sql).map_err(wrong)?;
    let mut rows = statement.query([]).map_err(wrong)?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        let sample: i64 = row.get(0).map_err(wrong)?;
        let found = row.get_ref(1).map_err(wrong)?;
        let direction = DIRECTIONS
            .into_iter()
            .find(|name| found.as_str() == Ok(*name))
            .ok_or_else(|| damaged(path, format!("sample {sample} has an unknown direction")))?;
        if keys.len() == ROWS_MAX * DIRECTIONS.len() {
            return Err(too_large(path, "it holds too many histograms".to_owned()));
        }
        keys.push((sample, direction));
    }
    Ok(keys)
}

struct Tables<'a> {
    connection: &'a Connection,
    path: &'a Path,
    version: i64,
    /// Bytes of text read so far.
    text: std::cell::Cell<u64>,
}

impl Tables<'_> {
    fn all<T>(
        &self,
        table: &'static str,
        order: &str,
        read: impl Fn(&Fields<'_, '_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let wrong = |error| fault(self.path, &error);
        let sql = format!("SELECT * FROM {table} ORDER BY {order}");
        let mut statement = self.connection.prepare(&sql).map_err(wrong)?;
        let columns = Columns::default();
        let mut rows = statement.query([]).map_err(wrong)?;
        let mut values = Vec::new();
        while let Some(row) = rows.next().map_err(wrong)? {
            self.weigh(row)?;
            if values.len() == ROWS_MAX {
                let what = format!("table {table} has more than {ROWS_MAX} rows");
                return Err(too_large(self.path, what));
            }
            values.push(read(&Fields::new(
                row,
                &columns,
                table,
                self.path,
                self.version,
            ))?);
        }
        Ok(values)
    }

    /// Counts the text of a row, before any of it is kept.
    fn weigh(&self, row: &Row<'_>) -> Result<()> {
        let columns = (0..).map_while(|column| row.get_ref(column).ok());
        let bytes = columns.map(|value| match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
            _ => 0,
        });
        self.text.set(self.text.get() + bytes.sum::<u64>());
        if self.text.get() > TEXT_MAX {
            let what = format!("it holds more than {} MiB of text", TEXT_MAX >> 20);
            return Err(too_large(self.path, what));
        }
        Ok(())
    }

    fn only<T>(
        &self,
        table: &'static str,
        read: impl Fn(&Fields<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let mut values = self.all(table, "id", read)?;
        match (values.pop(), values.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(damaged(
                self.path,
                format!("table {table} has not exactly one row"),
            )),
        }
    }
}

fn run(row: &Fields<'_, '_>) -> Result<Run> {
    Ok(Run {
        status: row.named("status", names::parse_status)?,
        tool_version: row.text("tool_version")?,
        started_utc: row.text("started_utc")?,
        ended_utc: row.get("ended_utc")?,
        target: row.text("target")?,
        target_kind: row.one_of(
            "target_kind",
            &["scratch", "file", "block-device", "char-device", "imported"],
        )?,
        target_bytes: row.int("target_bytes")?,
        seed: row.int("seed")?,
        clock_cost_ns: row.real_or_nan("clock_cost_ns")?,
        clock_source: row.text("clock_source")?,
        floor_ns: row.real_or_nan("floor_ns")?,
    })
}

fn experiment(row: &Fields<'_, '_>) -> Result<ExperimentRecord> {
    let factors = row.named("factors", |text| serde_json::from_str(text).ok())?;
    let precision: f64 = row.get("precision")?;
    if !(precision > 0.0 && precision < 1.0) {
        return Err(row.wrong("precision"));
    }
    Ok(ExperimentRecord {
        name: row.named("name", |text| crate::experiment::check_name(text).ok())?,
        question: row.text("question")?,
        response: row.one_of("response", &RESPONSES)?,
        toml: row.text("toml")?,
        factors,
        precision,
        budget_ns: row.int("budget_ns")?,
        trials_min: row.positive("trials_min")?,
        trials_max: row.positive("trials_max")?,
    })
}

fn cell(row: &Fields<'_, '_>, factors: &[String]) -> Result<Cell> {
    let read_percent: u8 = row.int("read_percent")?;
    if read_percent > 100 {
        return Err(row.wrong("read_percent"));
    }
    Ok(Cell {
        id: row.get("id")?,
        levels: row.named("levels", |text| levels(text, factors))?,
        command: row.added(2, "command")?,
        tool: tool(row)?,
        backend: row.setting::<Backend>("backend")?,
        pattern: row.setting::<Pattern>("pattern")?,
        bs_bytes: row.positive("bs_bytes")?,
        skip_bytes: row.int("skip_bytes")?,
        offset_bytes: row.int("offset_bytes")?,
        region_bytes: row.positive("region_bytes")?,
        threads: row.positive("threads")?,
        depth: row.positive("depth")?,
        batch: row.named("batch", |text| match text {
            "auto" => Some(text.to_owned()),
            _ => text.parse::<Batch>().ok().map(|batch| batch.to_string()),
        })?,
        read_percent,
        layout: row.setting_since(4, "layout", Layout::Shared)?,
        descriptors: row.setting_since(4, "descriptors", Descriptors::Private)?,
        fresh: row.version() >= 4 && row.flag("fresh")?,
        sync: row.setting::<SyncPolicy>("sync")?,
        cache: row.setting::<CacheState>("cache")?,
        buffer_init: row.setting::<BufferInit>("buffer_init")?,
        content: row.setting::<Content>("content")?,
        verify: match row.added::<i64>(4, "verify")? {
            None => false,
            Some(_) => row.flag("verify")?,
        },
        rate: rate(row)?,
        arrivals: match row.added::<String>(3, "arrivals")? {
            None => None,
            Some(_) => Some(row.setting::<Arrivals>("arrivals")?),
        },
        ended_by: match row.get::<Option<String>>("ended_by")? {
            None => None,
            Some(_) => Some(row.one_of("ended_by", &["precision", "budget", "trials-max"])?),
        },
    })
}

/// What carried a cell out; before there was a choice, iolab.
fn tool(row: &Fields<'_, '_>) -> Result<String> {
    match row.added::<String>(4, "tool")? {
        None if row.version() < 4 => Ok(Tool::Iolab.to_string()),
        _ => row.setting::<Tool>("tool"),
    }
}

/// The rate of a cell; `None` in the closed loop.
fn rate(row: &Fields<'_, '_>) -> Result<Option<u64>> {
    match row.added::<i64>(3, "rate")? {
        None => Ok(None),
        Some(_) => row.positive("rate").map(Some),
    }
}

/// The level of each factor, in the order of the factors; none may be missing or too many.
fn levels(text: &str, factors: &[String]) -> Option<Vec<String>> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    if object.len() != factors.len() {
        return None;
    }
    factors
        .iter()
        .map(|factor| object.get(factor)?.as_str().map(str::to_owned))
        .collect()
}

fn sample(row: &Fields<'_, '_>) -> Result<Sample> {
    Ok(Sample {
        id: row.get("id")?,
        cell: row.get("cell_id")?,
        block: row.int("block")?,
        position: row.int("position")?,
        warmup: row.flag("warmup")?,
        ok: row.flag("ok")?,
        started_utc: row.text("started_utc")?,
        reads: direction(row, "read")?,
        writes: direction(row, "write")?,
        syncs: row.int("syncs")?,
        errors: row.int("errors")?,
        failure: row.get("failure")?,
        ended: row.one_of("ended", &["done", "time", "failed"])?,
        elapsed_ns: row.int("elapsed_ns")?,
        all_active_ns: row.int("all_active_ns")?,
        end_sync_ns: row.int("end_sync_ns")?,
        wall_ns: row.int("wall_ns")?,
        clock_drift_ppm: row.real_or_nan("clock_drift_ppm")?,
        seed: row.int("seed")?,
        counters: counts::counters(row)?,
        region: counts::region(row)?,
        pace: pace(row)?,
        verified: counts::verified(row)?,
        effective: row.text("effective")?,
        verdict: verdict(row)?,
    })
}

/// How a rate was kept up with is there as a whole or not at all.
fn pace(row: &Fields<'_, '_>) -> Result<Option<Pace>> {
    let rate = |column: &str| match row.added::<f64>(3, column)? {
        Some(rate) if rate < 0.0 || !rate.is_finite() => Err(row.wrong(column)),
        rate => Ok(rate),
    };
    let Some(rate_wanted) = rate("rate_wanted")? else {
        return Ok(None);
    };
    Ok(Some(Pace {
        rate_wanted,
        rate_achieved: rate("rate_achieved")?.ok_or_else(|| row.wrong("rate_achieved"))?,
        backlog_max: row.int("backlog_max")?,
        backlog_end: row.int("backlog_end")?,
    }))
}

fn verdict(row: &Fields<'_, '_>) -> Result<Verdict> {
    let device_fraction: Option<f64> = row.get("device_fraction")?;
    if device_fraction.is_some_and(|fraction| !(0.0..=1.0).contains(&fraction)) {
        return Err(row.wrong("device_fraction"));
    }
    Ok(Verdict {
        served_by: row.named("served_by", names::parse_served_by)?,
        device_fraction,
        reason: row.text("served_by_reason")?,
    })
}

fn direction(row: &Fields<'_, '_>, prefix: &str) -> Result<Direction> {
    let column = |name: &str| format!("{prefix}_{name}");
    Ok(Direction {
        requests: row.int(&column("requests"))?,
        bytes: row.int(&column("bytes"))?,
        short_transfers: row.int(&column("short_transfers"))?,
        latency: latency(row, 1, &column("latency"))?,
        response: latency(row, 3, &column("response"))?,
        lateness: latency(row, 3, &column("lateness"))?,
    })
}

/// Mean and quantiles of one histogram, whose columns came with schema version `since`.
fn latency(row: &Fields<'_, '_>, since: i64, prefix: &str) -> Result<Option<LatencySummary>> {
    let column = |name: &str| format!("{prefix}_{name}_ns");
    let quantile = |name: &str| row.int::<u64>(&column(name));
    match row.added::<f64>(since, &column("mean"))? {
        None => Ok(None),
        Some(mean_ns) if mean_ns < 0.0 || !mean_ns.is_finite() => Err(row.wrong(&column("mean"))),
        Some(mean_ns) => Ok(Some(LatencySummary {
            mean_ns,
            p50_ns: quantile("p50")?,
            p90_ns: quantile("p90")?,
            p99_ns: quantile("p99")?,
            p999_ns: quantile("p999")?,
            max_ns: quantile("max")?,
        })),
    }
}

fn event(row: &Fields<'_, '_>) -> Result<Event> {
    Ok(Event {
        at_utc: row.text("at_utc")?,
        kind: row.one_of(
            "kind",
            &["note", "warning", "error", "choice", "resume", "gap"],
        )?,
        cell: row.get("cell_id")?,
        message: row.text("message")?,
    })
}
