//! The measured quantities that experiments ask about.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::group::split_group;
use crate::histogram::LatencyHistogram;
use crate::units::{format_ns, significant};
use crate::{Error, Result};

/// A quantity: a row of the table of responses.
struct Quantity {
    words: &'static str,
    heading: &'static str,
    column: &'static str,
    unit: &'static str,
    unasked: Unasked,
    requests_min: u64,
    meaning: &'static str,
    source: Source,
}

/// Tables with a column of a quantity that their experiment does not ask about; how dispensable it is on narrow screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// No table.
    Nowhere,
    /// Tables of cells with groups.
    OfGroups(u8),
    /// Tables over threads or depth.
    OverLoads(u8),
    /// All tables.
    Everywhere(u8),
}

/// The source of a value in a trial.
enum Source {
    /// Counts and times of the trial.
    Trial(fn(&TrialTotals<'_>) -> Option<f64>),
    /// Mean of the latencies.
    Mean,
    /// Quantile of the latencies, 1 for the longest.
    Quantile(f64),
}

use Source::{Mean, Quantile, Trial};
use Unasked::{Everywhere, Nowhere, OfGroups, OverLoads};

/// Unit of times.
const NS: &str = "ns";

/// Counts and times of a trial, from which the quantities are computed.
#[derive(Debug, Clone, Copy)]
pub struct TrialTotals<'a> {
    /// Bytes transferred by all requests.
    pub bytes: u64,
    /// Number of completed requests.
    pub requests: u64,
    /// Full span of the trial, ns.
    pub elapsed_ns: u64,
    /// CPU time, user plus system, ns; 0 if none was recorded, as in some trials of other tools.
    pub cpu_ns: u64,
    /// Number of the requests whose latency is shown.
    pub timed: u64,
    /// Latency of these: response times if a rate is set, else service times.
    pub waited: Option<&'a LatencySummary>,
}

/// Throughput of bytes in a time of ns, MB/s (10^6 bytes per second).
pub fn mb_s(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 1e3 / ns.max(1) as f64
}

/// Requests per second in a time of ns.
pub fn iops(requests: u64, ns: u64) -> f64 {
    requests as f64 * 1e9 / ns.max(1) as f64
}

/// The responses: name in definitions and run files; name in sentences, in headings, and in columns of run files and exports; unit;
/// tables that show it unasked; fewest requests in a trial for a value of a latency, 0 for other quantities; meaning; source of its
/// value in a trial. Everything that keeps, reads, shows or exports quantities follows from these rows.
macro_rules! responses {
    ($($(#[$default:meta])? $response:ident: $name:literal, $words:literal, $heading:literal, $column:literal, $unit:expr, $unasked:expr, $requests_min:literal,
        $meaning:literal, $source:expr;)+) => {
        /// A quantity with a value in each trial: the subject of an experiment, or of a comparison of runs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
        pub enum Response {
            $(#[doc = $meaning] $(#[$default])? #[serde(rename = $name)] $response,)+
        }

        impl Response {
            /// Every response.
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$response),+];

            /// Names of the responses in definitions and run files.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Names and meanings of all responses.
            pub const MEANINGS: &'static str =
                concat!("the quantity that is asked about" $(, "; `", $name, "`: ", $meaning)+);

            const QUANTITIES: [Quantity; Self::NAMES.len()] = [$(Quantity {
                words: $words,
                heading: $heading,
                column: $column,
                unit: $unit,
                unasked: $unasked,
                requests_min: $requests_min,
                meaning: $meaning,
                source: $source,
            }),+];
        }
    };
}

responses! {
    #[default]
    Throughput: "throughput", "throughput", "MB/s", "throughput_mb_s", "MB/s", OfGroups(1), 0,
        "bytes transferred over the elapsed time, MB/s (10^6 bytes)", Trial(|t| Some(mb_s(t.bytes, t.elapsed_ns)));
    Iops: "iops", "IOPS", "IOPS", "iops", "IOPS", OverLoads(3), 0,
        "requests completed over the elapsed time, per second", Trial(|t| Some(iops(t.requests, t.elapsed_ns)));
    Latency: "latency", "median latency", "p50", "latency_p50_ns", NS, Everywhere(3), 1,
        "median response time if a rate is set, else median service time, ns", Quantile(0.5);
    Mean: "mean", "mean latency", "mean", "latency_mean_ns", NS, Nowhere, 10,
        "mean latency, ns", Mean;
    Elapsed: "elapsed", "elapsed time", "time", "elapsed_ns", NS, Nowhere, 0,
        "time of the whole trial, ns", Trial(|t| Some(t.elapsed_ns as f64));
    P90: "p90", "90th percentile of latency", "p90", "latency_p90_ns", NS, Nowhere, 36,
        "90th percentile of latency, ns", Quantile(0.9);
    P99: "p99", "99th percentile of latency", "p99", "latency_p99_ns", NS, Everywhere(2), 368,
        "99th percentile of latency, ns", Quantile(0.99);
    P999: "p99.9", "99.9th percentile of latency", "p99.9", "latency_p999_ns", NS, OverLoads(7), 3688,
        "99.9th percentile of latency, ns", Quantile(0.999);
    P9999: "p99.99", "99.99th percentile of latency", "p99.99", "latency_p9999_ns", NS, Nowhere, 36_887,
        "99.99th percentile of latency, ns", Quantile(0.9999);
    P99999: "p99.999", "99.999th percentile of latency", "p99.999", "latency_p99999_ns", NS, Nowhere, 368_887,
        "99.999th percentile of latency, ns", Quantile(0.999_99);
    Max: "max", "greatest latency", "max", "latency_max_ns", NS, OverLoads(7), 1,
        "greatest latency, ns", Quantile(1.0);
    Cpu: "cpu", "CPU time per request", "CPU/request", "cpu_ns_per_request", NS, Nowhere, 0,
        "CPU time per request, user plus system, ns", Trial(|t| (t.cpu_ns > 0 && t.requests > 0).then(|| t.cpu_ns as f64 / t.requests as f64));
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
    pub const fn column(self) -> &'static str {
        self.quantity().column
    }

