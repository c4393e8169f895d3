//! iolab-observe: time, and what the kernel and the processor count while a trial runs. Issues no I/O of a trial itself.

#![allow(unsafe_code)] // system calls that no safe crate has

pub mod clock;
pub mod counters;
pub mod observation;
pub mod page_cache;
pub mod perf;
pub mod program;
