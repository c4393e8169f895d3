//! Everything measured, as rows for other programs: cells, samples, their intervals, latency buckets.

use std::io::{self, Write};
use std::rc::Rc;

use hdrhistogram::Histogram;
use serde_json::Value;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{Analysis, CellAnalysis, CellDisturbance, Latency};
use iolab_analysis::answer::RunAnswer;
use iolab_analysis::runs::RunName;
use iolab_record::column::{Access, Column as StoredColumn};
use iolab_record::tables::{CLIENT_SAMPLE, IntervalRow, PART, Rank, SAMPLE, SERIES};
use iolab_record::{Cell, EndedBy, Interval, Part, RunRecord, Sample, SampleSeries, TargetKind};
use iolab_stats::Summary;
use iolab_workload::Error;
use iolab_workload::escape_control::escape_control;
use iolab_workload::group::ALL;

use crate::answer::{self, answer_field};
use crate::clients;
use crate::rows::{Field, Format, RowWriter, columns_of, field, text};

/// Writes one row per cell of each run, or per group of a cell and for all of them together: its summaries, verdict and flags. Each run comes with the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn cells<'a>(
    runs: impl IntoIterator<Item = &'a (RunName, AnalysedRun)>,
    format: Format,
    to: &mut dyn Write,
) -> io::Result<()> {
    let rows: Vec<Vec<Field>> = runs
        .into_iter()
        .flat_map(|(name, run)| {
            let analysis = run.analysis();
            let row = move |cell, group| {
                let mut row = run_fields(name).to_vec();
                row.extend(answer_field(run.answer()));
                row.extend(cell_row(analysis, cell, group));
                row
            };
            analysis.cells.iter().flat_map(move |cell| {
                let groups = cell.groups.iter();
                let groups = groups.map(move |group| row(&group.cell, Some(&group.name)));
                let whole = cell.groups.is_empty().then(|| row(cell, None));
                whole.into_iter().chain(groups)
            })
        })
        .collect();
    let mut writer = RowWriter::new(to, format, columns_of(&rows))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// A run with what it answers to its question.
pub type Exported<'a> = (RunName, &'a RunRecord, Option<&'a RunAnswer>);

/// Which run a row is of: `run`, `file`, `host` and `run_started_utc`.
pub(crate) fn run_fields(run: &RunName) -> [Field; 4] {
    let host = run.host.as_deref();
    [
        text("run", &run.id),
        text("file", &run.file),
        field("host", host.map(|host| escape_control(host).into_owned())),
        text("run_started_utc", &run.started_utc),
    ]
}

/// Writes one row per sample of each run, warm-up and failed trials included (columns `warmup`
/// and `ok` tell them). Each run comes with the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn samples(runs: &[Exported<'_>], format: Format, to: &mut dyn Write) -> io::Result<()> {
    // One row of each run shows all its columns.
    let columns = columns_of(runs.iter().filter_map(|run| sample_rows(run).next()));
    let mut writer = RowWriter::new(to, format, columns)?;
    for row in runs.iter().flat_map(sample_rows) {
        writer.row(&row)?;
    }
    writer.finish()
}

/// Writes one row per level that a run was asked about, or of a search one: what was found, and the answer. Each run comes with
/// the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn answers(runs: &[Exported<'_>], format: Format, to: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Vec<Field>> = runs.iter().flat_map(answer::rows).collect();
    let mut writer = RowWriter::new(to, format, columns_of(&rows))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// Refuses to write answers where no run was asked anything.
///
/// # Errors
/// Of kind usage: no run has a question.
pub fn check_answers(records: &[RunRecord]) -> iolab_workload::Result<()> {
    match records
        .iter()
        .all(|record| record.experiment.asked.is_none())
    {
        true => Err(Error::usage("no run was asked a question")
            .hint("iolab fit, and iolab run --slo, ask one")),
        false => Ok(()),
    }
}

/// Refuses to write rows of ranks where no run has any.
///
/// # Errors
/// Of kind usage: no run was carried out by several processes.
pub fn check_ranks(records: &[RunRecord]) -> iolab_workload::Result<()> {
    match records.iter().all(|record| record.ranks.is_empty()) {
        true => Err(Rank::none()),
        false => Ok(()),
    }
}

