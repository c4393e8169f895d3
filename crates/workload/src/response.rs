//! The measured quantities that experiments ask about.

use std::fmt;
use std::str::FromStr;

use crate::group::split_group;
use crate::{Error, Result};

use crate::quantity::{format_ns, significant};

/// The responses: name in definitions and run files, name in sentences, fewest requests in a trial for a value.
macro_rules! responses {
    ($($(#[$about:meta])* $response:ident: $name:literal, $words:literal, $requests_min:literal;)+) => {
        /// A quantity with a value in each trial: the subject of an experiment, or of a comparison of runs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum Response {
            $($(#[$about])* $response,)+
        }

        impl Response {
            /// Every response.
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$response),+];

            /// Their names in definitions and run files.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name in definitions and run files.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// Fewest requests in a trial for a value: with fewer, the 95 % interval of the quantile has no upper end (see
            /// `iolab_stats::quantile_ranks`).
            pub const fn requests_min(self) -> u64 {
                match self {
                    $(Self::$response => $requests_min,)+
                }
            }
        }

        /// Name in headings and sentences.
        impl fmt::Display for Response {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$response => $words,)+
                })
            }
        }
    };
}

responses! {
    /// Bytes per second, in MB/s.
    #[default]
    Throughput: "throughput", "throughput", 1;
    /// Requests per second.
    Iops: "iops", "IOPS", 1;
    /// Median response time if a rate is set, else median service time, in ns.
    Latency: "latency", "median latency", 1;
    /// Time of a whole trial, in ns.
    Elapsed: "elapsed", "elapsed time", 1;
    /// 90th percentile of the times of [`Response::Latency`], in ns.
    P90: "p90", "90th percentile of latency", 36;
    /// 99th percentile, in ns.
    P99: "p99", "99th percentile of latency", 368;
    /// 99.9th percentile, in ns.
    P999: "p99.9", "99.9th percentile of latency", 3688;
    /// 99.99th percentile, in ns.
    P9999: "p99.99", "99.99th percentile of latency", 36_887;
    /// 99.999th percentile, in ns.
    P99999: "p99.999", "99.999th percentile of latency", 368_887;
    /// Longest of these times, in ns.
    Max: "max", "greatest latency", 1;
    /// CPU time per request, user plus system, in ns.
    Cpu: "cpu", "CPU time per request", 1;
}

impl Response {
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

    /// The value with its sign changed if needed so that higher is better.
    pub fn worth(self, value: f64) -> f64 {
        if self.more_is_better() { value } else { -value }
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
