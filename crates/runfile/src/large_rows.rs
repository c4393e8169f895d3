//! Reads rows too large to read at once, one after another: latency histograms and series.

use std::path::{Path, PathBuf};

use iolab_record::{LatencyOf, PartId, SampleLatency, SampleSeries};
use iolab_workload::{Result, histogram};
use rusqlite::{Connection, params};

use super::error::{damaged, fault};
use super::opening::open_to_read;
use super::{read, series};

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
        keys: fn(&Connection, &Path) -> Result<Vec<K>>,
        read: fn(&Connection, &Path, K) -> Result<T>,
    ) -> Result<Self> {
        let connection = open_to_read(path)?;
        Ok(Self {
            left: keys(&connection, path)?.into_iter(),
            connection,
            path: path.to_owned(),
            read,
        })
    }
}

impl<K, T> Iterator for OneByOne<K, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.left.next()?;
        Some((self.read)(&self.connection, &self.path, key))
    }
}

/// The latency histograms of a run file in the order of the samples.
pub type Latencies = OneByOne<(i64, PartId, LatencyOf), SampleLatency>;

/// Opens the latency histograms of a run file.
///
/// # Errors
///
/// Errors of [`read`](super::read()).
pub fn read_latency(path: &Path) -> Result<Latencies> {
    OneByOne::open(path, read::latency_keys, latency)
}

fn latency(
    connection: &Connection,
    path: &Path,
    (sample, part, of): (i64, PartId, LatencyOf),
) -> Result<SampleLatency> {
    let bytes = connection
        .prepare_cached(
            "SELECT histogram FROM latency WHERE sample_id = ? AND group_id = ? AND rank_id = ?
             AND target_id = ? AND operation = ? AND quantity = ?",
        )
        .and_then(|mut statement| {
            let (operation, quantity) = (of.operation.name(), of.quantity.name());
            let key = params![
                sample, part.group, part.rank, part.target, operation, quantity
            ];
            statement.query_row(key, |row| row.get::<_, Vec<u8>>(0))
        })
        .map_err(|error| fault(path, &error))?;
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
    OneByOne::open(path, series::keys, |connection, path, sample| {
        let series = series::of_sample(connection, path, sample)?;
        Ok(SampleSeries { sample, series })
    })
}
