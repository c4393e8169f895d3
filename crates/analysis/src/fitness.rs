//! Whether measurements show that levels hold, with what speaks against believing them.

mod cells;
mod judge;

pub use cells::{CellAnswer, LevelAnswer, Verdicts};
pub(crate) use judge::times_of_samples;
pub use judge::{Change, Evidence, Judged, Times, counted, judge, keeps, merge_answers};

use iolab_workload::named;

use crate::doubt::Direction;

named! {
    /// The answer to a question.
    pub enum Answer: "answer" {
        /// It is shown.
        Yes = "yes",
        /// The contrary is shown.
        No = "no",
        /// Neither is shown.
        CannotTell = "cannot tell",
    }
}

impl Answer {
    /// What it says of the storage; `None` where it says nothing.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Self::Yes => Some(Direction::AtLeast),
            Self::No => Some(Direction::AtMost),
            Self::CannotTell => None,
        }
    }
}
