//! Reads the trials of a run: of many in several threads, because nearly all of a large file is in their table.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Builder, Scope};

use iolab_record::Sample;
use iolab_record::tables::SAMPLE;
use iolab_workload::Result;
use rusqlite::{Connection, OptionalExtension, Row};

use super::error::{damaged, fault};
use super::rows::Reader;
use super::schema::ROWS_MAX;
use super::table_reader::Tables;

/// Numbers of trials that a thread reads before it hands them on.
const PART: i64 = 500;
/// Fewer numbers are read by one thread, before others would have opened the file.
const SHARED_MIN: i64 = 8 * PART;
/// Most threads: collecting takes a tenth of the time of reading.
const THREADS_MAX: usize = 8;
/// Parts that a thread may be ahead of the collecting one.
const AHEAD: usize = 2;

/// The samples that a thread has read of one part.
type Part = Result<Vec<Sample>>;

/// All trials, in the order of their numbers; each must belong to one of `cells` cells.
pub(super) fn read(tables: &Tables<'_>, cells: usize) -> Result<Vec<Sample>> {
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
    let parts = || (least..=greatest).step_by(PART as usize);
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
        let rows = statement.query([first, first.saturating_add(PART)]);
        let mut samples = Vec::with_capacity(PART as usize);
        tables.each_row(&reader, rows.map_err(wrong)?, PART as usize, |row| {
            read_into(tables, &reader, row, cells, &mut samples)
        })?;
        if to.send(Ok(samples)).is_err() {
            break;
        }
    }
    Ok(())
}
