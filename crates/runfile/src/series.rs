//! Time series of trials: the rows of table `series`. A foreign file may have any number of them.

use std::path::Path;

use iolab_workload::Result;
use iolab_workload::series::{INTERVALS_MAX, Interval, Series};
use rusqlite::{Connection, params_from_iter};

use super::error::{damaged, fault};
use super::rows::{self, Reader};
use super::schema::ROWS_MAX;
use iolab_record::tables::{IntervalRow, SERIES};
use iolab_record::{Sample, SampleSeries};

/// Trials keep at least this many intervals, however many trials there are.
const INTERVALS_MIN: usize = 16;

/// The time series of a record's trials. Neighbouring intervals are merged if all would take too much memory.
pub(super) fn of_record(
    connection: &Connection,
    path: &Path,
    samples: &[Sample],
) -> Result<Vec<SampleSeries>> {
    let most = (ROWS_MAX / samples.len().max(1)).clamp(INTERVALS_MIN, INTERVALS_MAX);
    let known = |sample: i64| samples.binary_search_by_key(&sample, |s| s.id).is_ok();
    let mut all: Vec<SampleSeries> = Vec::new();
    let sql = "SELECT * FROM series ORDER BY sample_id, start_ns";
    each(connection, path, sql, None, |sample, series| {
        if known(sample) {
            let series = series.folded(most);
            all.push(SampleSeries { sample, series });
        }
    })?;
    Ok(all)
}

/// The numbers of all samples with a series, in order.
pub(super) fn keys(connection: &Connection, path: &Path) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT sample_id FROM series ORDER BY sample_id";
    let most = (ROWS_MAX, "series");
    rows::keys(connection, path, sql, most, |row| {
        row.get(0).map_err(|error| fault(path, &error))
    })
}

/// The series of one trial; without intervals if none were recorded.
pub(super) fn of_sample(connection: &Connection, path: &Path, sample: i64) -> Result<Series> {
    let mut found = Series::default();
    let sql = "SELECT * FROM series WHERE sample_id = ? ORDER BY start_ns";
    each(connection, path, sql, Some(sample), |_, series| {
        found = series;
    })?;
    Ok(found)
}

/// Passes on the series of one sample after another, from rows in order.
fn each(
    connection: &Connection,
    path: &Path,
    sql: &str,
    only: Option<i64>,
    mut take: impl FnMut(i64, Series),
) -> Result<()> {
    let wrong = |error| fault(path, &error);
    let mut statement = connection.prepare_cached(sql).map_err(wrong)?;
    let reader = Reader::new(&SERIES, &statement, path)?;
    let mut rows = statement.query(params_from_iter(only)).map_err(wrong)?;
    let mut of = None;
    let mut intervals: Vec<Interval> = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        let mut read = IntervalRow::default();
        reader.read(row, &mut read)?;
        if of != Some(read.sample)
            && let Some(sample) = of.replace(read.sample)
        {
            let intervals = std::mem::take(&mut intervals);
            take(sample, Series { intervals });
        }
        let expected = intervals.last().map_or(0, Interval::end_ns);
        if read.interval.start_ns != expected || intervals.len() == INTERVALS_MAX {
            let sample = read.sample;
            let what = format!("the intervals of sample {sample} do not follow each other");
            return Err(damaged(path, what));
        }
        intervals.push(read.interval);
    }
    if let Some(sample) = of {
        take(sample, Series { intervals });
    }
    Ok(())
}
