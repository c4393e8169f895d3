//! Whether measurements show that levels hold, and what speaks against believing them.

mod cells;
mod doubt;
mod judge;

pub use cells::{Verdict, Verdicts};
pub use doubt::{doubts, doubts_of_run};
pub(crate) use judge::times_of_samples;
pub use judge::{Change, Evidence, Judged, judge, keeps, together};

use iolab_spec::named;

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