/// Writes one row per sample and rank of each run that several processes carried out; see [`check_ranks`].
///
/// # Errors
/// When the output cannot be written.
pub fn ranks(runs: &[(RunName, &RunRecord)], format: Format, to: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Vec<Field>> = runs.iter().flat_map(rank_rows).collect();
    let mut writer = RowWriter::new(to, format, columns_of(&rows))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

fn rank_rows((run, record): &(RunName, &RunRecord)) -> Vec<Vec<Field>> {
    let parts = record.parts.iter().filter(|_| !record.ranks.is_empty());
    let row = |part: &Part| {
        // In the order of their numbers, all three.
        let sample = record.samples.binary_search_by_key(&part.sample, |s| s.id);
        let sample = &record.samples[sample.ok()?];
        let cell = record.cells.iter().find(|c| c.id == sample.cell)?;
        let rank = record.ranks.get(part.id.rank as usize)?;
        let mut row = run_fields(run).to_vec();
        row.extend([
            text("experiment", &record.experiment.name),
            field("sample", sample.id),
            field("cell", sample.cell),
        ]);
        row.extend(level_fields(&record.experiment.factors, cell));
        row.extend([
            field("block", sample.block),
            field("warmup", sample.warmup),
            field("ok", sample.ok),
            field("rank", part.id.rank),
            field("rank_host_id", rank.host),
            text("rank_host", &rank.name),
        ]);
        let numbers = PART.columns.iter();
        let numbers = numbers.filter(|column| !column.name.ends_with("_id"));
        row.extend(numbers.map(|column| column_field(column, part)));
        let client = client_of(record, part);
        row.push(field("client", client.map(|client| client.client)));
        let evidence = CLIENT_SAMPLE.columns.iter();
        let evidence = evidence.filter(|column| !column.name.ends_with("_id"));
        row.extend(client.into_iter().flat_map(|client| {
            evidence.clone().map(move |column| {
                let (name, value) = column_field(column, client);
                (format!("client_{name}"), value)
            })
        }));
        Some(row)
    };
    parts.filter_map(row).collect()
}

/// What the client of a rank did and saw in the same trial: the rank itself, or the one that stands for its host.
fn client_of<'a>(record: &'a RunRecord, part: &Part) -> Option<&'a Sample> {
    let all = &record.client_samples;
    let first = all.partition_point(|own| own.id < part.sample);
    let end = all.partition_point(|own| own.id <= part.sample);
    let host = |rank: u32| record.ranks.get(rank as usize).map(|rank| rank.host);
    let of_trial = || all[first..end].iter();
    let itself = of_trial().find(|own| own.client == part.id.rank);
    itself.or_else(|| of_trial().find(|own| host(own.client) == host(part.id.rank)))
}

/// The latencies of one direction of one sample.
#[derive(Debug, Clone)]
pub struct LatencyRow {
    /// The run.
    pub run: Rc<RunName>,
    /// Name of the experiment.
    pub experiment: String,
    /// Id of the sample in its run file.
    pub sample: i64,
    /// `read` or `write`, or one of the two with `-response` or `-lateness`; of a group with its name in front, as in
    /// `reader.read-response`.
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
        "run",
        "file",
        "host",
        "run_started_utc",
        "experiment",
        "sample",
        "direction",
        "low_ns",
        "high_ns",
        "count",
    ];
    let columns = columns.map(str::to_owned);
    let mut writer = RowWriter::new(to, format, columns.to_vec())?;
    for row in rows {
        let row = row?;
        for bucket in row.histogram.iter_recorded() {
            let value = bucket.value_iterated_to();
            let mut fields = run_fields(&row.run).to_vec();
            fields.extend([
                text("experiment", &row.experiment),
                field("sample", row.sample),
                text("direction", &row.direction),
                field("low_ns", row.histogram.lowest_equivalent(value)),
                field("high_ns", row.histogram.highest_equivalent(value)),
                field("count", bucket.count_since_last_iteration()),
            ]);
            writer.row(&fields)?;
        }
    }
    Ok(writer.finish()?)
}

/// One trial over time.
#[derive(Debug, Clone)]
pub struct SeriesRow {
    /// The run.
    pub run: Rc<RunName>,
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
    let columns = columns_of([interval_row(
        &RunName::default(),
        "",
        0,
        &Interval::default(),
    )]);
    let mut writer = RowWriter::new(to, format, columns)?;
    for row in rows {
        let row = row?;
        for interval in &row.series.series.intervals {
            let sample = row.series.sample;
            writer.row(&interval_row(&row.run, &row.experiment, sample, interval))?;
        }
    }
    Ok(writer.finish()?)
}

