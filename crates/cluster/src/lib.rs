//! iolab-cluster: one run by several processes (ranks) on several hosts. Messages go along a tree, and clocks
//! are compared by exchanges along the same tree. So the root can date every rank's activity, within a stated
//! bound.
//!
//! This crate does no I/O and starts no trials. [`link::Link`] is the interface of a transport.
//! `iolab-synthetic` has one in computed time and one between threads, for tests and for estimates of cost.
//!
//! Files to begin with: `link.rs` (interface of a transport), `handshake.rs` (ranks and their
//! builds), `collectives.rs` (messages down and up). `clock.rs` has the clock of another rank, `activity.rs`
//! activity and throughput within bounds, `trial.rs` one trial by all ranks. `root_order.rs` has the root's
//! orders, `outcome.rs` outcomes on their way to the root, `shared_counters.rs` ranks that read the same account
//! of a device, `participants.rs` who takes part. `launch.rs` detects mpirun or srun, `mpi.rs` is the transport.

pub mod activity;
pub mod clock;
pub mod collectives;
pub mod handshake;
pub mod launch;
pub mod link;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod outcome;
pub mod participants;
pub mod root_order;
pub mod shared_counters;
pub mod trial;
pub mod wire;
