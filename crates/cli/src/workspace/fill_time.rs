//! How long filling scratch files may take.

use std::time::Duration;

/// The part of the limit after which the rate is known well enough.
const SEEN: u32 = 4;

/// The limit of a command whose budget includes filling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FillLimit(pub(crate) Duration);

impl FillLimit {
    /// What filling takes in all, where that is more than the limit: as far as the first `done` of `total` bytes show, which took this time.
    pub(crate) fn exceeded(self, took: Duration, done: u64, total: u64) -> Option<Duration> {
        let Self(limit) = self;
        if took < limit / SEEN || done == 0 {
            return None;
        }
        let all = took.mul_f64(total.max(done) as f64 / done as f64);
        (all > limit).then_some(all)
    }
}

/// What came of filling.
#[derive(Debug)]
pub(crate) enum Fill {
    /// All scratch files are filled.
    Done,
    /// It was given up, because it would have taken this long.
    TooSlow(Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_is_given_up_once_its_rate_is_known() {
        let limit = FillLimit(Duration::from_secs(30));
        let seconds = Duration::from_secs;
        // Too early to know.
        assert_eq!(limit.exceeded(seconds(5), 4, 256), None);
        assert_eq!(limit.exceeded(seconds(10), 64, 256), Some(seconds(40)));
        assert_eq!(limit.exceeded(seconds(10), 128, 256), None);
        // All is written, and the sync took too long.
        assert_eq!(limit.exceeded(seconds(31), 256, 256), Some(seconds(31)));
    }
}
