//! Requests that trim.

use super::{Backend, TrialSpec};
use crate::error::Result;
use crate::usage_errors;

impl TrialSpec {
    /// Whether any request of this trial trims.
    pub fn trims(&self) -> bool {
        self.writes() && self.trim_percent > 0
    }

    /// Whether any request of this trial writes data.
    pub fn writes_data(&self) -> bool {
        self.writes() && self.trim_percent < 100
    }

    /// The share of the requests that write data, 0 to 1.
    pub fn data_share(&self) -> f64 {
        f64::from(100 - self.read_percent) / 100.0 * f64::from(100 - self.trim_percent) / 100.0
    }

    /// Checks the settings of trims.
    pub(super) fn check_trims(&self) -> Result<()> {
        usage_errors! {
            self.trim_percent > 100 => format!("trim_percent is {}", self.trim_percent), "choose 0 to 100";
        }
        if self.trim_percent == 0 {
            return Ok(());
        }
        let asked = format!("trim_percent={}", self.trim_percent);
        usage_errors! {
            !self.writes() => format!("{asked} with reads alone"),
                "only writes trim: set read_percent below 100, or leave the trims out";
            matches!(self.backend, Backend::Mmap | Backend::Libaio | Backend::IoUring) => format!("{asked} with backend {}", self.backend),
                "this backend has no request that trims: set backend=psync, pvsync2 or sync, and more threads for more at a time";
            self.verify => "verify with trims", "trimmed blocks hold nothing to verify: leave out one of the two";
            self.starts_fresh() => "trims on a new file",
                "it has no data that could be trimmed: set allocate=recycled";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused_trials::{refusals, trial};
    use super::*;

    #[test]
    fn trims_without_a_meaning_are_refused() {
        let spec = trial("read_percent=0 trim_percent=100");
        assert!(spec.trims() && spec.writes() && !spec.writes_data());
        let changes = [
            "read_percent=100", "backend=io_uring", "verify=true", "allocate=fresh",
        ];
        insta::assert_snapshot!(refusals("read_percent=0 trim_percent=100", &changes), @r"
        read_percent=100: trim_percent=100 with reads alone
        backend=io_uring: trim_percent=100 with backend io_uring
        verify=true: verify with trims
        allocate=fresh: trims on a new file
        ");
        let beyond = TrialSpec {
            trim_percent: 101,
            ..spec
        };
        assert!(beyond.check().is_err());
    }
}
