//! The verdict on a cell, and what replaces it where there are doubts.

use std::fmt;

use crate::doubt::{Reason, SideDoubt};

/// The verdict on a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellVerdict {
    /// The new side is better by more than the margin.
    Faster,
    /// The new side is worse by more than the margin.
    Slower,
    /// The new values are higher; whether that is better is unknown.
    Higher,
    /// The new values are lower; whether that is better is unknown.
    Lower,
    /// The ratio is within the margin.
    Equivalent,
    /// Both sides are the same run.
    Identical,
    /// A gate found no regression: the new run is within the prediction of the earlier ones.
    NoChange,
    /// A difference or equivalence would be shown if the trials were independent.
    Drifting,
    /// A difference would be shown if runs of an unchanged machine did not differ; one run on each side does not tell by how much
    /// they do.
    OneRunEach,
    /// A difference or equivalence would be shown, but a disturbance of one side could reverse it.
    Disturbed,
    /// The same, but both sides fell behind the rates requested of them.
    RateNotHeld,
    /// The same, but the trials of a side form two groups, and it does not hold between all of them.
    TwoGroups,
    /// The same, but the bytes of the two sides came from different sources.
    OtherSource,
    /// The trials do not suffice for any of these.
    CannotTell,
}

impl CellVerdict {
    /// The verdict that replaces one that these doubts could reverse; `None` without doubts.
    pub(crate) fn doubted(doubts: &[SideDoubt]) -> Option<Self> {
        let of = |doubt: &SideDoubt| match doubt.reason {
            Reason::ServedBy { .. } => Self::OtherSource,
            Reason::RateNotHeld => Self::RateNotHeld,
            Reason::TwoGroups { .. } => Self::TwoGroups,
            Reason::Dependent { .. } => Self::Drifting,
            _ => Self::Disturbed,
        };
        // The weightiest first.
        [
            Self::OtherSource,
            Self::Disturbed,
            Self::RateNotHeld,
            Self::TwoGroups,
            Self::Drifting,
        ]
        .into_iter()
        .find(|verdict| doubts.iter().any(|doubt| of(doubt) == *verdict))
    }

    /// Whether it leaves the question open.
    pub fn is_open(self) -> bool {
        matches!(
            self,
            CellVerdict::CannotTell
                | CellVerdict::Drifting
                | CellVerdict::OneRunEach
                | CellVerdict::Disturbed
                | CellVerdict::RateNotHeld
                | CellVerdict::TwoGroups
                | CellVerdict::OtherSource
        )
    }
}

impl fmt::Display for CellVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CellVerdict::Faster => "faster",
            CellVerdict::Slower => "slower",
            CellVerdict::Higher => "higher",
            CellVerdict::Lower => "lower",
            CellVerdict::Equivalent => "equivalent",
            CellVerdict::Identical => "identical",
            CellVerdict::NoChange => "no change shown",
            CellVerdict::Drifting => "cannot tell (drift)",
            CellVerdict::OneRunEach => "cannot tell (one run each)",
            CellVerdict::Disturbed => "cannot tell (disturbed)",
            CellVerdict::RateNotHeld => "cannot tell (rate not held)",
            CellVerdict::TwoGroups => "cannot tell (two groups)",
            CellVerdict::OtherSource => "cannot tell (other source)",
            CellVerdict::CannotTell => "cannot tell",
        })
    }
}
