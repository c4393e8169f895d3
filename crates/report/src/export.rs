//! All measurements as rows for other programs: cells, samples, their intervals, latency buckets.

pub(crate) mod answers;
pub(crate) mod cells;
mod over_time;
pub(crate) mod samples;
pub(crate) mod stages;

use std::io::{self, Write};
use std::rc::Rc;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::answer::RunAnswer;
use iolab_analysis::fitness::Answer;
use iolab_analysis::runs::RunName;
use iolab_record::column::Column as StoredColumn;
use iolab_record::tables::{CLIENT_SAMPLE, IntervalRow, PART, Rank, SERIES};
use iolab_record::{
    Cell, Part, RunRecord, Sample, SampleLatencyOverTime, SampleSeries, exported_settings,
};
use iolab_workload::Error;
use iolab_workload::histogram::{LatencyHistogram, counts};
use iolab_workload::settings::Setting;

use over_time::CourseInterval;

use crate::data_column::{DataColumn, column_value};
pub use crate::exported_run::Exported;
use crate::exported_run::{RUN_COLUMNS, level_fields, run_fields};
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

/// The columns that say which run a row is of.
fn run_columns<'c, R: 'c>(of: fn(&R) -> &RunName) -> Vec<DataColumn<'c, R>> {
    let made = RUN_COLUMNS.iter().map(|column| {
        let made = DataColumn::text(column.name, column.doc, move |row: &R| {
            (column.value)(of(row)).map(str::to_owned)
        });
        if column.is_known { made.known() } else { made }
    });
    made.collect()
}

/// What the run of a row answers to its question.
fn answer_column<'c, R: 'c>(
    of: fn(&R) -> Option<&RunAnswer>,
    has: fn(&R) -> bool,
) -> DataColumn<'c, R> {
    DataColumn::text(
        "answer",
        "what the run answers to its question; of a search `yes` where it found the limit",
        move |row: &R| of(row).map(|answer| answer.answer().name()),
    )
    .one_of(Answer::NAMES)
    .only_of(has)
}

/// The settings of the cell of a row.
fn setting_columns<'c, R: 'c>(of: fn(&R) -> Option<&Cell>) -> Vec<DataColumn<'c, R>> {
    let column = |setting: &'static Setting| {
        DataColumn::setting(setting, move |row: &R| {
            Some(of(row)?.value_in_force(setting).into())
        })
    };
    exported_settings().into_iter().map(column).collect()
}

