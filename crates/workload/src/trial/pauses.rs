//! Pauses of the threads between requests.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::TrialSpec;
use crate::error::{Error, Result};
use crate::units::{format_duration, parse_duration};
use crate::usage_errors;

/// Alternating periods with and without requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bursts {
    /// Length of the period with requests.
    pub on: Duration,
    /// Length of the period without, from the completion of the last request.
    pub off: Duration,
}

impl FromStr for Bursts {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: String| {
            Error::usage(what)
                .hint("write the time with requests and the time without: 100ms/900ms")
        };
        let (on, off) = text
            .split_once('/')
            .ok_or_else(|| wrong(format!("'{text}' has no slash")))?;
        let (on, off) = (parse_duration(on)?, parse_duration(off)?);
        if on.is_zero() || off.is_zero() {
            return Err(wrong(format!("'{text}' has a time of 0")));
        }
        Ok(Self { on, off })
    }
}

impl fmt::Display for Bursts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}/{}", format_duration(self.on), format_duration(self.off));
        f.pad(&text)
    }
}

/// The longest [`TrialSpec::rate_slack`]: at the end of a trial it is not storage that is behind.
const SLACK_MAX: Duration = Duration::from_millis(1);

impl TrialSpec {
    /// Whether threads pause between requests.
    pub fn pauses(&self) -> bool {
        self.thinktime.is_some() || self.bursts.is_some()
    }

    /// Checks the pauses of the threads.
    pub(super) fn check_pauses(&self) -> Result<()> {
        usage_errors! {
            self.thinktime_every == 0 => "thinktime_every is 0",
                "choose 1 for a pause after each request, or thinktime=none for none";
            self.thinktime_every > 1 && self.thinktime.is_none() => "thinktime_every without thinktime",
                "set thinktime to the length of the pauses, for example thinktime=1ms";
            self.thinktime_spin > self.thinktime.unwrap_or_default() => "thinktime_spin is longer than thinktime",
                "it is the first part of each pause: set thinktime to the length of the whole, for example thinktime=1ms";
            self.thinktime.is_some() && self.bursts.is_some() => "thinktime with bursts",
                "both determine when threads pause: set thinktime for pauses by requests, or bursts for pauses by time";
            self.flow.is_some() && (self.pauses() || self.rate.is_some()) => "a flow with thinktime, bursts or a rate",
                "each determines when the next request starts: leave out one of the two";
            self.pauses() && self.rate.is_some() => "a rate with thinktime or bursts",
                "a rate determines when each request starts: leave out one of the two";
            !self.rate_slack.is_zero() && self.rate.is_none() => "rate_slack without a rate",
                "it is how late requests of a rate may start: set rate, for example rate=1000";
            self.rate_slack > SLACK_MAX => "rate_slack is longer than 1ms",
                "a longer one saves hardly more CPU time, and most of the response time would be iolab's own: set rate_slack=1ms, or less";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused_trials::refusals;
    use super::*;

    #[test]
    fn bursts_read_as_they_are_written() {
        let bursts: Bursts = "0.1/900ms".parse().expect("bursts");
        assert_eq!(bursts.to_string(), "100ms/900ms");
        assert_eq!("100ms/900ms".parse::<Bursts>().expect("bursts"), bursts);
        for text in ["", "1s", "0/1s", "1s/0", "1s/2s/3s", "soon/later"] {
            let error = text.parse::<Bursts>().expect_err(text);
            assert!(error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn pauses_that_contradict_each_other_are_refused() {
        let changes = ["flow=2", "thinktime=none", "bursts=1s/1s", "rate=100"];
        insta::assert_snapshot!(refusals("thinktime=1ms thinktime_every=8", &changes), @r"
        flow=2: a flow with thinktime, bursts or a rate
        thinktime=none: thinktime_every without thinktime
        bursts=1s/1s: thinktime with bursts
        rate=100: a rate with thinktime or bursts
        ");
        insta::assert_snapshot!(refusals("rate=100 rate_slack=1ms", &["rate=none", "rate_slack=1001us"]), @r"
        rate=none: rate_slack without a rate
        rate_slack=1001us: rate_slack is longer than 1ms
        ");
        let none = TrialSpec {
            thinktime_every: 0,
            ..TrialSpec::default()
        };
        assert!(none.check().is_err());
    }
}
