//! What the laboratory concludes from records, most of them made up. One program, so that it is linked once.

#[path = "../support/synthetic.rs"]
mod synthetic;

mod analysis;
mod choices;
mod circumstances;
mod compare;
mod concurrency;
mod crossing;
mod digest;
mod findings;
mod latencies;
mod pace;
mod peers;
mod preparation;
mod run_to_run;
mod runs;
mod shape;
mod timeline;
mod verified;
