//! What the laboratory computes from records, most of them made up. One program, so that it is linked once.

mod analysis;
mod compare;
mod latencies;
mod run_to_run;
mod runs;
