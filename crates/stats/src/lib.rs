//! iolab-stats: statistics for measurements, as pure functions on slices of `f64`.
//!
//! The unit of replication is the trial: every slice holds one value per trial. No function
//! panics, and none returns a NaN or an infinity: data that is empty, too short for what is
//! asked, or holds a value that is not finite gives `None`, and so does a result that
//! overflows. Data that is all equal is ordinary data: its spread is 0 and its intervals
//! have no width.

mod describe;
mod interval;
mod normal;
mod random;
mod student;
mod summary;

pub use describe::{cv, mad, mean, median, quartiles, sd};
pub use interval::{Interval, mean_interval, median_interval};
pub use summary::{CONFIDENCE, Summary, summary};
