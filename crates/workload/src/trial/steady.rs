//! Trials that end once what they do is steady, by fio's rule.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::TrialSpec;
use crate::error::{Error, Result};
use crate::named_enum::named;
use crate::units::{format_duration, parse_duration};
use crate::usage_errors;

/// Most values that are looked at together.
const VALUES_MAX: u128 = 10_000;
/// The shortest interval: the series of a trial is looked at as often.
const EVERY_MIN: Duration = Duration::from_millis(100);

named! {
    /// What is steady, and how that shows.
    pub enum SteadyTest: "steady state" {
        /// Requests per second: the greatest deviation from their mean.
        Iops = "iops",
        /// Requests per second: their slope.
        IopsSlope = "iops_slope",
        /// Bytes per second: the greatest deviation from their mean.
        Bandwidth = "bw",
        /// Bytes per second: their slope.
        BandwidthSlope = "bw_slope",
        /// Mean latency: the greatest deviation from its mean.
        Latency = "lat",
        /// Mean latency: its slope.
        LatencySlope = "lat_slope",
    }
}

/// fio's rule (`steadystate`): a worker ends once the values of all intervals in a window deviate from their mean, or the slope of a
/// line through them does from 0, by less than a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRule {
    /// What is looked at.
    pub test: SteadyTest,
    /// The limit, in percent of the mean of the values; of a slope, per interval.
    pub percent: f64,
    /// Length of the window.
    pub window: Duration,
    /// Time before the first value.
    pub ramp: Duration,
    /// Length of an interval.
    pub every: Duration,
}

impl SteadyRule {
    /// Number of values in a window.
    pub fn values(&self) -> usize {
        // Checked when it was read.
        (self.window.as_nanos() / self.every.as_nanos().max(1)) as usize
    }

    /// Whether the values of a window, in the order of time, are steady.
    pub fn holds(&self, values: &[f64]) -> bool {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let criterion = match self.test {
            SteadyTest::Iops | SteadyTest::Bandwidth | SteadyTest::Latency => {
                let deviations = values.iter().map(|value| (value - mean).abs());
                deviations.fold(0.0, f64::max)
            }
            SteadyTest::IopsSlope | SteadyTest::BandwidthSlope | SteadyTest::LatencySlope => {
                let middle = (count - 1.0) / 2.0;
                let from_middle = || (0..values.len()).map(|place| place as f64 - middle);
                let squares: f64 = from_middle().map(|x| x * x).sum();
                let products = from_middle().zip(values).map(|(x, y)| x * (y - mean));
                (products.sum::<f64>() / squares).abs()
            }
        };
        // Without requests there is no mean, and nothing steady.
        mean > 0.0 && 100.0 * criterion / mean < self.percent
    }
}

/// `iops:5%/30s/10s/1s`: the limit, the window, the time before it, and the interval.
impl fmt::Display for SteadyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            test,
            percent,
            window,
            ramp,
            every,
        } = self;
        let times = [window, ramp, every].map(|time| match *time {
            Duration::ZERO => "0".to_owned(),
            time => format_duration(time),
        });
        f.pad(&format!("{test}:{percent}%/{}", times.join("/")))
    }
}

impl FromStr for SteadyRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::usage(format!("'{text}' is no rule of a steady state: {what}")).hint(
                "write the quantity with its limit in percent, the window, the time before it and the interval: iops:5%/30s/10s/1s (iops, bw or lat; iops_slope, bw_slope or lat_slope)",
            )
        };
        let mut parts = text.split('/');
        let (test, limit) = parts
            .next()
            .and_then(|part| part.split_once(':'))
            .ok_or_else(|| wrong("it has no limit"))?;
        let test = test.parse().map_err(|_| wrong("its quantity is unknown"))?;
        let percent = limit
            .strip_suffix('%')
            .unwrap_or(limit)
            .trim()
            .parse::<f64>()
            .ok();
        let percent = percent.filter(|percent| *percent > 0.0 && percent.is_finite());
        let percent = percent.ok_or_else(|| wrong("its limit is not a percentage above 0"))?;
        let window = parts.next().ok_or_else(|| wrong("it has no window"))?;
        let window = parse_duration(window)?;
        let ramp = parts.next().map_or(Ok(Duration::ZERO), parse_duration)?;
        let every = parts
            .next()
            .map_or(Ok(Duration::from_secs(1)), parse_duration)?;
        if parts.next().is_some() {
            return Err(wrong("it has more than four parts"));
        }
        if every < EVERY_MIN {
            return Err(wrong("its interval is shorter than 100 ms"));
        }
        let values = window.as_nanos() / every.as_nanos();
        if !(2..=VALUES_MAX).contains(&values) {
            return Err(wrong("its window has not 2 to 10000 intervals"));
        }
        Ok(Self {
            test,
            percent,
            window,
            ramp,
            every,
        })
    }
}

impl TrialSpec {
    /// Checks what ends a trial that is steady.
    pub(super) fn check_steady(&self) -> Result<()> {
        let Some(rule) = &self.steady else {
            return Ok(());
        };
        usage_errors! {
            self.rate.is_some() => "steady with a rate",
                "at a given rate the requests per second are the rate: set rate=none, or steady=none";
        }
        let of_latency = matches!(rule.test, SteadyTest::Latency | SteadyTest::LatencySlope);
        usage_errors! {
            of_latency && !self.latency => "steady by latencies with latency=false",
                "set latency=true: without it no request is timed";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> SteadyRule {
        text.parse().expect(text)
    }

    #[test]
    fn rules_read_as_they_are_written() {
        for (text, canonical) in [
            ("iops:5%/3s/1s/1s", "iops:5%/3s/1s/1s"),
            ("lat_slope:0.3/300", "lat_slope:0.3%/5min/0/1s"),
        ] {
            assert_eq!(rule(text).to_string(), canonical);
            assert_eq!(rule(canonical), rule(text));
        }
        for text in [
            "", "iops:5%", "iops/3s", "p99:5%/3s", "iops:0%/3s", "iops:x%/3s", "iops:5%/1s",
            "iops:5%/3s/0/50ms", "iops:5%/3s/0/1s/1s", "iops:inf/3s",
        ] {
            let error = text.parse::<SteadyRule>().expect_err(text);
            assert!(error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn what_deviates_less_than_the_limit_is_steady() {
        let deviation = rule("iops:5%/4s");
        assert_eq!(deviation.values(), 4);
        assert!(deviation.holds(&[100.0, 104.0, 96.0, 100.0]));
        assert!(!deviation.holds(&[100.0, 105.0, 95.0, 100.0]));
        assert!(!deviation.holds(&[0.0; 4]));
        let slope = rule("bw_slope:1%/4s");
        // 0.9 and 1.1 % of the mean from value to value.
        let line = |step: f64| [1.0, 2.0, 3.0, 4.0].map(|x| 100.0 + step * (x - 2.5));
        assert!(slope.holds(&line(0.9)) && slope.holds(&line(-0.9)));
        assert!(!slope.holds(&line(1.1)) && !slope.holds(&line(-1.1)));
        // Values far from their mean may have no slope.
        assert!(slope.holds(&[50.0, 150.0, 150.0, 50.0]));
    }
}
