//! Converts rows to plain values, and checks each, as the file may come from elsewhere; many trials in several
//! threads.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Builder, Scope};

use rusqlite::{Connection, OptionalExtension, Row};

use super::error::{damaged, fault, no_trials, too_large};
use super::layout::ROWS_MAX;
use super::opening::{FileIdentity, read_checked, snapshot};
use super::rows::Reader;
use super::table_reader::Tables;
use super::{over_time, question, witness};
use iolab_record::tables::{
    CELL, CELL_GROUP, CLIENT_SAMPLE, CellRow, DRIVE_LOG, ENVIRONMENT, EVENT, EXPERIMENT, Fact,
    GROUP_SAMPLE, GroupRow, PART, PREPARATION, QUESTION, QUESTION_LEVEL, RANK, RUN, SAMPLE, TARGET,
};
use iolab_record::witness::Witnessed;
use iolab_record::{Cell, DriveLog, ExperimentRecord, RunRecord, Sample};
use iolab_workload::Result;
use iolab_workload::group::{GroupSpec, check_group_name};
use iolab_workload::names::check_file_name;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Rate;

/// Most judgements of levels, one per level and trial: the longest load of the largest requirement, and a reserve.
const JUDGED_MAX: usize = 250_000;

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An experiment with its trials.
    Run(Box<RunRecord>),
    /// An observation of a program or of devices.
    Witness(Box<Witnessed>),
}

/// Reads a run file without latencies. The file is not changed; it may be incomplete, because it is being written or its process
/// was killed.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no such file, not a run file, written by a newer iolab, damaged or truncated.
pub fn read_content(path: &Path) -> Result<Content> {
    read_checked(path, |connection, file| {
        content_of_snapshot(connection, path, file)
    })
}

/// Reads a run file that holds trials, as [`read_content`] does.
///
/// # Errors
///
/// As [`read_content`]; also if the file holds an observation of `iolab witness`.
pub fn read(path: &Path) -> Result<RunRecord> {
    match read_content(path)? {
        Content::Run(record) => Ok(*record),
        Content::Witness(_) => Err(no_trials(path)),
    }
}

/// Reads all tables except the latencies.
pub(super) fn content(connection: &Connection, path: &Path) -> Result<Content> {
    let _snapshot = snapshot(connection, path)?;
    content_of_snapshot(connection, path, None)
}

/// As [`content`], with a snapshot held; `file` is the file that further threads may open.
fn content_of_snapshot(
    connection: &Connection,
    path: &Path,
    file: Option<FileIdentity>,
) -> Result<Content> {
    let tables = Tables {
        connection,
        path,
        file,
        text: &AtomicU64::new(0),
    };
    if let Some(witnessed) = witness::read(&tables)? {
        return Ok(Content::Witness(Box::new(witnessed)));
    }
    record(&tables).map(|record| Content::Run(Box::new(record)))
}

/// The run in a file.
fn record(tables: &Tables<'_>) -> Result<RunRecord> {
    let (connection, path) = (tables.connection, tables.path);
    let mut experiment: ExperimentRecord = tables.only(&EXPERIMENT)?;
    experiment.asked = question::of_rows(
        path,
        tables.all(&QUESTION, "id")?,
        tables.all(&QUESTION_LEVEL, "id")?,
    )?;
    check_file_name(&experiment.name)
        .map_err(|_| damaged(path, "name in table experiment cannot be a file's"))?;
    let mut cells = cells(tables, &experiment)?;
    groups(tables, &mut cells)?;
    let in_plan = |cell: i64| usize::try_from(cell).is_ok_and(|cell| cell < cells.len());
    let mut samples = read_trials(tables, cells.len())?;
    drives(tables, &mut samples)?;
    let levels = experiment.asked.as_ref().map_or(0, |q| q.needs.len());
    if samples.len().saturating_mul(levels) > JUDGED_MAX {
        let what = format!("it asks {levels} levels of {} trials", samples.len());
        return Err(too_large(path, what));
    }
    let group_samples = group_samples(tables, &cells, &samples)?;
    let client_samples = client_samples(tables, &samples)?;
    let events = tables.all(&EVENT, "id")?;
    let stray = events.iter().filter_map(|event| event.cell);
    if let Some(cell) = stray.into_iter().find(|cell| !in_plan(*cell)) {
        return Err(damaged(
            path,
            format!("an event is of an unknown cell {cell}"),
        ));
    }
    let facts: Vec<Fact> = tables.all(&ENVIRONMENT, "host_id, position")?;
    let (own, further_hosts): (Vec<Fact>, Vec<Fact>) =
        facts.into_iter().partition(|fact| fact.host == 0);
    let mut record = RunRecord {
        run: tables.only(&RUN)?,
        environment: own.into_iter().map(|fact| (fact.key, fact.value)).collect(),
        further_hosts,
        further_targets: tables.all(&TARGET, "id")?,
        ranks: tables.all(&RANK, "id")?,
        parts: tables.all(&PART, "sample_id, group_id, rank_id, target_id")?,
        series: over_time::of_record(connection, path, &samples)?,
        experiment,
        cells,
        samples,
        group_samples,
        client_samples,
        preparation: tables.all(&PREPARATION, "id")?,
        events,
    };
    record.span_ranks();
    Ok(record)
}

