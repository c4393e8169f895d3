//! iolab-engine: issues storage I/O and times it. Knows nothing of experiments.

mod backend;
mod buffer;
pub mod clock;
pub mod counters;
mod gate;
mod headroom;
mod looks;
pub mod meminfo;
pub mod pattern;
mod perf;
pub mod program;
pub mod schedule;
pub mod series;
pub mod target;
pub mod trial;
pub mod verify;
pub mod witness;
mod worker;
