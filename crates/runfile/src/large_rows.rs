//! Reads rows too large to read at once, one after another: latency histograms and series.

use std::path::{Path, PathBuf};

use iolab_record::{SampleLatency, SampleSeries};
use iolab_workload::{Result, histogram};
use rusqlite::{Connection, params};

use super::error::{damaged, fault};
use super::opening::open_to_read;
use super::{read, series};

/// The latency histograms of a run file in the order of the samples; each is read on demand.
#[derive(Debug)]
pub struct Latencies {
    connection: Connection,
    path: PathBuf,
    left: std::vec::IntoIter<read::LatencyKey>,
}

/// Opens the latency histograms of a run file.
///
/// # Errors
///
/// Errors of [`read`].
pub fn read_latency(path: &Path) -> Result<Latencies> {
    let connection = open_to_read(path)?;
    let left = read::latency_keys(&connection, path)?.into_iter();
    Ok(Latencies {
        connection,
        path: path.to_owned(),
        left,
    })
}

impl Iterator for Latencies {
    type Item = Result<SampleLatency>;

    fn next(&mut self) -> Option<Self::Item> {
        let (sample, part, of) = self.left.next()?;
        let connection = &self.connection;
        let bytes = connection
            .prepare_cached(
                "SELECT histogram FROM latency WHERE sample_id = ? AND group_id = ? AND rank_id = ?
                     AND target_id = ? AND operation = ? AND quantity = ?",
            )
            .and_then(|mut statement| {
                let key = params![
                    sample,
                    part.group,
                    part.rank,
                    part.target,
                    of.operation.name(),
                    of.quantity.name()
                ];
                statement.query_row(key, |row| row.get::<_, Vec<u8>>(0))
            });
        let histogram = bytes
            .map_err(|error| fault(&self.path, &error))
            .and_then(|bytes| {
                histogram::decode(&bytes).map_err(|what| {
                    damaged(
                        &self.path,
                        format!("the histogram of sample {sample}: {what}"),
                    )
                })
            });
        Some(histogram.map(|histogram| SampleLatency {
            sample,
            part,
            of,
            histogram,
        }))
    }
}

/// The time series of a run file in the order of the samples; each is read on demand.
#[derive(Debug)]
pub struct AllSeries {
    connection: Connection,
    path: PathBuf,
    left: std::vec::IntoIter<i64>,
}

/// Opens the series of a run file.
///
/// # Errors
///
/// Errors of [`read`].
pub fn read_series(path: &Path) -> Result<AllSeries> {
    let connection = open_to_read(path)?;
    let left = series::keys(&connection, path)?.into_iter();
    Ok(AllSeries {
        connection,
        path: path.to_owned(),
        left,
    })
}

impl Iterator for AllSeries {
    type Item = Result<SampleSeries>;

    fn next(&mut self) -> Option<Self::Item> {
        let sample = self.left.next()?;
        let series = series::of_sample(&self.connection, &self.path, sample);
        Some(series.map(|series| SampleSeries { sample, series }))
    }
}
