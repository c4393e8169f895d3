//! iolab-host: time, and what the kernel and the processor count while a trial runs. Issues no I/O of a trial itself.
//!
//! Files to begin with: `clock.rs` stamps, `observation.rs` what is read around the timed span, `counters/` one file
//! per source, `perf.rs` the processor's counters, `page_cache.rs` filling and dropping pages, `program.rs` a program
//! that runs as a trial.

#![allow(unsafe_code)] // system calls that no safe crate has

pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod device;
pub mod device_link;
#[cfg(test)]
mod fake_sysfs;
pub mod kernel_text;
pub mod load;
pub mod observation;
pub mod page_cache;
pub mod perf;
pub mod processor;
pub mod program;
pub mod tlb;
pub mod transport;
