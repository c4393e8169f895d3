//! iolab-host: the clock, the counters of kernel and processor during a trial, and the description of the
//! machine and its devices. It issues none of a trial's own I/O.
//!
//! Files to begin with: `clock.rs` (time stamps), `observation.rs` (readings around the timed span),
//! `counters/` (one file per source), `perf.rs` (processor counters), `page_cache.rs` (filling and dropping
//! pages), `program.rs` (a program that runs as a trial). `device.rs` describes a block device with the devices
//! below it; `machine.rs`, `memory.rs` and `processor.rs` the machine; `cgroup.rs` limits of this process;
//! `load.rs` the load by other processes. `system_control.rs` changes kernel settings for trials.

#![allow(unsafe_code)] // system calls that no safe crate has

pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod device;
pub mod device_link;
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
pub mod witness;
