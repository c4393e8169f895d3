//! Requests that trim.

use super::{Backend, TrialSpec};
use crate::error::Result;
use crate::named_enum::named;
use crate::usage_errors;

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
        self.writes() && (self.trim_percent > 0 || self.trim_first)
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
            self.trim_first && (self.trim_percent > 0 || self.depth > 1 || self.bs_mix.is_some()) =>
                "trim_first with trim_percent, bs_mix or several requests in flight",
                "a block is written once its trim is over, each with one size, and no other is trimmed: set trim_percent=0, bs_mix=none and depth=1";
            self.trim_first && self.reads() && self.writes() => format!("trim_first with read_percent={}", self.read_percent),
                "a pass trims and writes each block, and reads none: set read_percent=0, or trim_percent for trims beside reads";
        }
        if !self.trim_first && self.trim_percent == 0 {
            usage_errors! {
                self.trim_by == TrimBy::WriteZeroes => "trim_by=write_zeroes without trims",
                    "set trim_percent to the share of the writes that trim, for example 100, or trim_first=true";
            }
            return Ok(());
        }
        let asked = match self.trim_first {
            true => "trim_first=true".to_owned(),
            false => format!("trim_percent={}", self.trim_percent),
        };
        usage_errors! {
            !self.writes() => format!("{asked} with reads alone"),
                "only writes trim: set read_percent below 100, or leave the trims out";
            matches!(self.backend, Backend::Mmap | Backend::Libaio | Backend::IoUring) => format!("{asked} with backend {}", self.backend),
                "this backend has no request that trims: set backend=psync, pvsync2 or sync, and more threads for more at a time";
            self.verify => "verify with trims", "trimmed blocks hold nothing to verify: leave out one of the two";
            self.starts_fresh() => "trims on a new file",
                "it has no data that could be trimmed: set fresh=false and allocate=recycled";
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
        let first = trial("read_percent=0 trim_first=true");
        assert!(first.trims() && first.writes_data());
        let pass = trial("read_percent=0");
        assert_eq!(
            first.requests_bound(),
            pass.requests_bound().map(|writes| 2 * writes)
        );
        let changes = [
            "backend=pool depth=2", "trim_percent=30", "read_percent=30", "read_percent=100",
        ];
        insta::assert_snapshot!(refusals("read_percent=0 trim_first=true", &changes), @r"
        backend=pool depth=2: trim_first with trim_percent, bs_mix or several requests in flight
        trim_percent=30: trim_first with trim_percent, bs_mix or several requests in flight
        read_percent=30: trim_first with read_percent=30
        read_percent=100: trim_first=true with reads alone
        ");
        let changes = [
            "read_percent=100",
            "backend=io_uring",
            "verify=true",
            "fresh=true",
            "trim_percent=0 trim_by=write_zeroes",
        ];
        insta::assert_snapshot!(refusals("read_percent=0 trim_percent=100", &changes), @r"
        read_percent=100: trim_percent=100 with reads alone
        backend=io_uring: trim_percent=100 with backend io_uring
        verify=true: verify with trims
        fresh=true: trims on a new file
        trim_percent=0 trim_by=write_zeroes: trim_by=write_zeroes without trims
        ");
        let beyond = TrialSpec {
            trim_percent: 101,
            ..spec
        };
        assert!(beyond.check().is_err());
    }
}
