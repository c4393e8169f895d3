//! iolab-cluster: one run by several processes (ranks) on several hosts. Messages go along a tree; clocks are compared
//! by exchanges along the same tree, so that the root can date what any rank did, within a bound that it states.
//!
//! Nothing here does I/O or starts trials. [`link::Link`] is what a transport offers. `iolab-synthetic` has one whose time is
//! computed and one between threads, for tests and for estimates of cost.
//!
//! Files to begin with: `link.rs` what a transport offers, `tree.rs`, `handshake.rs` which ranks there are, and of which
//! build, `collectives.rs` what goes down and up, `clock.rs` the clock of another rank, `activity.rs` activity and throughput
//! within bounds, `trial.rs` one trial by all ranks, `root_order.rs` what the root has the others do, `timeouts.rs` when a
//! rank counts as lost, `outcome.rs` outcomes on their way to the root, `client.rs` what ranks that share a page cache
//! did together, `shared_counters.rs` which ranks read the same account of a device, `read_shift.rs` whose part a rank reads,
//! `launch.rs` whether mpirun or srun started several processes, `mpi.rs` the transport.

pub mod activity;
pub mod client;
pub mod clock;
pub mod collectives;
pub mod handshake;
pub mod histogram;
pub mod launch;
pub mod link;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod outcome;
pub mod participants;
pub mod read_shift;
pub mod root_order;
pub mod shared_counters;
pub mod timeouts;
pub mod tree;
pub mod trial;
pub mod wire;
