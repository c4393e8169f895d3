//! What is written about made-up runs. One program, so that it is linked once.

#[path = "../../../analysis/tests/support/synthetic.rs"]
mod synthetic;

mod browser;
mod compare;
mod doctor;
mod durable;
mod equivalence;
mod overview;
mod report;
mod slo;
mod snapshots;
