//! Whether measurements show that levels hold, and what speaks against believing them.

mod doubt;
mod judge;

pub use doubt::doubts;
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
