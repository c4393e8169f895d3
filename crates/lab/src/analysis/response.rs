//! What an experiment asks about.

use std::fmt;

use crate::quantity::{format_ns, significant};
use crate::record::Sample;

/// The measured quantity that an experiment asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// Bytes per second, in MB/s.
    Throughput,
    /// Requests per second.
    Iops,
    /// Median response time where a rate is set, else median service time, in ns.
    Latency,
    /// Time of a whole trial, in ns.
    Elapsed,
}

impl Response {
    /// The response named in a run file; throughput for a name this build does not know.
    pub fn of(name: &str) -> Self {
        match name {
            "iops" => Response::Iops,
            "latency" => Response::Latency,
            "elapsed" => Response::Elapsed,
            _ => Response::Throughput,
        }
    }

    /// Whether its values are times, in ns.
    pub fn is_time(self) -> bool {
        matches!(self, Response::Latency | Response::Elapsed)
    }

    /// Its value in one trial; `None` where the trial has none.
    pub fn value(self, sample: &Sample) -> Option<f64> {
        match self {
            Response::Throughput => Some(sample.throughput_mb_s()),
            Response::Iops => Some(sample.iops()),
            Response::Latency => sample.latency_p50_ns().map(|ns| ns as f64),
            Response::Elapsed => Some(sample.elapsed_ns as f64),
        }
    }

    pub(super) fn more_is_better(self) -> bool {
        !self.is_time()
    }

    /// The value turned so that the better of two is the greater.
    pub fn worth(self, value: f64) -> f64 {
        if self.more_is_better() { value } else { -value }
    }

    /// Unit of the values, as a heading says it.
    pub fn unit(self) -> &'static str {
        match self {
            Response::Throughput => "MB/s",
            Response::Iops => "IOPS",
            Response::Latency | Response::Elapsed => "ns",
        }
    }

    /// Writes a value with its unit.
    pub fn format(self, value: f64) -> String {
        match self {
            Response::Latency | Response::Elapsed => format_ns(value),
            _ => format!("{} {}", significant(value), self.unit()),
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Response::Throughput => "throughput",
            Response::Iops => "IOPS",
            Response::Latency => "median latency",
            Response::Elapsed => "elapsed time",
        })
    }
}
