//! The verdict on a cell.

use std::fmt;

use crate::doubt::{Doubt, DoubtKind};

/// The verdict on a cell, in the order in which verdicts are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellVerdict {
    /// The new side is worse by more than the margin.
    Slower,
    /// The new side is better by more than the margin.
    Faster,
    /// The new values are lower; whether that is better is unknown.
    Lower,
    /// The new values are higher; whether that is better is unknown.
    Higher,
    /// The ratio is within the margin.
    Equivalent,
    /// A gate found no regression: the new run is within the prediction of the earlier ones.
    NoChange,
    /// Both sides have the same samples.
    Identical,
    /// No verdict, for this reason.
    CannotTell(DoubtKind),
}

impl CellVerdict {
    /// The verdict that replaces one that these doubts could reverse; `None` without doubts.
    pub(crate) fn doubted(doubts: &[Doubt]) -> Option<Self> {
        let weightiest = doubts.iter().map(|doubt| doubt.what).min()?;
        Some(Self::CannotTell(weightiest))
    }

    /// Whether it leaves the question open.
    pub fn is_open(self) -> bool {
        self.why_open().is_some()
    }

    /// Reason for an open verdict; `None` for other verdicts.
    pub fn why_open(self) -> Option<DoubtKind> {
        match self {
            Self::CannotTell(why) => Some(why),
            Self::Slower
            | Self::Faster
            | Self::Lower
            | Self::Higher
            | Self::Equivalent
            | Self::NoChange
            | Self::Identical => None,
        }
    }
}

/// The verdict in a few words: `cannot tell (disturbed)`.
impl fmt::Display for CellVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Equivalent => "equivalent",
            Self::NoChange => "no change shown",
            Self::Identical => "identical",
            Self::CannotTell(why) => {
                f.write_str("cannot tell (")?;
                why.fmt(f)?;
                ")"
            }
        };
        f.write_str(words)
    }
}
