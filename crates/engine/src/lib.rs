//! iolab-engine: issues storage I/O and times it. Knows nothing of experiments.

#![allow(unsafe_code)] // system calls that no safe crate has

mod arena;
mod backend;
mod buffer;
mod clock_sampling;
pub mod flags;
pub mod placement;
mod request;
pub mod schedule;
pub mod series;
pub mod simulation;
mod start_barrier;
pub mod trial;
pub mod verify;
mod worker;