/// Writes one row per sample of each run, warm-up and failed trials included (columns `warmup`
/// and `ok` tell them). Each run comes with the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn samples(runs: &[Exported<'_>], format: Format, to: &mut dyn Write) -> io::Result<()> {
    let columns = samples::columns();
    let rows = |run| samples::rows(&columns, run);
    // One row of each run shows all its columns.
    let names = columns_of(runs.iter().filter_map(|run| rows(run).next()));
    let mut writer = RowWriter::new(to, format, names)?;
    for row in runs.iter().flat_map(rows) {
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
    let rows: Vec<Vec<Field>> = runs.iter().flat_map(answers::rows).collect();
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

/// Refuses to write stages where no trial was traced.
///
/// # Errors
/// Of kind usage: no trial was traced.
pub fn check_stages(records: &[RunRecord]) -> iolab_workload::Result<()> {
    let mut samples = records.iter().flat_map(|record| &record.samples);
    match samples.any(|sample| sample.traced.is_some()) {
        true => Ok(()),
        false => {
            Err(Error::usage("no trial was traced").hint("measure with --set trace=true, as root"))
        }
    }
}

/// Writes one row per traced sample of each run: what tracing counted, and the stages of its requests; see [`check_stages`].
///
/// # Errors
/// When the output cannot be written.
pub fn stages(
    runs: &[(RunName, &RunRecord)],
    format: Format,
    to: &mut dyn Write,
) -> io::Result<()> {
    let rows: Vec<Vec<Field>> = runs
        .iter()
        .flat_map(|(name, record)| stages::rows(name, record))
        .collect();
    let mut writer = RowWriter::new(to, format, columns_of(&rows))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// Refuses to write rows of ranks where no run has any.
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
        let mut row = trial_fields(run, record, cell, sample);
        row.extend([
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
pub struct ExportedLatency {
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
    pub histogram: LatencyHistogram,
}

/// Writes one row per histogram bucket that counted anything: `low_ns` and `high_ns` are the
/// least and the greatest latency that fall into it.
///
/// # Errors
/// When the output cannot be written, or the first error that `rows` gives.
pub fn buckets<E: From<io::Error>>(
    rows: impl IntoIterator<Item = Result<ExportedLatency, E>>,
    format: Format,
    to: &mut dyn Write,
) -> Result<(), E> {
    let columns = [
        "run", "file", "host", "run_started_utc", "experiment", "sample", "direction", "low_ns",
        "high_ns", "count",
    ];
    let columns = columns.map(str::to_owned);
    let mut writer = RowWriter::new(to, format, columns.to_vec())?;
    for row in rows {
        let row = row?;
        let mut fields = run_fields(&row.run).to_vec();
        fields.extend([
            text("experiment", &row.experiment),
            field("sample", row.sample),
            text("direction", &row.direction),
        ]);
        let of_all = fields.len();
        for (value, count) in counts(&row.histogram) {
            fields.truncate(of_all);
            fields.extend([
                field("low_ns", row.histogram.lowest_equivalent(value)),
                field("high_ns", value),
                field("count", count),
            ]);
            writer.row(&fields)?;
        }
    }
    Ok(writer.finish()?)
}

/// The time series of one trial.
#[derive(Debug, Clone)]
pub struct ExportedInterval {
    /// The run.
    pub run: Rc<RunName>,
    /// Name of the experiment.
    pub experiment: String,
    /// The sample and its intervals.
    pub series: SampleSeries,
    /// Latencies over time of the trial; empty if it keeps none.
    pub latency: Vec<SampleLatencyOverTime>,
}

/// Writes one row per interval of each sample.
///
/// # Errors
/// When the output cannot be written, or the first error that `rows` gives.
pub fn series<E: From<io::Error>>(
    rows: impl IntoIterator<Item = Result<ExportedInterval, E>>,
    format: Format,
    to: &mut dyn Write,
) -> Result<(), E> {
    let columns = columns_of([interval_row(
        (&RunName::default(), "", 0),
        &CourseInterval::default(),
    )]);
    let mut writer = RowWriter::new(to, format, columns)?;
    for row in rows {
        let row = row?;
        let place = (&*row.run, row.experiment.as_str(), row.series.sample);
        for interval in over_time::joined(&row.series.series, &row.latency) {
            writer.row(&interval_row(place, &interval))?;
        }
    }
    Ok(writer.finish()?)
}

fn interval_row(
    (run, experiment, sample): (&RunName, &str, i64),
    interval: &CourseInterval,
) -> Vec<Field> {
    let row = IntervalRow {
        sample,
        interval: interval.done,
    };
    let shown = SERIES.columns.iter().filter(|column| column.exported);
    let mut fields = run_fields(run).to_vec();
    fields.extend([text("experiment", experiment), field("sample", sample)]);
    fields.extend(shown.map(|column| column_field(column, &row)));
    fields.extend(over_time::fields(interval));
    fields
}

/// Which trial a row is of: its run, its cell with the levels of the factors, its block, and whether it counts.
fn trial_fields(run: &RunName, record: &RunRecord, cell: &Cell, sample: &Sample) -> Vec<Field> {
    let mut fields = run_fields(run).to_vec();
    fields.extend([
        text("experiment", &record.experiment.name),
        field("sample", sample.id),
        field("cell", sample.cell),
    ]);
    fields.extend(level_fields(&record.experiment.factors, cell));
    fields.extend([
        field("block", sample.block),
        field("warmup", sample.warmup),
        field("ok", sample.ok),
    ]);
    fields
}

/// A column of a run file, as exports show it.
fn column_field<T>(column: &StoredColumn<T>, row: &T) -> Field {
    field(column.name, column_value(column, row))
}
