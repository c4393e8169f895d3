//! fio's output with `--output-format=json` or `json+`, read with limits, because it may come from anyone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use iolab_workload::histogram::{LatencyHistogram, new_latency_histogram};
use iolab_workload::response::Response;
use iolab_workload::{Error, Result};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use iolab_record::{LatencySummary, Moved};

use crate::reported::Counts;

/// Greatest accepted count, as for run files: 2^60.
const COUNT_MAX: u64 = 1 << 60;
/// Most jobs in a report.
const JOBS_MAX: usize = 10_000;

/// A direction without requests.
static NOTHING: LazyLock<Direction> = LazyLock::new(Direction::default);

/// The part of a report that iolab uses.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct FioReport {
    /// Version: `fio-3.33`.
    #[serde(rename = "fio version")]
    pub(crate) version: String,
    /// Time of writing, seconds since 1970.
    #[serde(default)]
    pub(crate) timestamp: Option<i64>,
    /// Options that the jobs have in common.
    #[serde(rename = "global options", default)]
    pub(crate) global_options: Written,
    /// Jobs; with `group_reporting` one per group. A client of fio's servers calls them `client_stats`.
    #[serde(alias = "client_stats")]
    pub(crate) jobs: Vec<FioJob>,
}

/// One job, or a group of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct FioJob {
    /// Name of the job.
    pub(crate) jobname: String,
    /// Server that ran it, if a client reports that.
    #[serde(default)]
    pub(crate) hostname: String,
    /// Number of its group.
    #[serde(default)]
    pub(crate) groupid: u64,
    /// Error number; 0 for none.
    #[serde(default)]
    pub(crate) error: i64,
    /// Options of the job; `None` if the report has none, as a client's.
    #[serde(rename = "job options", default)]
    pub(crate) options: Option<Written>,
    /// Summed running time of its workers, ms.
    #[serde(default)]
    pub(crate) job_runtime: u64,
    /// CPU time in user mode, percent of [`FioJob::job_runtime`].
    #[serde(default)]
    pub(crate) usr_cpu: f64,
    /// CPU time in the kernel, percent of [`FioJob::job_runtime`].
    #[serde(default)]
    pub(crate) sys_cpu: f64,
    /// Reads.
    #[serde(default)]
    pub(crate) read: Direction,
    /// Writes.
    #[serde(default)]
    pub(crate) write: Direction,
    /// Trims.
    #[serde(default)]
    pub(crate) trim: Direction,
    /// All directions together (`unified_rw_reporting`), in addition to the separate ones or instead of them.
    #[serde(default)]
    pub(crate) mixed: Option<Direction>,
    /// Percent of the requests, by the least number in flight of each bucket.
    #[serde(default)]
    pub(crate) iodepth_level: BTreeMap<String, f64>,
    /// `fsync` calls.
    #[serde(default)]
    pub(crate) sync: Syncs,
}

/// Options in their order, in which a name may occur twice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Written(pub(crate) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("options with their values")
            }

            fn visit_map<M: MapAccess<'de>>(
                self,
                mut map: M,
            ) -> std::result::Result<Written, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Written(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Requests of one direction.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub(crate) struct Direction {
    /// Bytes transferred.
    pub(crate) io_bytes: u64,
    /// Requests completed.
    pub(crate) total_ios: u64,
    /// Time from the first start to the last end, ms.
    pub(crate) runtime: u64,
    /// Transfers that the kernel cut short.
    #[serde(default)]
    pub(crate) short_ios: u64,
    /// Time from submission to completion.
    pub(crate) clat_ns: FioLatency,
    /// Time from the start of a request to its completion.
    pub(crate) lat_ns: FioLatency,
}

/// Times of one direction, ns.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FioLatency {
    /// Greatest time.
    pub(crate) max: u64,
    /// Mean time.
    pub(crate) mean: f64,
    /// Number of requests.
    #[serde(rename = "N")]
    pub(crate) count: u64,
    /// Times by percent, which is text.
    pub(crate) percentile: BTreeMap<String, u64>,
    /// Number of requests by time; JSON+ only.
    pub(crate) bins: BTreeMap<u64, u64>,
}

/// `fsync` and `fdatasync` calls of a job.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Syncs {
    /// Number of these calls.
    pub(crate) total_ios: u64,
    /// Times of the calls.
    pub(crate) lat_ns: FioLatency,
}

