//! iolab-analysis: Cells, curves, comparisons and findings: pure functions of a record

pub mod analysed;
pub mod analysis;
pub mod ceiling;
pub mod compare;
pub mod course;
pub mod crossing;
pub mod curve;
pub mod digest;
pub mod findings;
pub mod fitness;
pub mod glance;
pub mod interpretation;
pub mod knots;
pub mod latencies;
pub mod numbers;
pub mod optimum;
pub mod outline;
pub mod pace;
pub mod preparation;
pub mod refine;
pub mod slo;
pub mod thresholds;
pub mod timeline;
pub mod trust;
