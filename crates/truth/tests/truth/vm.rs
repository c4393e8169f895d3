//! Cases in a guest: iolab on storage that hosts rarely have, and data there that must not change.
//!
//! Guests serve the cases one after another: one for safety, one for evidence, one for the random stacks, two
//! for runs by several hosts, and two for file servers. A guest that does not answer is ended, and the next
//! case boots another. The cost of each case of the first three is printed as a line of JSON.
//!
//!     cargo test -p iolab-truth --test truth vm::
//!
//! `IOLAB_STATIC` names a static binary instead of the built one. `IOLAB_TRUTH_STACKS` and `IOLAB_TRUTH_SEED`
//! choose the random stacks as in `stacks`.

mod evidence;
mod hosts;
mod kernels;
mod lab;
mod layers;
mod nfs;
mod pair;
mod safety;
mod witness;
