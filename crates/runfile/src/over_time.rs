//! The course of trials over time, and other rows too large to read at once, one after another.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use rusqlite::{Connection, Params, params, params_from_iter};

use super::error::{damaged, fault, invalid, too_large};
use super::layout::ROWS_MAX;
use super::opening::open_to_read;
use super::rows::{self, Reader};
use super::table_reader::Tables;
use iolab_record::tables::{
    IntervalRow, LATENCY, LATENCY_OVER_TIME, LatencyOverTimeRow, LatencyRow, SERIES,
};
use iolab_record::{
    LatencyOf, Operation, RequestTime, Sample, SampleLatency, SampleLatencyOverTime, SampleSeries,
    Series,
};
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::series::{INTERVALS_MAX, Interval};
use iolab_workload::{Result, histogram};

/// Most memory that all latencies over time of a file take at once, bytes.
const MEMORY_MAX: usize = 512 << 20;

/// A trial over time, to be stored with its sample.
#[derive(Debug, Clone, Copy)]
pub struct TrialCourse<'a> {
    /// Requests and bytes.
    pub series: &'a Series,
    /// Latencies of each group (0 if the cell has none) and operation; empty if the trial keeps none.
    pub latency: &'a [(u32, Operation, RequestTime, &'a LatencyOverTime)],
}

impl<'a> From<&'a Series> for TrialCourse<'a> {
    fn from(series: &'a Series) -> Self {
        Self {
            series,
            latency: &[],
        }
    }
}

impl TrialCourse<'_> {
    /// Stores it with a sample.
    pub(super) fn insert(&self, connection: &Connection, path: &Path, sample: i64) -> Result<()> {
        let Self { series, latency } = self;
        for interval in &series.intervals {
            let row = IntervalRow {
                sample,
                interval: *interval,
            };
            rows::insert(connection, path, &SERIES, &row, true)?;
        }
        for (group, operation, quantity, own) in latency.iter().copied() {
            let row = LatencyOverTimeRow {
                sample,
                group,
                operation,
                quantity,
                interval_ns: own.interval_ns,
                span_ns: own.span_ns,
                intervals: own.encode(),
            };
            rows::insert(connection, path, &LATENCY_OVER_TIME, &row, true)?;
        }
        Ok(())
    }
}

/// The latencies over time of a run file in the order of the samples, groups and operations; each is read on demand.
pub type LatenciesOverTime = OneByOne<LatencyOverTimeRow, SampleLatencyOverTime>;

/// Opens the latencies over time of a run file; none if no trial has kept any.
///
/// # Errors
///
/// Errors of [`super::read`].
pub fn read_latency_over_time(path: &Path) -> Result<LatenciesOverTime> {
    let keys = |tables: &Tables<'_>| {
        let order = "sample_id, group_id, operation";
        tables.all_but(&LATENCY_OVER_TIME, "intervals", order, ROWS_MAX)
    };
    OneByOne::open(path, keys, latency)
}

impl LatenciesOverTime {
    /// All of them at once. Neighbouring intervals are merged if all would take too much memory. A foreign file may hold
    /// any number of them, in one byte for each 32 bytes in memory.
    ///
    /// # Errors
    ///
    /// Any error of reading one; also if even one interval each takes too much memory.
    pub fn read_all(self) -> Result<Vec<SampleLatencyOverTime>> {
        self.read_all_within(MEMORY_MAX)
    }

    pub(super) fn read_all_within(self, most: usize) -> Result<Vec<SampleLatencyOverTime>> {
        let bare = size_of::<SampleLatencyOverTime>();
        let each = (most / self.left.len().max(1)).saturating_sub(bare);
        let path = self.path.clone();
        let mut left = most;
        let mut all = Vec::new();
        for one in self {
            let mut one = one?;
            one.latency = one.latency.within(each);
            let Some(rest) = left.checked_sub(bare + one.latency.bytes()) else {
                let what = format!("its latencies over time take more than {} MiB", most >> 20);
                return Err(too_large(&path, what));
            };
            left = rest;
            all.push(one);
        }
        Ok(all)
    }
}

fn latency(
    connection: &Connection,
    path: &Path,
    row: LatencyOverTimeRow,
) -> Result<SampleLatencyOverTime> {
    let sql = "SELECT intervals FROM latency_over_time
               WHERE sample_id = ? AND group_id = ? AND operation = ?";
    let key = params![row.sample, row.group, row.operation.name()];
    let intervals = large_value(connection, path, sql, key)?;
    let latency = LatencyOverTime::decode(&intervals, row.interval_ns, row.span_ns);
    let latency = latency.map_err(|what| {
        let what = format!("the latency of sample {} over time: {what}", row.sample);
        damaged(path, what)
    })?;
    Ok(SampleLatencyOverTime {
        sample: row.sample,
        group: row.group,
        operation: row.operation,
        quantity: row.quantity,
        latency,
    })
}

