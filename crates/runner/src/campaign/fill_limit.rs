//! Filling that takes longer than its command has time for.

use std::time::Duration;

use iolab_workload::{Error, Kind, Result};

/// The part of the limit after which the rate is known well enough.
const SEEN: u32 = 4;

/// The limit of a command whose budget includes filling.
#[derive(Debug, Clone, Copy)]
pub struct FillLimit(pub Duration);

impl FillLimit {
    /// The time of filling in all, if it exceeds the limit. Estimated from the first `done` of `total` bytes, which took
    /// `took`.
    pub(super) fn exceeded(self, took: Duration, done: u64, total: u64) -> Option<Duration> {
        let Self(limit) = self;
        if took < limit / SEEN || done == 0 {
            return None;
        }
        let all = took.mul_f64(total.max(done) as f64 / done as f64);
        (all > limit).then_some(all)
    }
}

/// The time of filling, if it was given up for that; `None` if all is filled. `is_stopped` says that the user has ended it,
/// which ends filling in the same way.
///
/// # Errors
/// A write or the last sync failed, or the user interrupts: that takes precedence.
pub(super) fn given_up(
    filled: Result<()>,
    too_slow: Option<Duration>,
    is_stopped: bool,
) -> Result<Option<Duration>> {
    match (filled, too_slow) {
        (Err(error), Some(time)) if error.kind() == Kind::Interrupted && !is_stopped => {
            Ok(Some(time))
        }
        (Err(error), _) => Err(error),
        (Ok(()), Some(_)) if is_stopped => Err(Error::interrupted()),
        (Ok(()), too_slow) => Ok(too_slow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_is_given_up_for_its_rate() {
        let limit = FillLimit(Duration::from_secs(30));
        let seconds = Duration::from_secs;
        // Too early to know.
        assert_eq!(limit.exceeded(seconds(5), 4, 256), None);
        assert_eq!(limit.exceeded(seconds(10), 64, 256), Some(seconds(40)));
        assert_eq!(limit.exceeded(seconds(10), 128, 256), None);
        // All is written, and the sync took too long.
        assert_eq!(limit.exceeded(seconds(31), 256, 256), Some(seconds(31)));
    }

    #[test]
    fn errors_and_interrupts_are_not_taken_for_slowness() {
        let slow = Some(Duration::from_secs(40));
        let ended = || Err(Error::interrupted());
        let failed = || Err(Error::failed("fsync: EIO"));
        assert_eq!(given_up(Ok(()), None, false), Ok(None));
        assert_eq!(given_up(Ok(()), slow, false), Ok(slow));
        assert_eq!(given_up(ended(), slow, false), Ok(slow));
        // All is written: the run hears the interrupt.
        assert_eq!(given_up(Ok(()), None, true), Ok(None));
        for (filled, too_slow, is_stopped, kind) in [
            (failed(), slow, false, Kind::Failed),
            (failed(), slow, true, Kind::Failed),
            (failed(), None, false, Kind::Failed),
            (ended(), slow, true, Kind::Interrupted),
            (ended(), None, true, Kind::Interrupted),
            (Ok(()), slow, true, Kind::Interrupted),
        ] {
            let error = given_up(filled, too_slow, is_stopped).expect_err("it takes precedence");
            assert_eq!(error.kind(), kind);
        }
    }
}
