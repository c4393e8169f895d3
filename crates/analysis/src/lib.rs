//! iolab-analysis: cells, curves, time and comparisons: numbers, pure functions of a record.

pub mod analysed;
pub mod analysis;
pub mod ceiling;
pub mod compare;
pub mod course;
pub mod crossing;
pub mod curve;
pub mod disturbance;
pub mod fitness;
pub mod gate;
pub mod glance;
pub mod history;
pub mod knots;
pub mod latencies;
pub mod numbers;
pub mod optimum;
pub mod outline;
pub mod pace;
pub mod preparation;
pub mod refine;
pub mod runs;
pub mod slo;
pub mod thresholds;
pub mod timeline;
