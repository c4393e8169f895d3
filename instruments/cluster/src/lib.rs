//! iolab-cluster: one run by several processes (ranks) on several hosts. Messages go along a tree, and clocks
//! are compared by exchanges along the same tree. So the root can date every rank's activity, within a stated
//! bound.
//!
//! [`link::Link`] is the interface of a transport. Tests have one between threads, and one in computed time, which also estimates costs.
//!
//! Files to begin with: `launcher.rs` (commands under mpirun or srun), `this_rank.rs` (one rank of a run),
//! `link.rs` (messages down and up). `clock.rs` has the clock of another rank, with activity within bounds, `trial.rs` one trial by
//! all ranks, `shared_counters.rs` who takes part and reads the same account of a device. `mpi.rs` is the transport.

pub mod clock;
pub mod launcher;
pub mod link;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod shared_counters;
pub mod this_rank;
#[cfg(test)]
#[path = "../tests/networks/thread_network.rs"]
mod thread_network;
pub mod trial;

// The network of tests names this crate, as other tests do.
#[cfg(test)]
extern crate self as iolab_cluster;
