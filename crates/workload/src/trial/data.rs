//! Compressibility and deduplication of written data.

use super::{Content, TrialSpec};
use crate::error::Result;
use crate::usage_errors;

impl TrialSpec {
    /// Number of different blocks of data that repeated writes have.
    pub fn repeated_blocks(&self) -> u64 {
        let all = u128::from(self.region / self.bs.max(1));
        let part = |percent: u8| (all * u128::from(percent) / 100) as u64;
        self.dedup_set.map_or(1, part).max(1)
    }

    /// Checks the settings of written data.
    pub(super) fn check_data(&self) -> Result<()> {
        if let Some(set) = self.dedup_set {
            usage_errors! {
                self.dedup == 0 || !(1..=100).contains(&set) => format!("dedup_set={set} with dedup={}", self.dedup),
                    "it is the part of the region, from 1 to 100 percent, whose data repeated writes have: set dedup above 0, or dedup_set=none";
            }
        }
        for (name, percent) in [("compressible", self.compressible), ("dedup", self.dedup)] {
            if percent == 0 {
                continue;
            }
            usage_errors! {
                percent > 100 => format!("{name} is {percent}"), "choose 0 to 100";
                !self.writes_data() => format!("{name}={percent} in a trial that writes no data"),
                    "it describes the data that is written: set read_percent=0";
                self.reads() => format!("{name}={percent} in a mix of reads and writes"),
                    "reads leave what they found in the buffers that writes take their data from: set read_percent=0";
                self.content != Content::Unique => format!("{name}={percent} with content={}", self.content),
                    "repeated data and zeros already determine how far they shrink: set content=unique";
                self.verify => format!("verify with {name}={percent}"),
                    "blocks with checksums are all different and do not shrink: leave out one of the two";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused_trials::refusals;
    use super::*;

    #[test]
    fn shrinking_data_without_a_meaning_is_refused() {
        let changes = [
            "read_percent=100", "read_percent=50", "content=zero", "compressible=0 verify=true",
        ];
        insta::assert_snapshot!(refusals("read_percent=0 compressible=50 dedup=30", &changes), @r"
        read_percent=100: compressible=50 in a trial that writes no data
        read_percent=50: compressible=50 in a mix of reads and writes
        content=zero: compressible=50 with content=zero
        compressible=0 verify=true: verify with dedup=30
        ");
        let beyond = TrialSpec {
            read_percent: 0,
            compressible: 101,
            ..TrialSpec::default()
        };
        assert!(beyond.check().is_err());
    }
}