/// All cells, in the order of their ids.
fn cells(tables: &Tables<'_>, experiment: &ExperimentRecord) -> Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = Vec::new();
    tables.each(&CELL, "id", |reader, row| {
        let mut read = CellRow {
            cell: Cell::default(),
            levels: String::new(),
        };
        reader.read(row, &mut read)?;
        let mut cell = read.cell;
        let wrong = |what: String| damaged(tables.path, what);
        cell.levels = levels(&read.levels, &experiment.factors)
            .ok_or_else(|| wrong(format!("levels in table cell is {:?}", read.levels)))?;
        // Only a group may have no requests.
        let idle = cell.spec.trial.rate == Some(Rate::ZERO);
        if has_no_size(&cell.spec) || idle || cell.id != cells.len() as i64 {
            return Err(wrong(format!(
                "cell {} is missing, or is of size 0",
                cells.len()
            )));
        }
        cells.push(cell);
        Ok(())
    })?;
    Ok(cells)
}

/// Whether a size or a count, which is 0 for no user, is 0.
fn has_no_size(spec: &CellSpec) -> bool {
    let trial = &spec.trial;
    let counts = [trial.threads, trial.depth].map(u64::from);
    [trial.bs, trial.region].contains(&0) || counts.contains(&0)
}

/// Reads the groups of the cells.
fn groups(tables: &Tables<'_>, cells: &mut [Cell]) -> Result<()> {
    let rows: Vec<GroupRow> = tables.all(&CELL_GROUP, "cell_id, group_id")?;
    for group in rows {
        let wrong = |what: &str| damaged(tables.path, format!("group {} {what}", group.name));
        let place = usize::try_from(group.cell).ok();
        let cell = place.and_then(|place| cells.get_mut(place));
        let cell = cell.ok_or_else(|| wrong("is of an unknown cell"))?;
        if has_no_size(&group.spec) || cell.spec.groups.len() + 1 != group.id as usize {
            return Err(wrong("has no place, or is of size 0"));
        }
        check_group_name(&group.name).map_err(|_| wrong("cannot be called so"))?;
        cell.spec.groups.push(GroupSpec {
            name: group.name,
            spec: group.spec,
        });
    }
    Ok(())
}

/// The samples of groups; each must belong to an existing sample.
fn group_samples(tables: &Tables<'_>, cells: &[Cell], samples: &[Sample]) -> Result<Vec<Sample>> {
    let mut found: Vec<Sample> = tables.all(&GROUP_SAMPLE, "sample_id, group_id")?;
    for own in &mut found {
        let trial = &samples[place_of(tables, samples, own.id)?];
        let groups = cells.get(trial.cell as usize);
        if groups.is_none_or(|cell| own.group as usize > cell.spec.groups.len()) {
            let what = format!("group {} of sample {} is unknown", own.group, own.id);
            return Err(damaged(tables.path, what));
        }
        own.complete_from(trial);
    }
    Ok(found)
}

/// The samples of clients; each must belong to an existing sample.
fn client_samples(tables: &Tables<'_>, samples: &[Sample]) -> Result<Vec<Sample>> {
    let mut found: Vec<Sample> = tables.all(&CLIENT_SAMPLE, "sample_id, rank_id")?;
    for own in &mut found {
        let place = place_of(tables, samples, own.id)?;
        own.take_place_of(&samples[place]);
    }
    Ok(found)
}

/// Adds what drives counted to the samples that it belongs to.
fn drives(tables: &Tables<'_>, samples: &mut [Sample]) -> Result<()> {
    let rows: Vec<DriveLog> = tables.all(&DRIVE_LOG, "sample_id, drive")?;
    for drive in rows {
        let place = place_of(tables, samples, drive.sample)?;
        samples[place].drives.push(drive);
    }
    Ok(())
}

/// The place of the sample that a row is of.
fn place_of(tables: &Tables<'_>, samples: &[Sample], id: i64) -> Result<usize> {
    let place = samples.binary_search_by_key(&id, |sample| sample.id);
    place.map_err(|_| damaged(tables.path, format!("a row is of an unknown sample {id}")))
}

/// The level of each factor, in the order of the factors; `None` if any is missing or extra.
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

/// Numbers of trials that a thread reads before it hands them on.
const ROWS_AT_ONCE: i64 = 500;

/// Fewer numbers are read by one thread, before others would have opened the file.
const SHARED_MIN: i64 = 8 * ROWS_AT_ONCE;

/// Most threads: collecting takes a tenth of the time of reading.
const THREADS_MAX: usize = 8;

/// Parts that a thread may be ahead of the collecting one.
const AHEAD: usize = 2;

/// The samples that a thread has read of one part.
type Part = Result<Vec<Sample>>;