/// Trials keep at least this many intervals, however many trials there are.
const INTERVALS_MIN: usize = 16;

/// The time series of a record's trials. Neighbouring intervals are merged if all would take too much memory.
pub(crate) fn of_record(
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
pub(crate) fn keys(connection: &Connection, path: &Path) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT sample_id FROM series ORDER BY sample_id";
    let most = (ROWS_MAX, "series");
    rows::keys(connection, path, sql, most, |row| {
        row.get(0).map_err(|error| fault(path, &error))
    })
}

/// The series of one trial; without intervals if none were recorded.
pub(crate) fn of_sample(connection: &Connection, path: &Path, sample: i64) -> Result<Series> {
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

/// Most histograms of one part of a sample.
const HISTOGRAMS_MAX: usize = 15;

/// Values of a run file, each read on demand by its key.
#[derive(Debug)]
pub struct OneByOne<K, T> {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) left: std::vec::IntoIter<K>,
    read: fn(&Connection, &Path, K) -> Result<T>,
}

impl<K, T> OneByOne<K, T> {
    pub(crate) fn open(
        path: &Path,
        keys: fn(&Tables<'_>) -> Result<Vec<K>>,
        read: fn(&Connection, &Path, K) -> Result<T>,
    ) -> Result<Self> {
        let connection = open_to_read(path)?;
        let tables = Tables {
            connection: &connection,
            path,
            file: None,
            text: &AtomicU64::new(0),
        };
        Ok(Self {
            left: keys(&tables)?.into_iter(),
            connection,
            path: path.to_owned(),
            read,
        })
    }
}

/// The value of a large column in the row that a statement selects.
fn large_value(
    connection: &Connection,
    path: &Path,
    sql: &str,
    key: impl Params,
) -> Result<Vec<u8>> {
    let read = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row(key, |row| row.get(0)));
    read.map_err(|error| match error {
        rusqlite::Error::InvalidColumnType(_, name, kind) => {
            invalid(path, format!("a value of {name} is {kind}"))
        }
        error => fault(path, &error),
    })
}

impl<K, T> Iterator for OneByOne<K, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.left.next()?;
        Some((self.read)(&self.connection, &self.path, key))
    }
}

/// The latency histograms of a run file in the order of the samples.
pub type Latencies = OneByOne<LatencyRow, SampleLatency>;

/// Opens the latency histograms of a run file.
///
/// # Errors
///
/// Errors of [`read`](super::read()).
pub fn read_latency(path: &Path) -> Result<Latencies> {
    let keys = |tables: &Tables<'_>| {
        let most = ROWS_MAX * HISTOGRAMS_MAX;
        let mut rows = tables.all_but(&LATENCY, "histogram", "sample_id", most)?;
        rows.sort_by_cached_key(|row: &LatencyRow| (row.sample, row.part, of(row).to_string()));
        Ok(rows)
    };
    OneByOne::open(path, keys, histogram)
}

fn of(row: &LatencyRow) -> LatencyOf {
    LatencyOf {
        operation: row.operation,
        quantity: row.quantity,
    }
}

fn histogram(connection: &Connection, path: &Path, row: LatencyRow) -> Result<SampleLatency> {
    let LatencyRow { sample, part, .. } = row;
    let of = of(&row);
    let sql = "SELECT histogram FROM latency WHERE sample_id = ? AND group_id = ? AND rank_id = ?
             AND target_id = ? AND operation = ? AND quantity = ?";
    let (operation, quantity) = (of.operation.name(), of.quantity.name());
    let key = params![
        sample, part.group, part.rank, part.target, operation, quantity
    ];
    let bytes = large_value(connection, path, sql, key)?;
    let histogram = histogram::decode(&bytes)
        .map_err(|what| damaged(path, format!("the histogram of sample {sample}: {what}")))?;
    Ok(SampleLatency {
        sample,
        part,
        of,
        histogram,
    })
}

/// The time series of a run file in the order of the samples.
pub type AllSeries = OneByOne<i64, SampleSeries>;

/// Opens the time series of a run file.
///
/// # Errors
///
/// Errors of [`read`](super::read()).
pub fn read_series(path: &Path) -> Result<AllSeries> {
    let keys = |tables: &Tables<'_>| keys(tables.connection, tables.path);
    OneByOne::open(path, keys, |connection, path, sample| {
        let series = of_sample(connection, path, sample)?;
        Ok(SampleSeries { sample, series })
    })
}
