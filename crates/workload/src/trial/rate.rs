//! The requested rate of a trial, in requests or bytes per second, and pauses of its threads.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::TrialSpec;
use crate::{Error, Result, usage_errors};

/// Highest rate, requests per second: one per nanosecond, more than any storage.
pub const RATE_MAX: u64 = 1_000_000_000;
/// Highest rate in bytes per second: 1 EB/s, which fits a run file.
const BYTES_MAX: u64 = 1_000_000_000_000_000_000;

/// Units of a rate in bytes with their factors; the decimal ones of throughput come first.
const UNITS: [(&str, u64); 9] = [
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// A rate over all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Requests per second, at most [`RATE_MAX`].
    Requests(u64),
    /// Bytes per second.
    Bytes(u64),
}

impl Rate {
    /// A group with this rate issues no requests.
    pub const ZERO: Self = Self::Requests(0);

    /// The rate in requests per second, for requests of this mean size in bytes.
    pub fn per_second(self, mean_request: f64) -> f64 {
        match self {
            Self::Requests(requests) => requests as f64,
            Self::Bytes(bytes) => bytes as f64 / mean_request.max(1.0),
        }
    }

    /// Requests per second; `None` for a rate in bytes.
    pub fn requests(self) -> Option<u64> {
        match self {
            Self::Requests(requests) => Some(requests),
            Self::Bytes(_) => None,
        }
    }

    /// Bytes per second; `None` for a rate in requests.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Requests(_) => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// `5000` for requests, `50MB/s` or `64MiB/s` for bytes.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Requests(requests) => f.pad(&requests.to_string()),
            Self::Bytes(bytes) => {
                let whole = |(_, unit): &&(&str, u64)| bytes.is_multiple_of(*unit);
                let decimal = UNITS[..3].iter().find(whole);
                let binary = || UNITS[4..].iter().find(whole);
                let (name, unit) = decimal.or_else(binary).unwrap_or(&("B", 1));
                f.pad(&format!("{}{name}/s", bytes / unit))
            }
        }
    }
}

/// `5000`, `50MB/s`, `64MiB/s`; the `/s` is optional. 0 is [`Rate::ZERO`] in any unit.
impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("'{text}' is not a rate")).hint(format!(
                "write requests per second, a whole number from 1 to {RATE_MAX}, or bytes per second such as 50MB/s or 64MiB/s"
            ))
        };
        let trimmed = text.trim();
        let trimmed = trimmed.strip_suffix("/s").unwrap_or(trimmed);
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(split.unwrap_or(trimmed.len()));
        let rate = match unit.trim() {
            "" if trimmed.len() == text.trim().len() => {
                let requests = number.parse().ok().filter(|rate| *rate <= RATE_MAX);
                Self::Requests(requests.ok_or_else(wrong)?)
            }
            unit => {
                let (_, unit) = UNITS
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                    .ok_or_else(wrong)?;
                let bytes = match number.parse::<u64>() {
                    Ok(whole) => whole.checked_mul(*unit),
                    Err(_) => {
                        let bytes = number.parse::<f64>().map_err(|_| wrong())? * *unit as f64;
                        (bytes.fract() == 0.0).then_some(bytes as u64)
                    }
                };
                let bytes = bytes.filter(|bytes| *bytes <= BYTES_MAX);
                Self::Bytes(bytes.ok_or_else(wrong)?)
            }
        };
        Ok(match rate {
            Self::Bytes(0) => Self::ZERO,
            rate => rate,
        })
    }
}

/// The longest [`TrialSpec::rate_slack`]. With more, a backlog at the end of a trial could come from the slack and not from
/// the storage.
const SLACK_MAX: Duration = Duration::from_millis(1);

/// The slack of Linux's timers, by which other programs' sleeps end late: they serve as many requests with one sleep.
pub(super) const RATE_SLACK: Duration = Duration::from_micros(50);

impl TrialSpec {
    /// Checks the pauses of the threads.
    pub(super) fn check_pauses(&self) -> Result<()> {
        usage_errors! {
            self.thinktime.is_some() && self.rate.is_some() => "a rate with thinktime",
                "a rate determines when each request starts: leave out one of the two";
            self.rate_slack != RATE_SLACK && self.rate.is_none() => "rate_slack without a rate",
                "it is how late requests of a rate may start: set rate, for example rate=1000";
            self.rate_slack > SLACK_MAX => "rate_slack is longer than 1ms",
                "a longer one saves hardly more CPU time, and most of the response time would be iolab's own: set rate_slack=1ms, or less";
        }
        Ok(())
    }
}
