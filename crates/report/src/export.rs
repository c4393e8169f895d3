//! Everything measured, as tidy rows for other programs: cells, samples, their intervals, latency buckets.

use std::io::{self, Write};

use hdrhistogram::Histogram;
use serde_json::Value;

use iolab_lab::analysis::{Analysis, CellAnalysis, Circumstances, Latency, name};
use iolab_lab::record::{
    Cell, Direction, Interval, LatencySummary, RunRecord, Sample, SampleSeries,
};
use iolab_stats::Summary;

use crate::tidy::{Column, Field, Format, Kind, TidyWriter, columns_of, field, text};

/// Writes one row per cell of each analysis: its summaries, verdict and flags.
///
/// # Errors
/// When the output cannot be written.
pub fn cells(analyses: &[Analysis], format: Format, to: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Vec<Field>> = analyses
        .iter()
        .flat_map(|analysis| analysis.cells.iter().map(|c| cell_row(analysis, c)))
        .collect();
    let mut writer = TidyWriter::new(to, format, columns_of(&rows))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// Writes one row per sample of each run, warm-up and failed trials included (columns `warmup`
/// and `ok` tell them).
///
/// # Errors
/// When the output cannot be written.
pub fn samples(records: &[RunRecord], format: Format, to: &mut dyn Write) -> io::Result<()> {
    // One row of each run shows all its columns, but not what the values of each are.
    let columns = match format {
        Format::Parquet => columns_of(records.iter().flat_map(sample_rows)),
        _ => columns_of(records.iter().filter_map(|r| sample_rows(r).next())),
    };
    let mut writer = TidyWriter::new(to, format, columns)?;
    for row in records.iter().flat_map(sample_rows) {
        writer.row(&row)?;
    }
    writer.finish()
}

/// The latencies of one direction of one sample.
#[derive(Debug, Clone)]
pub struct LatencyRow {
    /// Name of the experiment.
    pub experiment: String,
    /// Id of the sample in its run file.
    pub sample: i64,
    /// `read` or `write`, or one of the two with `-response` or `-lateness`.
    pub direction: String,
    /// Its service times, response times or lateness, ns.
    pub histogram: Histogram<u64>,
}

/// Writes one row per histogram bucket that counted anything: `low_ns` and `high_ns` are the
/// least and the greatest latency that fall into it.
///
/// # Errors
/// When the output cannot be written, or the first error that `rows` gives.
pub fn buckets<E: From<io::Error>>(
    rows: impl IntoIterator<Item = Result<LatencyRow, E>>,
    format: Format,
    to: &mut dyn Write,
) -> Result<(), E> {
    let columns = [
        ("experiment", Kind::Text),
        ("sample", Kind::Integer),
        ("direction", Kind::Text),
        ("low_ns", Kind::Integer),
        ("high_ns", Kind::Integer),
        ("count", Kind::Integer),
    ];
    let columns = columns.map(|(name, kind)| Column::new(name, kind));
    let mut writer = TidyWriter::new(to, format, columns.to_vec())?;
    for row in rows {
        let row = row?;
        for bucket in row.histogram.iter_recorded() {
            let value = bucket.value_iterated_to();
            writer.row(&[
                text("experiment", &row.experiment),
                field("sample", row.sample),
                text("direction", &row.direction),
                field("low_ns", row.histogram.lowest_equivalent(value)),
                field("high_ns", row.histogram.highest_equivalent(value)),
                field("count", bucket.count_since_last_iteration()),
            ])?;
        }
    }
    Ok(writer.finish()?)
}

/// One trial over time.
#[derive(Debug, Clone)]
pub struct SeriesRow {
    /// Name of the experiment.
    pub experiment: String,
    /// The sample and its intervals.
    pub series: SampleSeries,
}

/// Writes one row per interval of each sample.
///
/// # Errors
/// When the output cannot be written, or the first error that `rows` gives.
pub fn series<E: From<io::Error>>(
    rows: impl IntoIterator<Item = Result<SeriesRow, E>>,
    format: Format,
    to: &mut dyn Write,
) -> Result<(), E> {
    let columns = columns_of([interval_row("", 0, &Interval::default())]);
    let mut writer = TidyWriter::new(to, format, columns)?;
    for row in rows {
        let row = row?;
        for interval in &row.series.series.intervals {
            writer.row(&interval_row(&row.experiment, row.series.sample, interval))?;
        }
    }
    Ok(writer.finish()?)
}

fn interval_row(experiment: &str, sample: i64, interval: &Interval) -> Vec<Field> {
    let done = &interval.done;
    vec![
        text("experiment", experiment),
        field("sample", sample),
        field("start_ns", interval.start_ns),
        field("length_ns", interval.length_ns),
        field("read_requests", done.read_requests),
        field("read_bytes", done.read_bytes),
        field("write_requests", done.write_requests),
        field("write_bytes", done.write_bytes),
        field("throughput_mb_s", interval.throughput_mb_s()),
    ]
}

fn cell_row(analysis: &Analysis, cell: &CellAnalysis) -> Vec<Field> {
    let mut row = vec![text("experiment", &analysis.experiment)];
    row.extend(level_fields(&analysis.factors, &cell.cell));
    row.extend(setting_fields(&cell.cell));
    row.push(field("n", cell.n));
    row.push(field("failed", cell.failed));
    row.extend(summary_fields("throughput_mb_s", cell.throughput.as_ref()));
    row.extend(summary_fields("iops", cell.iops.as_ref()));
    row.extend(summary_fields("latency_p50_ns", cell.latency_p50.as_ref()));
    row.extend(summary_fields("elapsed_ns", cell.elapsed.as_ref()));
    row.extend(circumstance_fields(&cell.circumstances));
    let at_once = cell.concurrency;
    let efficiency = cell.efficiency;
    row.extend([
        field("concurrency_asked", at_once.map(|c| c.asked)),
        field(
            "concurrency_outstanding_median",
            at_once.and_then(|c| c.outstanding),
        ),
        field("device_in_flight_median", at_once.and_then(|c| c.in_flight)),
        field(
            "concurrency_achieved",
            at_once.and_then(|c| c.achieved).map(|(n, _)| n),
        ),
        field("ceiling", efficiency.map(|e| e.ceiling)),
        field(
            "ceiling_unit",
            efficiency.map(|e| if e.is_iops { "IOPS" } else { "MB/s" }),
        ),
        field("ceiling_source", efficiency.map(|e| e.source.to_string())),
        field("efficiency", efficiency.map(|e| e.share)),
        field("efficiency_cause", efficiency.and_then(|e| e.cause)),
    ]);
    let flags: Vec<String> = cell.flags.iter().map(ToString::to_string).collect();
    let served = cell.served.as_ref();
    let pace = cell.pace.as_ref();
    row.extend([
        field("latency_p99_ns_median", cell.latency.map(|l| l.p99_ns)),
        field("latency_p999_ns_median", cell.latency.map(|l| l.p999_ns)),
        field("latency_max_ns", cell.latency.map(|l| l.max_ns)),
        field("rate_wanted", pace.map(|p| p.rate_wanted)),
        field("rate_achieved_median", pace.map(|p| p.rate_achieved)),
        field("rate_not_held_trials", pace.map(|p| p.not_held)),
        field("backlog_max", pace.map(|p| p.backlog_max)),
        field("backlog_end_max", pace.map(|p| p.backlog_end)),
    ]);
    row.extend(quantile_fields("service", pace.and_then(|p| p.service)));
    row.extend(quantile_fields("lateness", pace.and_then(|p| p.lateness)));
    row.extend([
        field("cpu_ns_per_request_median", cell.cpu_ns_per_request),
        field("served_by", served.map(ToString::to_string)),
        field("device_fraction", served.and_then(|s| s.device_fraction)),
        text("response", &analysis.response.to_string()),
        field("precision", cell.precision),
        field("precision_goal", analysis.precision_goal),
        optional_text("ended_by", cell.cell.ended_by.as_deref()),
        field("flags", flags.join(", ")),
    ]);
    row
}

fn circumstance_fields(around: &Circumstances) -> Vec<Field> {
    let groups = around.split.map(|split| split.whole.trials);
    vec![
        field("other_traffic", around.others),
        field("read_ahead", around.read_ahead),
        field("device_ios_per_request_median", around.ios_per_request),
        field("trials_with_fewer_device_ios", groups),
        field("steal", around.steal),
        field("cpu_stall", around.cpu_stall),
        field("io_stall", around.io_stall),
        field("memory_stall", around.memory_stall),
        field("preemptions_per_s", around.preemptions),
        field("suspended_ns", around.suspended_ns),
        field("owed_sync_ns_median", around.owed_sync_ns),
        field("empty_median", around.empty),
    ]
}

fn summary_fields(what: &str, summary: Option<&Summary>) -> Vec<Field> {
    let of = |value: fn(&Summary) -> Option<f64>| summary.and_then(value);
    [
        ("median", of(|s| Some(s.median))),
        ("median_low", of(|s| s.median_interval.map(|i| i.low))),
        ("median_high", of(|s| s.median_interval.map(|i| i.high))),
        (
            "median_confidence",
            of(|s| s.median_interval.map(|i| i.confidence)),
        ),
        ("q1", of(|s| Some(s.q1))),
        ("q3", of(|s| Some(s.q3))),
        ("min", of(|s| Some(s.min))),
        ("max", of(|s| Some(s.max))),
        ("mean", of(|s| s.mean)),
        ("mean_low", of(|s| s.mean_interval.map(|i| i.low))),
        ("mean_high", of(|s| s.mean_interval.map(|i| i.high))),
        ("sd", of(|s| s.sd)),
    ]
    .into_iter()
    .map(|(part, value)| field(&format!("{what}_{part}"), value))
    .collect()
}

/// Of a cell with a rate, whose latency is the response time.
fn quantile_fields(what: &str, latency: Option<Latency>) -> [Field; 4] {
    [
        field(&format!("{what}_p50_ns_median"), latency.map(|l| l.p50_ns)),
        field(&format!("{what}_p99_ns_median"), latency.map(|l| l.p99_ns)),
        field(
            &format!("{what}_p999_ns_median"),
            latency.map(|l| l.p999_ns),
        ),
        field(&format!("{what}_max_ns"), latency.map(|l| l.max_ns)),
    ]
}

fn sample_rows(record: &RunRecord) -> impl Iterator<Item = Vec<Field>> {
    record.samples.iter().map(|sample| {
        let mut row = vec![
            text("experiment", &record.experiment.name),
            text("target", &record.run.target),
            text("target_kind", &record.run.target_kind),
            field("sample", sample.id),
            field("cell", sample.cell),
        ];
        if let Some(cell) = record.cells.iter().find(|c| c.id == sample.cell) {
            row.extend(level_fields(&record.experiment.factors, cell));
            row.extend(setting_fields(cell));
        }
        row.extend(course_fields(sample));
        row.extend(direction_fields("read", &sample.reads));
        row.extend(direction_fields("write", &sample.writes));
        row.extend(pace_fields(sample));
        row.extend(evidence_fields(sample));
        row
    })
}

fn level_fields(factors: &[String], cell: &Cell) -> Vec<Field> {
    factors
        .iter()
        .zip(&cell.levels)
        .map(|(factor, level)| text(&format!("level_{}", crate::plain::plain(factor)), level))
        .collect()
}

fn setting_fields(cell: &Cell) -> Vec<Field> {
    cell.settings()
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(value) => text(name, &value),
            other => field(name, other),
        })
        .collect()
}

