//! The measured quantities that experiments ask about.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::group::split_group;
use crate::{Error, Result};

use crate::quantity::{format_ns, significant};

/// A quantity: a row of the table of responses.
struct Quantity {
    words: &'static str,
    heading: &'static str,
    column: &'static str,
    unit: &'static str,
    quantile: Option<f64>,
    requests_min: u64,
}

/// Unit of times.
const NS: &str = "ns";

/// The responses: name in definitions and run files; name in sentences, in headings, and in columns of run files and exports; unit;
/// quantile of the latencies of a trial; fewest requests in a trial for a value.
macro_rules! responses {
    ($($(#[$about:meta])* $response:ident: $name:literal, $words:literal, $heading:literal, $column:literal, $unit:expr, $quantile:expr, $requests_min:literal;)+) => {
        /// A quantity with a value in each trial: the subject of an experiment, or of a comparison of runs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
        pub enum Response {
            $($(#[$about])* #[serde(rename = $name)] $response,)+
        }

        impl Response {
            /// Every response.
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$response),+];

            /// Names of the responses in definitions and run files.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            const QUANTITIES: [Quantity; Self::NAMES.len()] = [$(Quantity {
                words: $words,
                heading: $heading,
                column: $column,
                unit: $unit,
                quantile: $quantile,
                requests_min: $requests_min,
            }),+];
        }
    };
}

responses! {
    /// Bytes per second, in MB/s.
    #[default]
    Throughput: "throughput", "throughput", "MB/s", "throughput_mb_s", "MB/s", None, 1;
    /// Requests per second.
    Iops: "iops", "IOPS", "IOPS", "iops", "IOPS", None, 1;
    /// Median response time if a rate is set, else median service time, in ns.
    Latency: "latency", "median latency", "latency", "latency_p50_ns", NS, Some(0.5), 1;
    /// Time of a whole trial, in ns.
    Elapsed: "elapsed", "elapsed time", "time", "elapsed_ns", NS, None, 1;
    /// 90th percentile of the times of [`Response::Latency`], in ns.
    P90: "p90", "90th percentile of latency", "p90", "latency_p90_ns", NS, Some(0.9), 36;
    /// 99th percentile, in ns.
    P99: "p99", "99th percentile of latency", "p99", "latency_p99_ns", NS, Some(0.99), 368;
    /// 99.9th percentile, in ns.
    P999: "p99.9", "99.9th percentile of latency", "p99.9", "latency_p999_ns", NS, Some(0.999), 3688;
    /// 99.99th percentile, in ns.
    P9999: "p99.99", "99.99th percentile of latency", "p99.99", "latency_p9999_ns", NS, Some(0.9999), 36_887;
    /// 99.999th percentile, in ns.
    P99999: "p99.999", "99.999th percentile of latency", "p99.999", "latency_p99999_ns", NS, Some(0.999_99), 368_887;
    /// Longest of these times, in ns.
    Max: "max", "greatest latency", "max", "latency_max_ns", NS, Some(1.0), 1;
    /// CPU time per request, user plus system, in ns.
    Cpu: "cpu", "CPU time per request", "CPU/request", "cpu_ns_per_request", NS, None, 1;
}

/// Name in sentences.
impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.quantity().words)
    }
}

impl Response {
    const fn quantity(self) -> &'static Quantity {
        &Self::QUANTITIES[self as usize]
    }

    /// Name in definitions and run files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Name in headings of columns.
    pub fn heading(self) -> &'static str {
        self.quantity().heading
    }

    /// Name of its columns in exports, with the unit.
    pub fn column(self) -> &'static str {
        self.quantity().column
    }

    /// Unit of the values, for headings.
    pub fn unit(self) -> &'static str {
        self.quantity().unit
    }

    /// Fewest requests in a trial for a value: with fewer, the 95 % interval of the quantile has no upper end (see
    /// `iolab_stats::quantile_ranks`).
    pub const fn requests_min(self) -> u64 {
        self.quantity().requests_min
    }

    /// The quantile of the latencies of a trial, 1 for the longest; `None` for other quantities.
    pub fn quantile(self) -> Option<f64> {
        self.quantity().quantile
    }

    /// The quantity that is this quantile of the latencies; `None` where trials do not store it.
    pub fn of_quantile(quantile: f64) -> Option<Self> {
        let is_it = |own: f64| (own - quantile).abs() < 1e-9;
        let mut all = Self::ALL.into_iter();
        all.find(|response| response.quantile().is_some_and(is_it))
    }

    /// Whether its values are times, in ns.
    pub fn is_time(self) -> bool {
        self.unit() == NS
    }

    /// Whether it needs the latency of each request.
    pub fn is_latency(self) -> bool {
        self.quantile().is_some()
    }

    /// Whether higher values are better.
    pub fn more_is_better(self) -> bool {
        !self.is_time()
    }

    /// The value with its sign changed if needed so that higher is better.
    pub fn worth(self, value: f64) -> f64 {
        if self.more_is_better() { value } else { -value }
    }

    /// Formats a value with its unit.
    pub fn format(self, value: f64) -> String {
        match self.is_time() {
            true => format_ns(value),
            false => format!("{} {}", significant(value), self.unit()),
        }
    }
}

/// A value for each response.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PerResponse<T>([T; Response::ALL.len()]);

impl<T> PerResponse<T> {
    /// The results of a function of the values.
    pub fn map<U>(self, of: impl FnMut(T) -> U) -> PerResponse<U> {
        PerResponse(self.0.map(of))
    }
}

impl<T> Index<Response> for PerResponse<T> {
    type Output = T;

    fn index(&self, of: Response) -> &T {
        &self.0[of as usize]
    }
}

impl<T> IndexMut<Response> for PerResponse<T> {
    fn index_mut(&mut self, of: Response) -> &mut T {
        &mut self.0[of as usize]
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