impl Syncs {
    /// Number of calls: fio 3.33 counts `fdatasync` calls only in their times.
    pub(crate) fn count(&self) -> u64 {
        self.total_ios.max(self.lat_ns.count)
    }
}

impl FioReport {
    /// Parses a report. Messages may precede the object. Of several objects, which fio writes one after another
    /// (`--status-interval`), the last one counts; nothing else may follow.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the fault and its place.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let start = match text.starts_with('{') {
            true => 0,
            false => text.find("\n{").map(|at| at + 1).ok_or_else(|| {
                Error::usage("there is no JSON object in it")
                    .hint("run fio with --output-format=json or json+")
            })?,
        };
        let reports = serde_json::Deserializer::from_str(&text[start..]).into_iter();
        let mut last = None;
        for report in reports {
            last = Some(report.map_err(|error| {
                let what = match (&last, error.is_eof()) {
                    (_, true) => "its last report is cut off",
                    (None, false) => "it is not a report of fio 3",
                    (Some(_), false) => "what follows its report is not another one",
                };
                Error::usage(format!("{what}: {error}"))
                    .hint("it must be the whole output of fio 3 with --output-format=json or json+, and nothing after it")
            })?);
        }
        let mut report: FioReport = last.ok_or_else(|| Error::usage("it is empty"))?;
        report.check()?;
        // A client's sums over its servers are redundant.
        report.jobs.retain(|job| !job.is_sum_of_clients());
        Ok(report)
    }

    fn check(&self) -> Result<()> {
        if self.jobs.len() > JOBS_MAX {
            return Err(Error::usage(format!("it has more than {JOBS_MAX} jobs"))
                .hint("run fio with --group_reporting"));
        }
        match self.jobs.iter().find(|job| !job.is_credible()) {
            Some(job) => Err(
                Error::usage(format!("job '{}' has impossible numbers", job.jobname))
                    .hint("the report is damaged: run fio once more"),
            ),
            None => Ok(()),
        }
    }
}

impl FioJob {
    fn is_credible(&self) -> bool {
        let share = |percent: f64| (0.0..=100_000.0).contains(&percent);
        let shares = share(self.usr_cpu) && share(self.sys_cpu);
        let counts = [self.job_runtime, self.sync.total_ios];
        // A sum of times in ms has to fit in ns too.
        let time = self
            .job_runtime
            .max(self.read.runtime)
            .max(self.write.runtime)
            .max(self.trim.runtime)
            .max(self.mixed.as_ref().map_or(0, |mixed| mixed.runtime));
        shares
            && counts.iter().all(|count| *count <= COUNT_MAX)
            && time <= COUNT_MAX / 1_000_000
            && self.read.is_credible()
            && self.write.is_credible()
            && self.trim.is_credible()
            && self.mixed.as_ref().is_none_or(Direction::is_credible)
            && self.sync.lat_ns.is_credible()
    }

    /// Whether the entry is a client's sum of all jobs, and not a job.
    fn is_sum_of_clients(&self) -> bool {
        self.jobname == "All clients" && self.options.is_none()
    }

    /// Sum of all directions, if there is nothing else.
    fn unsplit(&self) -> Option<&Direction> {
        let each = [&self.read, &self.write, &self.trim];
        let mixed = self.mixed.as_ref();
        mixed.filter(|_| each.iter().all(|one| one.total_ios == 0))
    }

    /// Bounds of the greatest number of requests in flight.
    fn in_flight(&self) -> Option<(u64, u64)> {
        let reached = self
            .iodepth_level
            .iter()
            .filter(|(_, percent)| **percent > 0.0);
        let bounds = reached.filter_map(|(level, _)| match level.strip_prefix(">=") {
            Some(least) => Some((least.parse().ok()?, u64::MAX)),
            None => {
                let least: u64 = level.parse().ok()?;
                Some((least, least.saturating_mul(2).saturating_sub(1)))
            }
        });
        bounds.max()
    }