fn course_fields(sample: &Sample) -> Vec<Field> {
    vec![
        field("block", sample.block),
        field("position", sample.position),
        field("warmup", sample.warmup),
        field("ok", sample.ok),
        text("started_utc", &sample.started_utc),
        text("ended", &sample.ended),
        field("throughput_mb_s", sample.throughput_mb_s()),
        field("iops", sample.iops()),
        field("elapsed_ns", sample.elapsed_ns),
        field("all_active_ns", sample.all_active_ns),
        field("end_sync_ns", sample.end_sync_ns),
        field("wall_ns", sample.wall_ns),
        field("clock_drift_ppm", sample.clock_drift_ppm),
        field("seed", sample.seed),
        field("syncs", sample.syncs),
        field("errors", sample.errors),
        optional_text("failure", sample.failure.as_deref()),
    ]
}

fn direction_fields(name: &str, direction: &Direction) -> Vec<Field> {
    let count = |what: &str, value: u64| field(&format!("{name}_{what}"), value);
    let mut fields = vec![
        count("requests", direction.requests),
        count("bytes", direction.bytes),
        count("short_transfers", direction.short_transfers),
    ];
    for (what, latency) in [
        ("latency", direction.latency),
        ("response", direction.response),
        ("lateness", direction.lateness),
    ] {
        fields.extend(latency_fields(&format!("{name}_{what}"), latency));
    }
    fields
}

