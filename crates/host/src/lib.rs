//! iolab-host: the clock, the counters of kernel and processor during a trial, and the description of the
//! machine and its devices. It issues none of a trial's own I/O.
//!
//! Files to begin with: `clock.rs` (time stamps), `observation.rs` (readings around the timed span),
//! `counters/` (one file per source), `perf.rs` (processor counters), `program.rs` (a program that runs as a
//! trial). `device.rs` describes a block device with the devices below it; `machine.rs` and `processor.rs` the
//! machine with its load; `cgroup.rs` limits of this process. `system_control.rs` changes kernel settings for
//! trials.

#![allow(unsafe_code)] // system calls that no safe crate has

pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod device;
pub mod machine;
pub mod observation;
pub mod perf;
pub mod processor;
pub mod program;
pub mod pseudo_files;
pub mod system_control;
pub mod tracing;
pub mod witness;
