//! Compressibility of written data.

use super::TrialSpec;
use crate::error::Result;
use crate::usage_errors;

impl TrialSpec {
    /// Checks the settings of written data.
    pub(super) fn check_data(&self) -> Result<()> {
        let percent = self.compressible;
        if percent == 0 {
            return Ok(());
        }
        usage_errors! {
            percent > 100 => format!("compressible is {percent}"), "choose 0 to 100";
            !self.writes_data() => format!("compressible={percent} in a trial that writes no data"),
                "it describes the data that is written: set read_percent=0";
            self.reads() => format!("compressible={percent} in a mix of reads and writes"),
                "reads leave what they found in the buffers that writes take their data from: set read_percent=0";
            self.verify => format!("verify with compressible={percent}"),
                "blocks with checksums are all different and do not shrink: leave out one of the two";
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
        let changes = ["read_percent=100", "read_percent=50", "verify=true"];
        insta::assert_snapshot!(refusals("read_percent=0 compressible=50", &changes), @r"
        read_percent=100: compressible=50 in a trial that writes no data
        read_percent=50: compressible=50 in a mix of reads and writes
        verify=true: verify with compressible=50
        ");
        let beyond = TrialSpec {
            read_percent: 0,
            compressible: 101,
            ..TrialSpec::default()
        };
        assert!(beyond.check().is_err());
    }
}