/// All trials, in the order of their numbers; each must belong to one of `cells` cells.
fn read_trials(tables: &Tables<'_>, cells: usize) -> Result<Vec<Sample>> {
    if let Some(numbers) = numbers_to_share(tables)?
        && let Some(samples) = read_shared(tables, cells, numbers)
    {
        return samples;
    }
    let mut samples = Vec::new();
    tables.each(&SAMPLE, "id", |reader, row| {
        read_into(tables, reader, row, cells, &mut samples)
    })?;
    Ok(samples)
}

/// Adds one trial.
fn read_into(
    tables: &Tables<'_>,
    reader: &Reader<'_, Sample>,
    row: &Row<'_>,
    cells: usize,
    samples: &mut Vec<Sample>,
) -> Result<()> {
    // Read where it stays: a sample is large, and there may be many.
    let sample = samples.push_mut(Sample::default());
    reader.read(row, sample)?;
    let (id, path) = (sample.id, tables.path);
    let place = usize::try_from(sample.cell).ok();
    if place.is_none_or(|place| place >= cells) {
        let cell = sample.cell;
        let what = format!("sample {id} is of an unknown cell {cell}");
        return Err(damaged(path, what));
    }
    let verified = sample.verified.unwrap_or_default();
    if verified
        .faults
        .iter()
        .any(|faults| faults.blocks > verified.blocks)
    {
        let what = format!("sample {id} has more faulty blocks than were read back");
        return Err(damaged(path, what));
    }
    Ok(())
}

/// The least and the greatest number of a trial if several threads are to read them: many, close to each other, in an
/// unchanging file. With the lock of a reader, which is held here, nothing is written to it.
fn numbers_to_share(tables: &Tables<'_>) -> Result<Option<(i64, i64)>> {
    let query = |sql: &str| {
        let row = tables.connection.query_row(sql, [], |row| row.get(0));
        row.optional().map_err(|error| fault(tables.path, &error))
    };
    let least: Option<i64> = query("SELECT id FROM sample ORDER BY id LIMIT 1")?;
    let greatest: Option<i64> = query("SELECT id FROM sample ORDER BY id DESC LIMIT 1")?;
    let close = least.zip(greatest).filter(|(least, greatest)| {
        let span = greatest.checked_sub(*least);
        span.is_some_and(|span| (SHARED_MIN..ROWS_MAX as i64).contains(&span))
    });
    Ok(close)
}

/// Reads the trials with these numbers in several threads; `None` if there cannot be several.
fn read_shared(
    tables: &Tables<'_>,
    cells: usize,
    (least, greatest): (i64, i64),
) -> Option<Result<Vec<Sample>>> {
    let threads = thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX));
    let file = tables.file?;
    let connections = (0..threads).map(|_| file.opened_again(tables.path));
    let connections: Vec<Connection> = connections.collect::<Option<_>>()?;
    if connections.len() < 2 {
        return None;
    }
    let parts = || (least..=greatest).step_by(ROWS_AT_ONCE as usize);
    thread::scope(|scope| {
        let starts = (0..).zip(connections);
        let received = starts.map(|(number, connection)| {
            let own = parts().skip(number).step_by(threads);
            start(scope, connection, tables, cells, own)
        });
        let received: Vec<Receiver<Part>> = received.collect::<io::Result<_>>().ok()?;
        let mut samples = Vec::new();
        for (_, from) in parts().zip(received.iter().cycle()) {
            // A thread ends early with an error alone, which came first.
            match from.recv().ok()? {
                Ok(mut part) => samples.append(&mut part),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(samples))
    })
}

/// Starts a thread that reads the parts that begin with these numbers.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    connection: Connection,
    tables: &'scope Tables<'_>,
    cells: usize,
    parts: impl Iterator<Item = i64> + Send + 'scope,
) -> io::Result<Receiver<Part>> {
    let (sent, received) = sync_channel(AHEAD);
    let (path, text) = (tables.path, tables.text);
    let work = move || {
        let own = Tables {
            connection: &connection,
            path,
            file: None,
            text,
        };
        if let Err(error) = send_parts(&own, cells, parts, &sent) {
            // A receiver that is gone has another error already.
            let _ = sent.send(Err(error));
        }
    };
    Builder::new().spawn_scoped(scope, work)?;
    Ok(received)
}

/// Sends the samples of each part, as long as they are received.
fn send_parts(
    tables: &Tables<'_>,
    cells: usize,
    parts: impl Iterator<Item = i64>,
    to: &SyncSender<Part>,
) -> Result<()> {
    let wrong = |error| fault(tables.path, &error);
    let sql = "SELECT * FROM sample WHERE id >= ?1 AND id < ?2 ORDER BY id";
    let mut statement = tables.connection.prepare(sql).map_err(wrong)?;
    let reader = Reader::new(&SAMPLE, &statement, tables.path)?;
    for first in parts {
        let rows = statement.query([first, first.saturating_add(ROWS_AT_ONCE)]);
        let mut samples = Vec::with_capacity(ROWS_AT_ONCE as usize);
        tables.each_row(
            &reader,
            rows.map_err(wrong)?,
            ROWS_AT_ONCE as usize,
            |row| read_into(tables, &reader, row, cells, &mut samples),
        )?;
        if to.send(Ok(samples)).is_err() {
            break;
        }
    }
    Ok(())
}