    /// Counts of a job, or of its clones together.
    pub(crate) fn counts(jobs: &[&Self]) -> Counts {
        let sum =
            |of: fn(&Self) -> u64| jobs.iter().map(|job| of(job)).fold(0, u64::saturating_add);
        let counted = |of: for<'a> fn(&'a Self) -> &'a Direction| {
            let all = jobs.iter().map(|job| of(job));
            all.fold(Moved::default(), |sum, one| Moved {
                requests: sum.requests.saturating_add(one.total_ios),
                bytes: sum.bytes.saturating_add(one.io_bytes),
            })
        };
        let elapsed_ms = jobs.iter().map(|job| job.elapsed_ns() / 1_000_000).max();
        Counts {
            reads: counted(|job| &job.read),
            writes: counted(|job| &job.write),
            trims: counted(|job| &job.trim),
            unsplit: counted(|job| job.unsplit().unwrap_or(&NOTHING)),
            elapsed_ms: elapsed_ms.unwrap_or(0),
            worked_ms: sum(|job| job.job_runtime),
            in_flight: jobs.iter().filter_map(|job| job.in_flight()).max(),
            failed: jobs.iter().any(|job| job.error != 0),
        }
    }

    /// Time from the first start to the last end of all directions, ns.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        let of_data = self.read.runtime.max(self.write.runtime);
        let unsplit = self.unsplit().map_or(0, |unsplit| unsplit.runtime);
        of_data.max(self.trim.runtime).max(unsplit) * 1_000_000
    }

    /// Percentage of the workers' time, ns.
    pub(crate) fn cpu_ns(&self, percent: f64) -> u64 {
        (percent / 100.0 * self.job_runtime as f64 * 1e6) as u64
    }
}

impl Direction {
    fn is_credible(&self) -> bool {
        let counts = [self.io_bytes, self.total_ios, self.short_ios];
        counts.iter().all(|count| *count <= COUNT_MAX)
            && [&self.lat_ns, &self.clat_ns]
                .into_iter()
                .all(FioLatency::is_credible)
    }

    /// Times closest to iolab's service time that are present: from the start of the request, otherwise from
    /// its submission.
    pub(crate) fn times(&self) -> &FioLatency {
        match self.lat_ns.has_quantiles() || !self.clat_ns.has_quantiles() {
            true => &self.lat_ns,
            false => &self.clat_ns,
        }
    }
}

impl FioLatency {
    fn is_credible(&self) -> bool {
        let mut times = self.percentile.values().chain(self.bins.keys());
        let mut counts = self.bins.values();
        self.mean >= 0.0
            && self.max.max(self.count) <= COUNT_MAX
            && times.all(|ns| *ns <= COUNT_MAX)
            && counts.all(|count| *count <= COUNT_MAX)
    }

    fn has_quantiles(&self) -> bool {
        !self.bins.is_empty() || !self.percentile.is_empty()
    }

    /// Bins as a histogram; empty if there are none.
    pub(crate) fn histogram(&self) -> LatencyHistogram {
        let mut histogram = new_latency_histogram();
        for (ns, count) in &self.bins {
            histogram.saturating_record_n(*ns, *count);
        }
        histogram
    }

