//! Table `latency_over_time`.

use std::sync::LazyLock;

use crate::column::{COUNT_MAX, Column, Table};
use crate::{Operation, RequestTime};
use iolab_workload::table;

/// A row of table `latency_over_time`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencyOverTimeRow {
    /// The sample.
    pub sample: i64,
    /// The group of its workers; 0 if the cell has none.
    pub group: u32,
    /// The operation of the requests.
    pub operation: Operation,
    /// Kind of time: service, response or lateness.
    pub quantity: RequestTime,
    /// Length of an interval but the last, ns.
    pub interval_ns: u64,
    /// End of the last interval, ns.
    pub span_ns: u64,
    /// The intervals, encoded.
    pub intervals: Vec<u8>,
}

/// Table `latency_over_time`.
pub static LATENCY_OVER_TIME: LazyLock<Table<LatencyOverTimeRow>> = LazyLock::new(|| Table {
    name: "latency_over_time",
    doc: "one row per operation of a sample, or of each of its groups, with `latency_over_time=true`",
    exported: false,
    columns: Vec::from(table! {
        whole!("sample_id", LatencyOverTimeRow, sample as i64).doc("the sample");
        whole!("group_id", LatencyOverTimeRow, group as u32).doc("the group; 0 where the cell has none");
        word!("operation", LatencyOverTimeRow, operation, Operation).doc("what the requests did: `read`, `write`, `sync`, `trim`");
        word!("quantity", LatencyOverTimeRow, quantity, RequestTime)
            .doc("`response`: response times, of requests at a rate; else `service`: service times");
        whole!("interval_ns", LatencyOverTimeRow, interval_ns as u64).between(1, COUNT_MAX)
            .doc("length of every interval but the last");
        whole!("span_ns", LatencyOverTimeRow, span_ns as u64).between(0, COUNT_MAX)
            .doc("end of the last interval, from the start of the timed span");
        Column::bytes("intervals", |row: &LatencyOverTimeRow| &row.intervals, |row, bytes| row.intervals = bytes.to_vec())
            .doc("a histogram per interval, encoded as below");
    }),
    constraints: &[
        "PRIMARY KEY (sample_id, group_id, operation)",
        "FOREIGN KEY (sample_id) REFERENCES sample (id)",
    ],
});
