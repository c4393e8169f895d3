//! The highest rate at which service levels hold: a search that accounts for noise.
//!
//! The search is pure: it gives the next rate, receives the result of a trial at it, and finally gives the
//! bounds of the limit. Other code carries out the trials; the tests simulate them. `answer.rs` judges the
//! trials of a run as if a user had named the rates. It finds a rate at which the levels are shown to hold, and
//! one at which they fail.

mod answer;
mod search;
#[cfg(test)]
mod tests;
mod values;
mod visits;

pub use answer::{RateAnswer, SearchAnswer};
pub use search::{RateLimit, RatePoint, Search, Step};
pub use values::{LevelValues, level_values};
pub use visits::{Shown, Visits};
