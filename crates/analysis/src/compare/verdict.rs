//! The verdict on a cell, and what replaces it where there are doubts.

use crate::doubt::{ReasonKind, SideDoubt};

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
    /// Both sides are the same run.
    Identical,
    /// The trials do not suffice for any of these.
    CannotTell,
    /// A difference would be shown if runs of an unchanged machine did not differ; one run on each side does not tell by how much
    /// they do.
    OneRunEach,
    /// A difference or equivalence would be shown, but the evidence could reverse it; of several reasons the weightiest.
    Doubted(ReasonKind),
}

impl CellVerdict {
    /// The verdict that replaces one that these doubts could reverse; `None` without doubts.
    pub(crate) fn doubted(doubts: &[SideDoubt]) -> Option<Self> {
        let kinds = doubts.iter().map(|doubt| doubt.reason.kind());
        kinds.min().map(Self::Doubted)
    }

    /// Whether it leaves the question open.
    pub fn is_open(self) -> bool {
        match self {
            Self::CannotTell | Self::OneRunEach | Self::Doubted(_) => true,
            Self::Slower
            | Self::Faster
            | Self::Lower
            | Self::Higher
            | Self::Equivalent
            | Self::NoChange
            | Self::Identical => false,
        }
    }
}