fn interval_row(run: &RunName, experiment: &str, sample: i64, interval: &Interval) -> Vec<Field> {
    let row = IntervalRow {
        sample,
        interval: *interval,
    };
    let shown = SERIES.columns.iter().filter(|column| column.exported);
    let mut fields = run_fields(run).to_vec();
    fields.extend([text("experiment", experiment), field("sample", sample)]);
    fields.extend(shown.map(|column| column_field(column, &row)));
    fields
}

fn cell_row(analysis: &Analysis, cell: &CellAnalysis, group: Option<&String>) -> Vec<Field> {
    let mut row = vec![text("experiment", &analysis.experiment)];
    row.extend(level_fields(&analysis.factors, &cell.cell));
    row.extend(group.map(|group| text("group", group)));
    row.extend(setting_fields(&cell.cell));
    row.push(field("n", cell.n));
    row.push(field("failed", cell.failed));
    row.extend(summary_fields("throughput_mb_s", cell.throughput.as_ref()));
    row.extend(summary_fields("iops", cell.iops.as_ref()));
    row.extend(summary_fields("latency_p50_ns", cell.latency_p50.as_ref()));
    row.extend(summary_fields("elapsed_ns", cell.elapsed.as_ref()));
    for (name, summary) in [
        ("latency_p90_ns", &cell.tails.p90),
        ("latency_p99_ns", &cell.tails.p99),
        ("latency_p999_ns", &cell.tails.p999),
        ("latency_max_ns", &cell.tails.max),
        ("cpu_ns_per_request", &cell.tails.cpu),
    ] {
        row.extend(summary_fields(name, summary.as_ref()));
    }
    row.extend(rank_fields(analysis, cell));
    row.extend(disturbance_fields(&cell.disturbance));
    let at_once = cell.concurrency;
    let efficiency = cell.efficiency;
    row.extend([
        field("in_flight_asked", at_once.map(|c| c.asked)),
        field("in_flight_median", at_once.and_then(|c| c.in_flight)),
        field("device_in_flight_median", at_once.and_then(|c| c.at_device)),
        field("iops_over_one_in_flight", at_once.and_then(|c| c.served)),
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
    let rate_report = cell.rate_report.as_ref();
    row.extend([
        field("latency_max_ns", cell.latency.map(|l| l.max_ns)),
        field("rate_wanted", rate_report.map(|p| p.rate_wanted)),
        field("rate_achieved_median", rate_report.map(|p| p.rate_achieved)),
        field("rate_not_held_trials", rate_report.map(|p| p.not_held)),
        field("backlog_max", rate_report.map(|p| p.backlog_max)),
        field("backlog_end_max", rate_report.map(|p| p.backlog_end)),
    ]);
    row.extend(quantile_fields(
        "service",
        rate_report.and_then(|p| p.service),
    ));
    row.extend(quantile_fields(
        "lateness",
        rate_report.and_then(|p| p.lateness),
    ));
    row.extend(quantile_fields("sync", cell.sync));
    row.extend([
        field("served_by", served.map(ToString::to_string)),
        field("device_fraction", served.and_then(|s| s.device_fraction)),
        text("response", &analysis.asked()),
        field("precision", cell.precision),
        field("precision_goal", analysis.precision_goal),
        field("ended_by", cell.cell.ended_by.map(EndedBy::name)),
        field("flags", flags.join(", ")),
    ]);
    row
}

/// What the processes of a run across hosts did; nothing where there was one.
fn rank_fields(analysis: &Analysis, cell: &CellAnalysis) -> Vec<Field> {
    if !analysis.spans_ranks() {
        return Vec::new();
    }
    let ranks = cell.ranks.as_ref();
    let mut fields = vec![
        field("ranks", ranks.map(|r| r.ranks)),
        field("hosts", ranks.map(|r| r.hosts)),
        field("clock_bound", ranks.map(|r| r.clock_bound)),
    ];
    fields.extend(summary_fields(
        "all_active_mb_s",
        ranks.and_then(|r| r.all_active.as_ref()),
    ));
    fields.extend([
        field("all_active_clock_bound", ranks.map(|r| r.all_active_bound)),
        field("start_skew_ns_max", ranks.map(|r| r.start_skew_ns)),
        field("clients", clients::objects(cell)),
    ]);
    fields
}

fn disturbance_fields(around: &CellDisturbance) -> Vec<Field> {
    let groups = around.split.map(|split| split.whole.trials);
    let mut fields = vec![
        field("other_traffic", around.others),
        field("read_ahead", around.read_ahead),
        field("device_ios_per_request_median", around.ios_per_request),
        field("trials_with_fewer_device_ios", groups),
    ];
    fields.extend(clients::stall_fields(around));
    fields.extend([
        field("cpu_quota_wait", around.quota_wait),
        field("preemptions_per_s", around.preemptions),
        field("suspended_ns", around.suspended_ns),
        field("owed_sync_ns_median", around.owed_sync_ns),
        field("empty_median", around.empty),
    ]);
    fields
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

/// The sample of each trial, and behind it what each group did where it had several.
fn sample_rows((run, record, answer): &Exported<'_>) -> impl Iterator<Item = Vec<Field>> {
    record.samples.iter().flat_map(move |sample| {
        let cell = record.cells.iter().find(|c| c.id == sample.cell);
        std::iter::once(sample)
            .chain(record.groups_of(sample.id))
            .map(move |sample| sample_row((run, *answer), record, cell, sample))
    })
}

fn sample_row(
    (run, answer): (&RunName, Option<&RunAnswer>),
    record: &RunRecord,
    cell: Option<&Cell>,
    sample: &Sample,
) -> Vec<Field> {
    let mut row = run_fields(run).to_vec();
    row.extend(answer_field(answer));
    let groups = cell.map_or(&[][..], |cell| &cell.spec.groups);
    let group = groups.get((sample.group as usize).wrapping_sub(1));
    let numbers = match (group, cell) {
        (Some(group), _) => vec![record.target_number(group.spec.target.as_ref())],
        (None, Some(cell)) => record.targets_of(cell),
        (None, None) => vec![0],
    };
    let (targets, kinds) = named_targets(record, &numbers);
    row.extend([
        text("experiment", &record.experiment.name),
        text("target", &targets),
        text("target_kind", &kinds),
        field("sample", sample.id),
        field("cell", sample.cell),
    ]);
    if let Some(cell) = cell {
        row.extend(level_fields(&record.experiment.factors, cell));
        if !groups.is_empty() {
            row.push(text("group", group.map_or(ALL, |group| &group.name)));
        }
        match group {
            Some(group) => row.extend(setting_fields(&Cell {
                spec: group.spec.clone(),
                ..cell.clone()
            })),
            None => row.extend(setting_fields(cell)),
        }
    }
    let imported = record.run.target_kind == TargetKind::Imported;
    let shown = SAMPLE.columns.iter().filter(|column| column.exported);
    row.extend(shown.map(|column| match column.name {
        // There is nothing but a command then.
        "effective" if imported => optional_text(column.name, sample.command().as_deref()),
        _ => column_field(column, sample),
    }));
    row
}

/// The targets of these numbers, and what kinds they are of, each once.
fn named_targets(record: &RunRecord, numbers: &[usize]) -> (String, String) {
    let (mut targets, mut kinds): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for number in numbers {
        let further = number.checked_sub(1);
        let further = further.and_then(|number| record.further_targets.get(number));
        let (target, kind) = match further {
            Some(further) => (&further.target, further.kind.name()),
            None => (&record.run.target, record.run.target_kind.name()),
        };
        targets.push(target);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    (targets.join(", "), kinds.join(", "))
}

fn level_fields(factors: &[String], cell: &Cell) -> Vec<Field> {
    factors
        .iter()
        .zip(&cell.levels)
        .map(|(factor, level)| text(&format!("level_{}", escape_control(factor)), level))
        .collect()
}

fn setting_fields(cell: &Cell) -> Vec<Field> {
    cell.exported()
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(value) => text(name, &value),
            other => field(name, other),
        })
        .collect()
}

/// A column of a run file, as exports show it.
fn column_field<T>(column: &StoredColumn<T>, row: &T) -> Field {
    let value = match &column.access {
        Access::Number(get, _) => get(row).into(),
        Access::Real(get, _) => get(row).into(),
        Access::Flag(get, _) => get(row).into(),
        Access::Text(get, _) => return optional_text(column.name, get(row).as_deref()),
        Access::Setting(setting, get, _) => setting.value(get(row)).into(),
        Access::Bytes(..) => Value::Null,
    };
    field(column.name, value)
}

fn optional_text(name: &str, value: Option<&str>) -> Field {
    value.map_or_else(|| field(name, Value::Null), |value| text(name, value))
}
