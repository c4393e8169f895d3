//! Pauses of the threads between requests.

use std::time::Duration;

use super::TrialSpec;
use crate::error::Result;
use crate::usage_errors;

/// The longest [`TrialSpec::rate_slack`]. With more, a backlog at the end of a trial could come from the slack and not from
/// the storage.
const SLACK_MAX: Duration = Duration::from_millis(1);

impl TrialSpec {
    /// Checks the pauses of the threads.
    pub(super) fn check_pauses(&self) -> Result<()> {
        usage_errors! {
            self.thinktime.is_some() && self.rate.is_some() => "a rate with thinktime",
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

    #[test]
    fn pauses_that_contradict_each_other_are_refused() {
        insta::assert_snapshot!(refusals("thinktime=1ms", &["rate=100"]), @"rate=100: a rate with thinktime");
        insta::assert_snapshot!(refusals("rate=100 rate_slack=1ms", &["rate=none", "rate_slack=1001us"]), @r"
        rate=none: rate_slack without a rate
        rate_slack=1001us: rate_slack is longer than 1ms
        ");
    }
}
