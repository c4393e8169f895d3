//! iolab-cluster: one run by several processes (ranks) on several hosts. Messages go along a tree; clocks are compared
//! by exchanges along the same tree, so that the root can date what any rank did, within a bound that it states.
//!
//! Nothing here does I/O or starts trials. [`link::Link`] is what a transport offers; [`virtual_network`] is one whose
//! time is computed, for tests and for estimates of cost.

pub mod accounts;
pub mod client;
pub mod clock;
pub mod greeting;
pub mod histogram;
pub mod in_process;
pub mod launch;
pub mod link;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod order;
pub mod outcome;
pub mod roster;
pub mod shift;
pub mod span;
pub mod team;
pub mod timeouts;
pub mod tree;
pub mod trial;
pub mod virtual_network;
pub mod wire;