fn latency_fields(name: &str, latency: Option<LatencySummary>) -> [Field; 6] {
    let quantile = |part: &str, of: fn(LatencySummary) -> u64| {
        field(&format!("{name}_{part}_ns"), latency.map(of))
    };
    [
        field(&format!("{name}_mean_ns"), latency.map(|l| l.mean_ns)),
        quantile("p50", |l| l.p50_ns),
        quantile("p90", |l| l.p90_ns),
        quantile("p99", |l| l.p99_ns),
        quantile("p999", |l| l.p999_ns),
        quantile("max", |l| l.max_ns),
    ]
}

fn pace_fields(sample: &Sample) -> [Field; 4] {
    let pace = sample.pace;
    [
        field("rate_wanted", pace.map(|p| p.rate_wanted)),
        field("rate_achieved", pace.map(|p| p.rate_achieved)),
        field("backlog_max", pace.map(|p| p.backlog_max)),
        field("backlog_end", pace.map(|p| p.backlog_end)),
    ]
}

fn evidence_fields(sample: &Sample) -> Vec<Field> {
    let mut fields: Vec<Field> = sample
        .counts()
        .into_iter()
        .map(|(name, value)| field(name, value))
        .collect();
    let missing = sample.counters.hardware.missing();
    fields.extend([
        field("hardware_missing", missing.map(|reason| reason.to_string())),
        text("effective", &sample.effective),
        text("served_by", name(sample.verdict.served_by)),
        field("device_fraction", sample.verdict.device_fraction),
        text("served_by_reason", &sample.verdict.reason),
    ]);
    fields
}

fn optional_text(name: &str, value: Option<&str>) -> Field {
    value.map_or_else(|| field(name, Value::Null), |value| text(name, value))
}
