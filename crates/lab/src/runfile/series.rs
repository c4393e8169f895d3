//! Trials over time: the rows of table `series`. A stranger's file may hold any number of them.

use std::path::Path;

use iolab_engine::Result;
use iolab_engine::series::{Done, INTERVALS_MAX, Interval, Series};
use rusqlite::Connection;

use super::fault::{damaged, fault, too_large};
use super::fields::{Columns, Fields};
use super::read::ROWS_MAX;
use crate::record::{Sample, SampleSeries};

/// The schema that brought the table.
const SINCE: i64 = 4;
/// Fewest intervals that a trial is folded to, however many trials there are.
const INTERVALS_MIN: usize = 16;

/// The trials of a record over time, those that were recorded so; neighbouring intervals are folded where all would
/// take too much memory.
pub(super) fn of_record(
    connection: &Connection,
    path: &Path,
    version: i64,
    samples: &[Sample],
) -> Result<Vec<SampleSeries>> {
    if version < SINCE {
        return Ok(Vec::new());
    }
    let most = (ROWS_MAX / samples.len().max(1)).clamp(INTERVALS_MIN, INTERVALS_MAX);
    let mut all = Vec::new();
    for sample in samples {
        let series = of_sample(connection, path, version, sample.id)?.folded(most);
        if !series.intervals.is_empty() {
            all.push(SampleSeries {
                sample: sample.id,
                series,
            });
        }
    }
    Ok(all)
}

/// The numbers of all samples that have a series, in their order.
pub(super) fn keys(connection: &Connection, path: &Path, version: i64) -> Result<Vec<i64>> {
    if version < SINCE {
        return Ok(Vec::new());
    }
    let wrong = |error| fault(path, &error);
    let sql = "SELECT DISTINCT sample_id FROM series ORDER BY sample_id";
    let mut statement = connection.prepare(sql).map_err(wrong)?;
    let mut rows = statement.query([]).map_err(wrong)?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        if keys.len() == ROWS_MAX {
            let what = "it holds the series of too many samples".to_owned();
            return Err(too_large(path, what));
        }
        keys.push(row.get(0).map_err(wrong)?);
    }
    Ok(keys)
}

/// One trial over time; without intervals where none were recorded.
pub(super) fn of_sample(
    connection: &Connection,
    path: &Path,
    version: i64,
    sample: i64,
) -> Result<Series> {
    let wrong = |error| fault(path, &error);
    let sql = "SELECT * FROM series WHERE sample_id = ? ORDER BY start_ns";
    let mut statement = connection.prepare_cached(sql).map_err(wrong)?;
    let columns = Columns::default();
    let mut rows = statement.query([sample]).map_err(wrong)?;
    let mut intervals: Vec<Interval> = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        let interval = interval(&Fields::new(row, &columns, "series", path, version))?;
        let expected = intervals.last().map_or(0, Interval::end_ns);
        if interval.start_ns != expected || intervals.len() == INTERVALS_MAX {
            let what = format!("the intervals of sample {sample} do not follow each other");
            return Err(damaged(path, what));
        }
        intervals.push(interval);
    }
    Ok(Series { intervals })
}

fn interval(row: &Fields<'_, '_>) -> Result<Interval> {
    Ok(Interval {
        start_ns: row.int("start_ns")?,
        length_ns: row.positive("length_ns")?,
        done: Done {
            read_requests: row.int("read_requests")?,
            read_bytes: row.int("read_bytes")?,
            write_requests: row.int("write_requests")?,
            write_bytes: row.int("write_bytes")?,
        },
    })
}
