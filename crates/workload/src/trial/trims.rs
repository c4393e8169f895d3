//! Requests that trim.

use super::{Backend, TrialSpec};
use crate::error::{Error, Result};
use crate::named::named;

named! {
    /// The effect of a trim on its blocks.
    pub enum TrimBy: "way to trim" {
        /// Releases their space: a hole in a file (`FALLOC_FL_PUNCH_HOLE`), `BLKDISCARD` on a device.
        Discard = "discard",
        /// Makes them read as zeros and keeps their space: `FALLOC_FL_ZERO_RANGE` on a file, `BLKZEROOUT` on a device.
        WriteZeroes = "write_zeroes",
    }
}

impl TrialSpec {
    /// Whether any request of this trial trims.
    pub fn trims(&self) -> bool {
        self.writes() && self.trim_percent > 0
    }

    /// Whether any request of this trial writes data.
    pub fn writes_data(&self) -> bool {
        self.writes() && self.trim_percent < 100
    }

    /// Checks the settings of trims.
    pub(super) fn check_trims(&self) -> Result<()> {
        let fail = |message: String, hint: &str| Err(Error::usage(message).hint(hint));
        if self.trim_percent > 100 {
            return fail(
                format!("trim_percent is {}", self.trim_percent),
                "choose 0 to 100",
            );
        }
        if self.trim_percent == 0 {
            return match self.trim_by {
                TrimBy::Discard => Ok(()),
                TrimBy::WriteZeroes => fail(
                    "trim_by=write_zeroes without trims".to_owned(),
                    "set trim_percent to the share of the writes that trim, for example 100",
                ),
            };
        }
        if !self.writes() {
            return fail(
                format!("trim_percent={} with reads alone", self.trim_percent),
                "it is the share of the writes that trim: set read_percent below 100, or trim_percent=0",
            );
        }
        if matches!(
            self.backend,
            Backend::Mmap | Backend::Libaio | Backend::IoUring
        ) {
            return fail(
                format!(
                    "trim_percent={} with backend {}",
                    self.trim_percent, self.backend
                ),
                "this backend has no request that trims: set backend=psync, pvsync2 or sync, and more threads for more at a time",
            );
        }
        if self.verify {
            return fail(
                "verify with trims".to_owned(),
                "trimmed blocks hold nothing to verify: leave out one of the two",
            );
        }
        if self.starts_fresh() {
            return fail(
                "trims on a new file".to_owned(),
                "it has no data that could be trimmed: set fresh=false and allocate=recycled",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_without_a_meaning_are_refused() {
        let spec = TrialSpec {
            read_percent: 0,
            trim_percent: 100,
            ..TrialSpec::default()
        };
        spec.check().expect("possible");
        assert!(spec.trims() && spec.writes() && !spec.writes_data());
        for (wrong, part) in [
            (
                TrialSpec {
                    trim_percent: 101,
                    ..spec.clone()
                },
                "trim_percent is 101",
            ),
            (
                TrialSpec {
                    read_percent: 100,
                    ..spec.clone()
                },
                "reads alone",
            ),
            (
                TrialSpec {
                    backend: Backend::IoUring,
                    ..spec.clone()
                },
                "io_uring",
            ),
            (
                TrialSpec {
                    verify: true,
                    ..spec.clone()
                },
                "verify",
            ),
            (
                TrialSpec {
                    fresh: true,
                    ..spec.clone()
                },
                "new file",
            ),
            (
                TrialSpec {
                    trim_percent: 0,
                    trim_by: TrimBy::WriteZeroes,
                    ..spec.clone()
                },
                "without trims",
            ),
        ] {
            let error = wrong.check().expect_err(part);
            assert!(error.message().contains(part), "{error}");
            assert!(error.remedy().is_some());
        }
    }
}
