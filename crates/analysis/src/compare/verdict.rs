//! The verdict on a cell, and reasons for none.

use std::fmt;

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
    /// No verdict, for this reason.
    CannotTell(WhyUndecided),
}

/// Reason why there is no verdict on a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyUndecided {
    /// These sides have no value of the quantity.
    NoValue(Valueless),
    /// A value is not positive, so that there is no ratio, and the intervals of the medians overlap.
    NoRatio,
    /// There are fewer trials than an interval needs.
    FewTrials,
    /// There are fewer runs than an interval needs.
    FewRuns,
    /// The interval includes both differences that matter and differences that do not.
    WideInterval,
    /// A difference would be shown if runs of an unchanged machine did not differ; one run on each side does not
    /// show by how much they do.
    OneRunEach,
    /// A difference or equivalence would be shown, but the evidence could reverse it. Holds the weightiest
    /// reason.
    Doubted(ReasonKind),
}

/// The sides without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Valueless {
    /// The base.
    Base,
    /// The new side.
    New,
    /// Both sides.
    Both,
}

impl CellVerdict {
    /// The verdict that replaces one that these doubts could reverse; `None` without doubts.
    pub(crate) fn doubted(doubts: &[SideDoubt]) -> Option<Self> {
        let kinds = doubts.iter().map(|doubt| doubt.reason.kind());
        let weightiest = kinds.min()?;
        Some(Self::CannotTell(WhyUndecided::Doubted(weightiest)))
    }

    /// Whether it leaves the question open.
    pub fn is_open(self) -> bool {
        self.why_open().is_some()
    }

    /// Reason for an open verdict; `None` for other verdicts.
    pub fn why_open(self) -> Option<WhyUndecided> {
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

impl fmt::Display for WhyUndecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoValue(_) => "no value",
            Self::NoRatio => "no ratio",
            Self::FewTrials => "too few values",
            Self::FewRuns => "too few runs",
            Self::WideInterval => "wide interval",
            Self::OneRunEach => "one run each",
            Self::Doubted(reason) => reason.words(),
        })
    }
}

impl WhyUndecided {
    /// Whether further trials could settle it.
    pub(super) fn is_for_lack_of_trials(self) -> bool {
        match self {
            Self::FewTrials | Self::WideInterval => true,
            Self::NoValue(_)
            | Self::NoRatio
            | Self::FewRuns
            | Self::OneRunEach
            | Self::Doubted(_) => false,
        }
    }
}

impl Valueless {
    /// The sides that lack a value; `None` if both have one.
    pub(crate) fn of(base_lacks: bool, new_lacks: bool) -> Option<Self> {
        match (base_lacks, new_lacks) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Base),
            (false, true) => Some(Self::New),
            (false, false) => None,
        }
    }
}
