//! Whether measurements show that service levels hold, with the evidence against it.

mod cells;
mod judge;
mod judged;
mod reasoned;
mod verdict;

pub use cells::{CellAnswer, LevelAnswer, Verdicts};
pub(crate) use judge::times_of_samples;
pub use judge::{Evidence, Times, judge, keeps, merge_answers};
pub use judged::{Change, Judged, UnseenStalls};
pub use reasoned::ReasonedAnswer;
pub use verdict::MARGIN;

use iolab_workload::named;

use crate::doubt::Direction;

/// The limited quantity in a trial.
pub(crate) struct TrialValue {
    /// Value of the trial.
    pub(crate) value: f64,
    /// Number of requests that the estimate is based on.
    pub(crate) requests: f64,
    /// Whether the value is a lower bound: requests that were due and never issued count as long as the trial.
    pub(crate) is_bound: bool,
}

named! {
    /// The answer to a question.
    pub enum Answer: "answer" {
        /// Shown to hold.
        Yes = "yes",
        /// Shown not to hold.
        No = "no",
        /// Neither is shown.
        CannotTell = "cannot tell",
    }
}

impl Answer {
    /// Bound on the storage that the answer implies; `None` for [`Answer::CannotTell`].
    pub fn direction(self) -> Option<Direction> {
        match self {
            Self::Yes => Some(Direction::AtLeast),
            Self::No => Some(Direction::AtMost),
            Self::CannotTell => None,
        }
    }
}
