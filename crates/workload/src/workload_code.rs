//! Workload codes: pattern and direction in two letters.

use std::fmt;
use std::str::FromStr;

use crate::trial::Pattern;
use crate::{Error, Result};

/// Write or read, sequential or random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadCode {
    /// Sequential writes.
    WS,
    /// Sequential reads.
    RS,
    /// Random writes, each block once per pass.
    WR,
    /// Random reads, each block once per pass.
    RR,
}

impl WorkloadCode {
    /// All codes, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::WS, Self::RS, Self::WR, Self::RR];

    /// Its pattern, and its share of reads in percent.
    pub fn parts(self) -> (Pattern, u8) {
        match self {
            Self::WS => (Pattern::Seq, 0),
            Self::RS => (Pattern::Seq, 100),
            Self::WR => (Pattern::Rand, 0),
            Self::RR => (Pattern::Rand, 100),
        }
    }

    /// The code for a pattern's name and a share of reads in percent; `None` if there is none.
    pub fn of(pattern: &str, read_percent: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|code| {
            let (its, percent) = code.parts();
            percent == read_percent && its.to_string() == pattern
        })
    }
}

impl fmt::Display for WorkloadCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WS => "WS",
            Self::RS => "RS",
            Self::WR => "WR",
            Self::RR => "RR",
        })
    }
}

impl FromStr for WorkloadCode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let named = |code: &Self| code.to_string().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            Error::usage(format!("'{text}' is not a workload"))
                .hint("it is one of: WS, RS, WR, RR (write or read, sequential or random)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_pattern_and_direction() {
        for code in WorkloadCode::ALL {
            let (pattern, percent) = code.parts();
            assert_eq!(WorkloadCode::of(&pattern.to_string(), percent), Some(code));
            let lower = code.to_string().to_lowercase();
            assert_eq!(lower.parse::<WorkloadCode>().expect("a code"), code);
        }
        assert_eq!(WorkloadCode::of("seq", 50), None);
        assert_eq!(WorkloadCode::of("reverse", 100), None);
        let error = "RW".parse::<WorkloadCode>().expect_err("no code");
        assert!(error.remedy().is_some());
    }
}
