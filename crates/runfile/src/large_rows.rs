//! Reads rows too large to read at once, one after another: latency histograms and series.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use iolab_record::tables::{LATENCY, LatencyRow};
use iolab_record::{LatencyOf, SampleLatency, SampleSeries};
use iolab_workload::{Result, histogram};
use rusqlite::{Connection, Params, params};

use super::error::{damaged, fault, invalid};
use super::opening::open_to_read;
use super::schema::ROWS_MAX;
use super::series;
use super::table_reader::Tables;

/// Most histograms of one part of a sample.
const HISTOGRAMS_MAX: usize = 15;

/// Values of a run file, each read on demand by its key.
#[derive(Debug)]
pub struct OneByOne<K, T> {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) left: std::vec::IntoIter<K>,
    read: fn(&Connection, &Path, K) -> Result<T>,
}

impl<K, T> OneByOne<K, T> {
    pub(super) fn open(
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
pub(super) fn large_value(
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
    OneByOne::open(path, keys, latency)
}

fn of(row: &LatencyRow) -> LatencyOf {
    LatencyOf {
        operation: row.operation,
        quantity: row.quantity,
    }
}

fn latency(connection: &Connection, path: &Path, row: LatencyRow) -> Result<SampleLatency> {
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
    let keys = |tables: &Tables<'_>| series::keys(tables.connection, tables.path);
    OneByOne::open(path, keys, |connection, path, sample| {
        let series = series::of_sample(connection, path, sample)?;
        Ok(SampleSeries { sample, series })
    })
}