    /// Meaning in one line, unit last.
    pub const fn meaning(self) -> &'static str {
        self.quantity().meaning
    }

    /// The value in a trial; `None` if the trial has none, or too few requests for it.
    pub fn of_trial(self, trial: &TrialTotals<'_>) -> Option<f64> {
        let quantity = self.quantity();
        let value = || match quantity.source {
            Trial(of) => of(trial),
            Mean | Quantile(_) => trial.waited?[self],
        };
        (trial.timed >= quantity.requests_min).then(value)?
    }

    /// Unit of the values, for headings.
    pub fn unit(self) -> &'static str {
        self.quantity().unit
    }

    /// Fewest requests in a trial for a value, 10 for the mean and 0 for quantities of whole trials. With fewer, the 95 % interval
    /// of a quantile has no upper end (see `iolab_stats::quantile_ranks`).
    pub const fn requests_min(self) -> u64 {
        self.quantity().requests_min
    }

    /// The quantile of the latencies of a trial, 1 for the longest; `None` for other quantities.
    pub fn quantile(self) -> Option<f64> {
        match self.quantity().source {
            Quantile(quantile) => Some(quantile),
            Trial(_) | Mean => None,
        }
    }

    /// Tables with a column of it that do not ask about it.
    pub fn unasked(self) -> Unasked {
        self.quantity().unasked
    }

    /// The latencies that exports have of other times, and of intervals.
    pub fn shown_latencies() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|of| of.is_latency() && of.unasked() != Nowhere)
    }

    /// Name of the column of this quantity of other times than latencies.
    pub fn column_of(self, times: &str) -> String {
        self.column().replacen("latency", times, 1)
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
        self.requests_min() > 0
    }

    /// Whether each summary of latencies has it: rare quantiles are not known of all tools.
    pub fn is_always_kept(self) -> bool {
        self.is_latency() && self.requests_min() <= Self::P999.requests_min()
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
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PerResponse<T>([T; Response::ALL.len()]);

/// Mean and quantiles of the latencies of requests, ns; `None` for other quantities, and where one is not known.
pub type LatencySummary = PerResponse<Option<f64>>;

impl LatencySummary {
    /// The latencies of a histogram; `None` for an empty one.
    pub fn of(histogram: &LatencyHistogram) -> Option<Self> {
        let value = |of: Response| match of.quantity().source {
            Trial(_) => None,
            Mean => Some(histogram.mean()),
            Quantile(quantile) => Some(histogram.value_at_quantile(quantile) as f64),
        };
        (!histogram.is_empty()).then(|| Self::from_fn(value))
    }
}

impl<T> PerResponse<T> {
    /// The value of `of` for each response.
    pub fn from_fn(of: impl FnMut(Response) -> T) -> Self {
        Self(Response::ALL.map(of))
    }

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

impl Metric {
    /// The help for an option that takes one: what it is for, and its default.
    pub fn help(purpose: &str, default: &str) -> String {
        let names = Response::NAMES.join(", ");
        format!(
            "Quantity {purpose}: {names} (latency is p50, cpu is time per request); of a group: reader.p99{default}"
        )
    }
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
