//! The course of trials over time: throughput (table `series`) and latency (table `latency_over_time`).

use std::path::Path;

use iolab_record::tables::{IntervalRow, LATENCY_OVER_TIME, LatencyOverTimeRow, SERIES};
use iolab_record::{Operation, RequestTime, SampleLatencyOverTime, Series};
use iolab_workload::Result;
use iolab_workload::histogram::over_time::LatencyOverTime;
use rusqlite::{Connection, params};

use super::error::{damaged, too_large};
use super::large_rows::{OneByOne, large_value};
use super::rows;
use super::schema::ROWS_MAX;
use super::table_reader::Tables;

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
