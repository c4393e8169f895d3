//! iolab-plan: Experiments, suites and the plan of their cells, without I/O

pub mod blocks;
pub mod cells;
pub mod experiment;
pub mod forecast;
pub mod precondition;
pub mod requirement;
pub mod suite;
