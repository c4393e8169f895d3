//! iolab-stats: statistics for measurements, as pure functions on slices of `f64`.
//!
//! The unit of replication is the trial: every slice holds one value per trial. No function
//! panics, and none returns a NaN or an infinity: data that is empty, too short for what is
//! asked, or holds a value that is not finite gives `None`, and so does a result that
//! overflows. Data that is all equal is ordinary data: its spread is 0 and its intervals
//! have no width.

mod changepoint;
mod describe;
mod distributions;
mod interval;
mod modality;
mod piecewise;
mod pooled;
mod ranks;
mod t_test;
mod threshold;
mod time_series;

pub use changepoint::{
    Lasting, Steadiness, SteadyLimits, changepoint_penalty, changepoints, lasting_shifts,
    spread_within, steady_state, window_slopes,
};
pub use describe::{mad, mean, median, quartiles, sd};
pub use distributions::Resampler;
pub use interval::{
    CONFIDENCE, MedianEnds, Summary, has_wide_gap, median_difference, median_interval_interpolated,
    quantile_ranks, share_bounds, summary, trials_for_apart, trials_for_within,
};
pub use interval::{Interval, mean_interval, median_interval};
pub use modality::{Modality, TwoLevels, has_gap, two_levels, two_levels_among, two_modes};
pub use piecewise::{Breakpoint, fit_piecewise};
pub use piecewise::{LatencyBandwidth, fit_latency_bandwidth};
pub use pooled::{CLUSTERS_MIN, Pooled, pooled_mean, pooled_quantile};
pub use ranks::{SignedRank, holm, mann_whitney, signed_rank, signed_rank_within};
pub use t_test::{Contrast, contrast, student, tost_log, welch};
pub use threshold::{Outcomes, Threshold};
pub use time_series::{
    Trend, autocorrelation, effective_sample_size, ljung_box, mann_kendall, welch_dependent,
};
