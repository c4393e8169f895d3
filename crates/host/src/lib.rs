//! iolab-host: the clock, what kernel and processor count while a trial runs, and what they say of the machine and its
//! devices. Issues no I/O of a trial itself.
//!
//! Files to begin with: `clock.rs` stamps, `observation.rs` what is read around the timed span, `counters/` one file
//! per source, `perf.rs` the processor's counters, `page_cache.rs` filling and dropping pages, `program.rs` a program
//! that runs as a trial; `device.rs` a block device with those below it, `machine.rs`, `memory.rs` and `processor.rs`
//! the machine, `cgroup.rs` limits of this process, `load.rs` what other processes do, `system_control.rs` settings of the kernel that
//! trials change.

#![allow(unsafe_code)] // system calls that no safe crate has

pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod device;
pub mod device_link;
#[cfg(test)]
mod fake_sysfs;
pub mod load;
pub mod machine;
pub mod memory;
pub mod observation;
pub mod page_cache;
pub mod perf;
pub mod processor;
pub mod program;
pub mod pseudo_files;
pub mod realtime_limit;
pub mod system_control;
pub mod thermometer;
pub mod tlb;
pub mod tracing;
pub mod transport;
pub mod witness;
