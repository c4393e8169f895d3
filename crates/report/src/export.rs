//! All measurements as rows for other programs: cells, samples, their intervals, latency buckets.

pub(crate) mod cells;

use std::io::{self, Write};
use std::rc::Rc;

use hdrhistogram::Histogram;
use serde_json::Value;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::answer::RunAnswer;
use iolab_analysis::runs::RunName;
use iolab_record::column::{Access, Column as StoredColumn};
use iolab_record::tables::{CLIENT_SAMPLE, IntervalRow, PART, Rank, SAMPLE, SERIES};
use iolab_record::{Cell, Interval, Part, RunRecord, Sample, SampleSeries, TargetKind};
use iolab_workload::Error;
use iolab_workload::escape_control::escape_control;
use iolab_workload::group::ALL;

use crate::answer::{self, answer_field};
use crate::rows::{Field, Format, RowWriter, columns_of, field, text};

/// Writes one row per cell of each run, or per group of a cell and for all of them together: its summaries, verdict and flags. Each run comes with the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn cells(runs: &[(RunName, AnalysedRun)], to: &mut dyn Write) -> io::Result<()> {
    let rows = cells::rows(runs);
    let mut writer = RowWriter::new(to, Format::Csv, columns_of(&rows))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// A run with its answer.
pub type Exported<'a> = (RunName, &'a RunRecord, Option<&'a RunAnswer>);

/// A column that identifies the run of a row.
pub(crate) struct RunColumn {
    name: &'static str,
    doc: &'static str,
    /// Whether every run has a value.
    is_known: bool,
    value: fn(&RunName) -> Option<&str>,
}

/// The columns that identify the run of a row.
pub(crate) const RUN_COLUMNS: [RunColumn; 4] = [
    RunColumn {
        name: "run",
        doc: "the run: 16 hexadecimal digits, the same in every copy of its file",
        is_known: true,
        value: |run| Some(&run.id),
    },
    RunColumn {
        name: "file",
        doc: "its file, as it was named",
        is_known: true,
        value: |run| Some(&run.file),
    },
    RunColumn {
        name: "host",
        doc: "the host that planned it, where that is known",
        is_known: false,
        value: |run| run.host.as_deref(),
    },
    RunColumn {
        name: "run_started_utc",
        doc: "when it began: RFC 3339, UTC",
        is_known: true,
        value: |run| Some(&run.started_utc),
    },
];

/// Which run a row is of: `run`, `file`, `host` and `run_started_utc`.
pub(crate) fn run_fields(run: &RunName) -> [Field; 4] {
    RUN_COLUMNS.map(|column| optional_text(column.name, (column.value)(run)))
}

/// Writes one row per sample of each run, warm-up and failed trials included (columns `warmup`
/// and `ok` tell them). Each run comes with the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn samples(runs: &[Exported<'_>], format: Format, to: &mut dyn Write) -> io::Result<()> {
    // The first row of each run has all its columns.
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

/// Checks that a run has a question.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no run has a question.
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

/// Checks that a run has ranks.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no run was carried out by several processes.
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
        // Parts are sorted by sample, group and target.
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

/// The client of a rank in the same trial: the rank itself, or the one that represents its host.
fn client_of<'a>(record: &'a RunRecord, part: &Part) -> Option<&'a Sample> {
    let all = &record.client_samples;
    let first = all.partition_point(|own| own.id < part.sample);
    let end = all.partition_point(|own| own.id <= part.sample);
    let host = |rank: u32| record.ranks.get(rank as usize).map(|rank| rank.host);
    let of_trial = || all[first..end].iter();
    let itself = of_trial().find(|own| own.client == part.id.rank);
    itself.or_else(|| of_trial().find(|own| host(own.client) == host(part.id.rank)))
}

/// The latencies of one operation in one sample.
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
    /// Service times, response times or lateness, ns.
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

/// The time series of one trial.
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

/// The sample of each trial, followed by those of its groups.
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
        // Imported trials have only a command.
        "effective" if imported => optional_text(column.name, sample.command().as_deref()),
        _ => column_field(column, sample),
    }));
    row
}

/// The distinct targets of these numbers, and their kinds.
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

pub(crate) fn level_fields(factors: &[String], cell: &Cell) -> Vec<Field> {
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

/// A column of a run file in exports.
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
