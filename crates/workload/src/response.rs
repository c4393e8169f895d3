//! The measured quantities that experiments ask about.

use std::fmt;
use std::str::FromStr;

use crate::group::split_group;
use crate::{Error, Result};

use crate::quantity::{format_ns, significant};

/// A quantity with a value in each trial: the subject of an experiment, or of a comparison of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Response {
    /// Bytes per second, in MB/s.
    #[default]
    Throughput,
    /// Requests per second.
    Iops,
    /// Median response time where a rate is set, else median service time, in ns.
    Latency,
    /// Time of a whole trial, in ns.
    Elapsed,
    /// 90th percentile of the times of [`Response::Latency`], in ns.
    P90,
    /// 99th percentile, in ns.
    P99,
    /// 99.9th percentile, in ns.
    P999,
    /// 99.99th percentile, in ns.
    P9999,
    /// 99.999th percentile, in ns.
    P99999,
    /// Longest of these times, in ns.
    Max,
    /// CPU time per request, user plus system, in ns.
    Cpu,
}

impl Response {
    /// Every response.
    pub const ALL: [Self; 11] = [
        Self::Throughput,
        Self::Iops,
        Self::Latency,
        Self::Elapsed,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::P9999,
        Self::P99999,
        Self::Max,
        Self::Cpu,
    ];

    /// Their names in definitions and run files.
    pub const NAMES: &'static [&'static str] = &[
        "throughput",
        "iops",
        "latency",
        "elapsed",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
        "p99.999",
        "max",
        "cpu",
    ];

    /// Its name in definitions and run files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether its values are times, in ns.
    pub fn is_time(self) -> bool {
        !matches!(self, Response::Throughput | Response::Iops)
    }

    /// Whether it needs the latency of each request.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Response::Latency
                | Response::P90
                | Response::P99
                | Response::P999
                | Response::P9999
                | Response::P99999
                | Response::Max
        )
    }

    /// Whether higher values are better.
    pub fn more_is_better(self) -> bool {
        !self.is_time()
    }

    /// The value with its sign changed where needed so that higher is better.
    pub fn worth(self, value: f64) -> f64 {
        if self.more_is_better() { value } else { -value }
    }

    /// Fewest requests in a trial for a value: with fewer, the 95 % interval of the quantile has no upper end (see
    /// `iolab_stats::quantile_ranks`).
    pub const fn requests_min(self) -> u64 {
        match self {
            Response::P90 => 36,
            Response::P99 => 368,
            Response::P999 => 3688,
            Response::P9999 => 36_887,
            Response::P99999 => 368_887,
            _ => 1,
        }
    }

    /// Unit of the values, for headings.
    pub fn unit(self) -> &'static str {
        match self {
            Response::Throughput => "MB/s",
            Response::Iops => "IOPS",
            _ => "ns",
        }
    }

    /// Formats a value with its unit.
    pub fn format(self, value: f64) -> String {
        match self {
            Response::Throughput | Response::Iops => {
                format!("{} {}", significant(value), self.unit())
            }
            _ => format_ns(value),
        }
    }

    /// Name in headings of columns.
    pub fn heading(self) -> &'static str {
        match self {
            Response::Throughput | Response::Iops => self.unit(),
            Response::Elapsed => "time",
            Response::Cpu => "CPU/request",
            other => other.name(),
        }
    }
}

/// Parses its name; `p50` also means [`Response::Latency`].
impl FromStr for Response {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "p50" {
            return Ok(Response::Latency);
        }
        let named = |response: &Self| response.name() == text;
        Self::ALL
            .into_iter()
            .find(named)
            .ok_or_else(|| crate::names::unknown("response", text, Self::NAMES))
    }
}

/// A response of whole trials, or of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The group; `None` for whole trials.
    pub group: Option<String>,
    /// The quantity.
    pub response: Response,
}

/// `p99`, `reader.p99`.
impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (group, response) = split_group(text);
        Ok(Self {
            group: group.map(str::to_owned),
            response: response.parse()?,
        })
    }
}

/// Name in headings and sentences.
impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Response::Throughput => "throughput",
            Response::Iops => "IOPS",
            Response::Latency => "median latency",
            Response::Elapsed => "elapsed time",
            Response::P90 => "90th percentile of latency",
            Response::P99 => "99th percentile of latency",
            Response::P999 => "99.9th percentile of latency",
            Response::P9999 => "99.99th percentile of latency",
            Response::P99999 => "99.999th percentile of latency",
            Response::Max => "greatest latency",
            Response::Cpu => "CPU time per request",
        })
    }
}
