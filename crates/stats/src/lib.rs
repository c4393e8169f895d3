//! iolab-stats: statistics for measurements, as pure functions on slices of `f64`.
//!
//! The unit of replication is the trial: every slice holds one value per trial. No function
//! panics, and none returns a NaN or an infinity: data that is empty, too short for what is
//! asked, or holds a value that is not finite gives `None`, and so does a result that
//! overflows. Data that is all equal is ordinary data: its spread is 0 and its intervals
//! have no width.

#[cfg(feature = "alternatives")]
pub mod alternatives;
mod autocorrelation;
mod binomial;
mod changepoint;
mod contrast;
mod correlation;
mod dependent_series;
mod describe;
mod equivalence;
mod interpolated;
mod interval;
mod lasting_shift;
mod latency_bandwidth;
mod modality;
mod multiple_tests;
mod normal;
mod piecewise;
mod pooled;
mod quantile_interval;
mod random;
mod rank;
mod rank_sum;
mod ratio;
mod ratio_of_medians;
mod runs;
mod signed_rank;
mod steady;
mod summary;
mod t_distribution;
mod t_test;
mod threshold;
mod trend;
mod trials_needed;

pub use autocorrelation::{LjungBox, autocorrelation, effective_sample_size, lag1, ljung_box};
pub use changepoint::{changepoint_penalty, changepoints};
pub use contrast::{Contrast, contrast};
pub use dependent_series::welch_dependent;
pub use describe::{mad, mean, median, quartiles, sd};
pub use equivalence::{Equivalence, tost_log};
pub use interpolated::median_interval_interpolated;
pub use interval::{Interval, mean_interval, median_interval, median_interval_reach};
pub use lasting_shift::{Lasting, lasting_shifts};
pub use latency_bandwidth::{LatencyBandwidth, fit_latency_bandwidth};
pub use modality::{Modality, TwoLevels, has_gap, two_levels, two_levels_among, two_modes};
pub use multiple_tests::holm;
pub use piecewise::{Breakpoint, Piecewise, fit_piecewise};
pub use pooled::{CLUSTERS_MIN, Pooled, pooled_mean, pooled_quantile};
pub use quantile_interval::{quantile_ranks, share_bounds};
pub use random::Resampler;
pub use rank::{MannWhitney, RankMethod, mann_whitney};
pub use ratio::Ratio;
pub use ratio_of_medians::{MedianEnds, has_wide_gap, median_difference, ratio_of_medians};
pub use runs::{RunsTest, runs_test};
pub use signed_rank::{SignedRank, signed_rank, signed_rank_within};
pub use steady::{Steadiness, SteadyLimits, steady_state, window_slopes};
pub use summary::{CONFIDENCE, Summary, summary};
pub use t_test::{TTest, student, welch};
pub use threshold::{Outcomes, Threshold};
pub use trend::{Trend, mann_kendall};
pub use trials_needed::{trials_for_apart, trials_for_within};
