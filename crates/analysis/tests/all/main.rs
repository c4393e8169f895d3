//! Tests of the analysis, mostly on synthetic records. One program, so that it is linked once.

#![allow(clippy::disallowed_fields)] // records are made up
#![allow(clippy::disallowed_macros)]

mod analysis;
mod causes;
mod compare;
mod compare_doubts;
mod definitions;
mod latencies;
mod level_values;
mod levels;
mod loads;
mod ratio;
mod rounds;
mod run_to_run;
mod runs;
