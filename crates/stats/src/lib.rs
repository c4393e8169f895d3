//! iolab-stats: statistics for measurements, as pure functions on slices of `f64`.
//!
//! The unit of replication is the trial: every slice holds one value per trial. No function
//! panics, and none returns a NaN or an infinity: data that is empty, too short for what is
//! asked, or holds a value that is not finite gives `None`, and so does a result that
//! overflows. Data that is all equal is ordinary data: its spread is 0 and its intervals
//! have no width.

mod autocorrelation;
mod binomial;
mod changepoint;
mod describe;
mod interval;
mod latency_bandwidth;
mod modality;
mod normal;
mod piecewise;
mod random;
mod runs;
mod student;
mod summary;
mod tail;
mod trend;

pub use autocorrelation::{LjungBox, autocorrelation, effective_sample_size, lag1, ljung_box};
pub use changepoint::changepoints;
pub use describe::{cv, mad, mean, median, quartiles, sd};
pub use interval::{Interval, mean_interval, median_interval};
pub use latency_bandwidth::{LatencyBandwidth, fit_latency_bandwidth};
pub use modality::{Modality, two_modes};
pub use piecewise::{Knot, Piecewise, fit_piecewise};
pub use runs::{RunsTest, runs_test};
pub use summary::{CONFIDENCE, Summary, summary};
pub use tail::{quantile_interval, quantile_ranks};
pub use trend::{Trend, mann_kendall};
