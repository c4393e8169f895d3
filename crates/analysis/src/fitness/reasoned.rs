//! Answers that always carry their reasons.

use super::Answer;
use crate::doubt::DoubtKind;

/// An answer; "cannot tell" has at least one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasonedAnswer {
    /// Shown to hold.
    Yes,
    /// Shown not to hold.
    No,
    /// Neither is shown, for these distinct reasons.
    CannotTell(Vec<DoubtKind>),
}

impl ReasonedAnswer {
    /// The answer without its reasons.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Yes => Answer::Yes,
            Self::No => Answer::No,
            Self::CannotTell(_) => Answer::CannotTell,
        }
    }

    /// The combined answer: no if any is no, otherwise "cannot tell" if any is, with all reasons.
    pub fn merge(answers: impl IntoIterator<Item = Self>) -> Self {
        let nothing = Self::CannotTell(vec![DoubtKind::NoTrial]);
        answers.into_iter().reduce(Self::and).unwrap_or(nothing)
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, other) => other,
            (open, Self::Yes) => open,
            (Self::CannotTell(mut reasons), Self::CannotTell(others)) => {
                for reason in others {
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
                Self::CannotTell(reasons)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_no_decides_and_open_answers_keep_reasons() {
        use ReasonedAnswer::{CannotTell, No, Yes};
        let open = |reasons: &[DoubtKind]| CannotTell(reasons.to_vec());
        let (few, slept) = (DoubtKind::NoRequest, DoubtKind::Suspended);
        let merged = |answers: &[ReasonedAnswer]| ReasonedAnswer::merge(answers.to_vec());
        assert_eq!(merged(&[Yes, Yes]), Yes);
        assert_eq!(merged(&[open(&[few]), No, Yes]), No);
        assert_eq!(
            merged(&[open(&[few]), Yes, open(&[slept, few])]),
            open(&[few, slept])
        );
        assert_eq!(merged(&[]), open(&[DoubtKind::NoTrial]));
    }
}
