//! iolab-cluster: one run by several processes (ranks) on several hosts. Messages go along a tree, and clocks
//! are compared by exchanges along the same tree. So the root can date every rank's activity, within a stated
//! bound.
//!
//! This crate does no I/O and starts no trials. [`link::Link`] is the interface of a transport.
//! `iolab-synthetic` has one in computed time and one between threads, for tests and for estimates of cost.
//!
//! Files to begin with: `link.rs` (messages down and up). `clock.rs` has the clock of another rank, with activity within
//! bounds, `trial.rs` one trial by all ranks, `shared_counters.rs` who takes part and reads the same account of a
//! device. `launch.rs` detects mpirun or srun, `mpi.rs` is the transport.

pub mod clock;
pub mod launch;
pub mod link;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod shared_counters;
pub mod trial;
