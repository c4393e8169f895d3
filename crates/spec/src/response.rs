//! What an experiment asks about.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

use crate::quantity::{format_ns, significant};

/// The measured quantity that an experiment asks about.
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
}

impl Response {
    /// Every response.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::Iops, Self::Latency, Self::Elapsed];

    /// Their names in definitions and run files.
    pub const NAMES: &'static [&'static str] = &["throughput", "iops", "latency", "elapsed"];

    /// Its name in definitions and run files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether its values are times, in ns.
    pub fn is_time(self) -> bool {
        matches!(self, Response::Latency | Response::Elapsed)
    }

    /// Whether the better of two values is the greater.
    pub fn more_is_better(self) -> bool {
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

impl FromStr for Response {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let named = |response: &Self| response.name() == text;
        Self::ALL
            .into_iter()
            .find(named)
            .ok_or_else(|| crate::names::unknown("response", text, Self::NAMES))
    }
}

/// As headings and sentences call it.
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
