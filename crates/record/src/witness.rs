//! The record of `iolab witness` about a program, a process or devices: a file of its own kind, without an experiment and
//! without trials.

use iolab_workload::witness::Observed;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::ServedVerdict;
use crate::environment::Environment;

/// An observation with its verdicts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Witnessed {
    /// Version of iolab.
    pub tool_version: String,
    /// Start, RFC 3339, UTC.
    pub started_utc: String,
    /// The observation.
    pub observed: Observed,
    /// Source of the bytes that were read; `None` if there were next to none.
    pub reads: Option<ServedVerdict>,
    /// Destination of the bytes that were written; `None` if there were next to none.
    pub writes: Option<ServedVerdict>,
    /// The program's own claim, if it wrote a report that iolab reads.
    pub claim: Option<ToolClaim>,
    /// The machine and the devices.
    pub environment: Environment,
}

/// A program's claim about itself in a report that iolab reads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ToolClaim {
    /// The tool.
    pub tool: String,
    /// The claim about reads; `None` if it made none.
    pub reads: Option<Claimed>,
    /// The claim about writes; `None` if it made none.
    pub writes: Option<Claimed>,
}

/// A program's claim about its own transfers in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Claimed {
    /// Bytes over all its jobs or tests.
    pub bytes: u64,
    /// Throughput, MB/s, with the time that it is based on, ns; `None` if several jobs or tests have one each.
    #[serde(rename = "throughput_mb_s", serialize_with = "mb_s")]
    #[schemars(with = "Option<f64>")]
    pub rate: Option<(f64, u64)>,
}

fn mb_s<S: Serializer>(rate: &Option<(f64, u64)>, to: S) -> Result<S::Ok, S::Error> {
    rate.map(|(mb_s, _)| mb_s).serialize(to)
}
