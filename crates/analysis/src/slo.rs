//! The greatest rate at which service levels hold: a search that treats noise as noise.
//!
//! Pure: the search says which rate comes next, receives the result of a trial at it, and says at the end between which rates
//! the limit lies. What carries the trials out is elsewhere; the tests simulate it. `answer.rs` says what the trials of a run
//! come to: a rate at which the levels are shown to hold, and one at which they fail, judged as at rates that a user names.

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
