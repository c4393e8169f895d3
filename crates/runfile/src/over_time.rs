//! The course of trials over time, and other rows too large to read at once, one after another.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Params, params, params_from_iter};

use super::error::{damaged, fault, invalid, too_large};
use super::opening::open_to_read;
use super::rows::{ROWS_MAX, Tables};
use iolab_record::tables::{IntervalRow, LATENCY, LATENCY_OVER_TIME, LatencyRow, SERIES};
use iolab_record::{
    Operation, RequestTime, Sample, SampleLatency, SampleLatencyOverTime, SampleSeries, Series,
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
    pub(super) fn insert(&self, tables: &Tables<'_>, sample: i64) -> Result<()> {
        let Self { series, latency } = self;
        for interval in &series.intervals {
            let row = IntervalRow {
                sample,
                interval: *interval,
            };
            tables.insert(&SERIES, &row)?;
        }
        for (group, operation, quantity, own) in latency.iter().copied() {
            let row = SampleLatencyOverTime {
                sample,
                group,
                operation,
                quantity,
                latency: own.clone(),
            };
            tables.insert(&LATENCY_OVER_TIME, &row)?;
        }
        Ok(())
    }
}

/// The latencies over time of a run file in the order of the samples, groups and operations; each is read on demand.
pub type LatenciesOverTime = OneByOne<SampleLatencyOverTime, SampleLatencyOverTime>;

/// Opens the latencies over time of a run file; none if no trial has kept any.
///
/// # Errors
///
/// Errors of [`super::read`].
pub fn read_latency_over_time(path: &Path) -> Result<LatenciesOverTime> {
    let keys = |tables: &Tables<'_>| {
        let select = ("intervals", "ORDER BY sample_id, group_id, operation");
        tables.rows(&LATENCY_OVER_TIME, select, [], ROWS_MAX)
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

fn latency(tables: &Tables<'_>, mut row: SampleLatencyOverTime) -> Result<SampleLatencyOverTime> {
    let sql = "SELECT intervals FROM latency_over_time
               WHERE sample_id = ? AND group_id = ? AND operation = ?";
    let key = params![row.sample, row.group, row.operation.name()];
    let intervals = large_value(tables, sql, key)?;
    let bounds = &row.latency;
    let latency = LatencyOverTime::decode(&intervals, bounds.interval_ns, bounds.span_ns);
    row.latency = latency.map_err(|what| {
        let what = format!("the latency of sample {} over time: {what}", row.sample);
        damaged(tables.path, what)
    })?;
    Ok(row)
}

/// Trials keep at least this many intervals, however many trials there are.
const INTERVALS_MIN: usize = 16;

/// The time series of a record's trials. Neighbouring intervals are merged if all would take too much memory.
pub(crate) fn of_record(tables: &Tables<'_>, samples: &[Sample]) -> Result<Vec<SampleSeries>> {
    let most = (ROWS_MAX / samples.len().max(1)).clamp(INTERVALS_MIN, INTERVALS_MAX);
    let known = |sample: i64| samples.binary_search_by_key(&sample, |s| s.id).is_ok();
    let mut all: Vec<SampleSeries> = Vec::new();
    each(
        tables,
        "ORDER BY sample_id, start_ns",
        None,
        |sample, series| {
            if known(sample) {
                let series = series.folded(most);
                all.push(SampleSeries { sample, series });
            }
        },
    )?;
    Ok(all)
}

/// Passes on the series of one sample after another, from rows in order.
fn each(
    tables: &Tables<'_>,
    rest: &str,
    only: Option<i64>,
    mut take: impl FnMut(i64, Series),
) -> Result<()> {
    let mut of = None;
    let mut intervals: Vec<Interval> = Vec::new();
    let only = params_from_iter(only);
    tables.each(&SERIES, ("", rest), only, usize::MAX, |row: IntervalRow| {
        let sample = row.sample;
        if of != Some(sample)
            && let Some(before) = of.replace(sample)
        {
            let intervals = std::mem::take(&mut intervals);
            take(before, Series { intervals });
        }
        let expected = intervals.last().map_or(0, Interval::end_ns);
        if row.interval.start_ns != expected || intervals.len() == INTERVALS_MAX {
            let what = format!("the intervals of sample {sample} do not follow each other");
            return Err(damaged(tables.path, what));
        }
        intervals.push(row.interval);
        Ok(())
    })?;
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
    read: fn(&Tables<'_>, K) -> Result<T>,
}

impl<K, T> OneByOne<K, T> {
    pub(crate) fn open(
        path: &Path,
        keys: fn(&Tables<'_>) -> Result<Vec<K>>,
        read: fn(&Tables<'_>, K) -> Result<T>,
    ) -> Result<Self> {
        let connection = open_to_read(path)?;
        Ok(Self {
            left: keys(&Tables::new(&connection, path))?.into_iter(),
            connection,
            path: path.to_owned(),
            read,
        })
    }
}

/// The value of a large column in the row that a statement selects.
fn large_value(tables: &Tables<'_>, sql: &str, key: impl Params) -> Result<Vec<u8>> {
    let path = tables.path;
    let read = tables
        .connection
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
        let tables = Tables::new(&self.connection, &self.path);
        Some((self.read)(&tables, key))
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
        let mut rows = tables.rows(&LATENCY, ("histogram", "ORDER BY sample_id"), [], most)?;
        rows.sort_by_cached_key(|row: &LatencyRow| (row.sample, row.part, row.of.to_string()));
        Ok(rows)
    };
    OneByOne::open(path, keys, histogram)
}

fn histogram(tables: &Tables<'_>, row: LatencyRow) -> Result<SampleLatency> {
    let LatencyRow {
        sample, part, of, ..
    } = row;
    let sql = "SELECT histogram FROM latency WHERE sample_id = ? AND group_id = ? AND rank_id = ?
             AND target_id = ? AND operation = ? AND quantity = ?";
    let (operation, quantity) = (of.operation.name(), of.quantity.name());
    let key = params![
        sample, part.group, part.rank, part.target, operation, quantity
    ];
    let bytes = large_value(tables, sql, key)?;
    let histogram = histogram::decode(&bytes).map_err(|what| {
        let what = format!("the histogram of sample {sample}: {what}");
        damaged(tables.path, what)
    })?;
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
    let keys = |tables: &Tables<'_>| {
        let wrong = |error| fault(tables.path, &error);
        let sql = "SELECT DISTINCT sample_id FROM series ORDER BY sample_id";
        let mut statement = tables.connection.prepare(sql).map_err(wrong)?;
        let keys = statement.query_map([], |row| row.get(0)).map_err(wrong)?;
        let keys: Vec<i64> = keys
            .take(ROWS_MAX + 1)
            .collect::<rusqlite::Result<_>>()
            .map_err(wrong)?;
        match keys.len() > ROWS_MAX {
            true => Err(too_large(
                tables.path,
                "it holds too many series".to_owned(),
            )),
            false => Ok(keys),
        }
    };
    OneByOne::open(path, keys, |tables, sample| {
        let mut found = Series::default();
        let of_sample = "WHERE sample_id = ? ORDER BY start_ns";
        each(tables, of_sample, Some(sample), |_, series| found = series)?;
        Ok(SampleSeries {
            sample,
            series: found,
        })
    })
}
