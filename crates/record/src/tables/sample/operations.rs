//! Columns of the requests, by operation.

use super::Columns;
use crate::column::Null;
use crate::{Operation, Sample};
use iolab_workload::table;

const SERVICE: &str = "service time (completion minus submission): mean, quantiles 0.5, 0.9, 0.99, 0.999, greatest; with sync `each` and `fdatasync` a write's includes the sync that follows it; NULL without requests, and with `latency=false`";
const RESPONSE: &str =
    "response time (completion minus intended start), in the same parts; NULL in the closed loop";
const LATENESS: &str =
    "lateness (submission minus intended start), in the same parts; NULL in the closed loop";
const SYNC: &str = "service time of the syncs that follow writes (sync `each` and `fdatasync`), in the same parts; NULL without any";
const REQUESTS: &str = "requests completed";
const BYTES: &str = "bytes transferred by them";
const SHORT: &str = "transfers that the kernel cut short and iolab continued";

/// Columns of an operation that transfers data. Arguments: prefix of the names, field.
macro_rules! moved {
    ($name:literal, $operation:ident) => {{
        let mut columns = Vec::from(table! {
            number!(concat!($name, "_requests"), Sample, operations.$operation.requests).doc(REQUESTS);
            number!(concat!($name, "_bytes"), Sample, operations.$operation.bytes).doc(BYTES);
            number!(concat!($name, "_short_transfers"), Sample, operations.$operation.short_transfers).doc(SHORT);
        });
        columns.extend(latency!(
            concat!($name, "_latency"),
            operations.$operation.latency,
            SERVICE
        ));
        columns.extend(latency!(
            concat!($name, "_response"),
            operations.$operation.response,
            RESPONSE
        ));
        columns.extend(latency!(
            concat!($name, "_lateness"),
            operations.$operation.lateness,
            LATENESS
        ));
        columns
    }};
}

/// The columns of all operations.
pub(super) fn operations() -> Columns {
    let of = |operation: &Operation| match operation {
        Operation::Read => moved!("read", read),
        Operation::Write => moved!("write", write),
        Operation::Sync => syncs(),
        Operation::Trim => trims(),
    };
    Operation::ALL.iter().flat_map(of).collect()
}

/// The column `syncs` says whether there were any.
fn syncs() -> Columns {
    latency!("sync_latency", operations.sync.latency, SYNC).into()
}

fn trims() -> Columns {
    const TRIMS: &str = "requests that trimmed (`trim_percent`), and the bytes that they covered; included in throughput and IOPS";
    let mut columns = vec![
        number!("trim_requests", Sample, operations.trim.requests)
            .doc(TRIMS)
            .null(Null::Free),
        number!("trim_bytes", Sample, operations.trim.bytes)
            .doc(TRIMS)
            .null(Null::Free),
    ];
    columns.extend(latency!("trim_latency", operations.trim.latency, SERVICE));
    columns.into_iter().collect()
}
