//! iolab-analysis: cells, curves, time and comparisons: numbers, pure functions of a record.

pub mod analysed;
pub mod analysis;
pub mod bends;
pub mod compare;
pub mod curve;
pub mod equivalence;
pub mod fitness;
pub mod gate;
pub mod glance;
pub mod history;
pub mod imbalance;
pub mod latencies;
pub mod optimum;
pub mod outline;
pub mod preparation;
pub mod refine;
pub mod runs;
pub mod series_tests;
pub mod slo;
pub mod thresholds;
pub mod timeline;