    /// Times of several jobs together. The quantiles of a single job are its own; for several jobs they follow
    /// from the bins.
    pub(crate) fn merge<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = all.into_iter();
        let mut sum = all.next().cloned().unwrap_or_default();
        for one in all {
            let both = sum.count.saturating_add(one.count);
            let weighed = sum.mean * sum.count as f64 + one.mean * one.count as f64;
            sum.mean = weighed / both.max(1) as f64;
            sum.max = sum.max.max(one.max);
            sum.count = both;
            sum.percentile.clear();
            for (ns, count) in &one.bins {
                let bin = sum.bins.entry(*ns).or_default();
                *bin = bin.saturating_add(*count);
            }
        }
        sum
    }

    /// Quantiles as fio states them, or from its bins; `None` without either.
    pub(crate) fn summary(&self) -> Option<LatencySummary> {
        let histogram = self.histogram();
        let quantile = |quantile: f64| {
            let percent = quantile * 100.0;
            let named = self.percentile.iter().find(|(name, _)| {
                name.parse::<f64>()
                    .is_ok_and(|named| (named - percent).abs() < 1e-6)
            });
            let binned = || histogram.value_at_quantile(quantile);
            named
                .map(|(_, ns)| *ns)
                .or_else(|| (!histogram.is_empty()).then(binned))
        };
        let summary = LatencySummary::from_fn(|of| match of {
            Response::Mean => Some(self.mean),
            Response::Max => Some(self.max as f64),
            _ => quantile(of.quantile()?).map(|ns| ns as f64),
        });
        let mut kept = Response::ALL.into_iter().filter(|of| of.is_always_kept());
        kept.all(|of| summary[of].is_some()).then_some(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"note: a message with a { in it
{"fio version": "fio-3.33", "timestamp": 1700000000, "global options": {"bs": "4k"},
 "jobs": [{"jobname": "a", "groupid": 0, "error": 0, "job options": {"size": "1m"},
  "job_runtime": 500, "usr_cpu": 1.0, "sys_cpu": 10.0, "unknown": [1, {"x": 2}],
  "read": {"io_bytes": 409600, "total_ios": 100, "runtime": 250, "short_ios": 1,
    "clat_ns": {"max": 9, "mean": 5.0, "N": 100},
    "lat_ns": {"min": 1, "max": 20000, "mean": 1500.5, "stddev": 1.0, "N": 100,
      "percentile": {"50.000000": 1000, "90.000000": 2000, "99.000000": 19000, "99.900000": 20000},
      "bins": {"1000": 90, "19000": 10}}},
  "write": {"io_bytes": 0, "total_ios": 0, "runtime": 0, "clat_ns": {}, "lat_ns": {}},
  "sync": {"total_ios": 3}}]}
"#;

    #[test]
    fn a_report_is_read_behind_its_messages() {
        let report = FioReport::parse(REPORT).expect("a report");
        let job = &report.jobs[0];
        assert_eq!(
            (report.version.as_str(), job.elapsed_ns()),
            ("fio-3.33", 250_000_000)
        );
        assert_eq!(job.cpu_ns(job.sys_cpu), 50_000_000);
        let times = job.read.times();
        assert_eq!(times.histogram().len(), 100);
        let summary = times.summary().expect("quantiles");
        let told = [Response::Latency, Response::P99, Response::Max].map(|of| summary[of]);
        assert_eq!(told, [1000.0, 19_000.0, 20_000.0].map(Some));
        assert_eq!(job.write.times().summary(), None);
    }

    #[test]
    fn quantiles_come_from_bins_without_stated_ones() {
        let times = FioLatency {
            bins: [(1000, 90), (19_000, 10)].into(),
            ..FioLatency::default()
        };
        let summary = times.summary().expect("bins");
        assert_eq!(summary[Response::Latency], Some(1000.0));
        let p99 = summary[Response::P99].expect("bins");
        assert!((18_900.0..19_100.0).contains(&p99), "{summary:?}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let told = [
            ("\"jobs\"", "\"works\""),
            ("\"total_ios\": 100", "\"total_ios\": 9000000000000000000"),
            ("\"total_ios\": 100", "\"total_ios\": -1"),
            ("\"runtime\": 250", "\"runtime\": 1000000000000000000"),
            ("\"mean\": 1500.5", "\"mean\": -1.0"),
            ("\"sys_cpu\": 10.0", "\"sys_cpu\": -nan"),
            ("\"clat_ns\": {\"max\"", "\"clat\": {\"max\""),
            ("\n{", "\n["),
        ]
        .map(|(from, to)| {
            let error = FioReport::parse(&REPORT.replacen(from, to, 1)).expect_err(from);
            assert!(error.remedy().is_some(), "{error}");
            error.message().to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        it is not a report of fio 3: missing field `jobs` at line 10 column 29
        job 'a' has impossible numbers
        it is not a report of fio 3: invalid value: integer `-1`, expected u64 at line 4 column 46
        job 'a' has impossible numbers
        job 'a' has impossible numbers
        it is not a report of fio 3: invalid number at line 3 column 51
        it is not a report of fio 3: missing field `clat_ns` at line 8 column 41
        there is no JSON object in it
        ");
        for cut in (0..REPORT.trim_end().len()).step_by(7) {
            FioReport::parse(&REPORT[..cut]).expect_err("cut");
        }
        for (behind, is_cut) in [
            ("trailing words", false),
            ("{}", false),
            ("{\"fio version\":", true),
        ] {
            let error = FioReport::parse(&format!("{REPORT}{behind}")).expect_err(behind);
            assert_eq!(error.message().contains("cut off"), is_cut, "{error}");
        }
        FioReport::parse(&format!("{{{}", "[".repeat(100_000))).expect_err("deep");
    }
}
