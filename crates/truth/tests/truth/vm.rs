//! Cases in a guest: what iolab says of storage that no host has at hand, and what it leaves alone there.
//!
//! One guest serves the cases of safety, one after another, one those of evidence, one the random stacks, two those of several hosts, and
//! two those of file servers; one that does not answer is ended, and the next case boots another. What each case of the first three took is
//! printed as a line of JSON.
//!
//!     cargo test -p iolab-truth --test truth vm::
//!
//! `IOLAB_STATIC` names a static binary instead of the one that is built. `IOLAB_TRUTH_STACKS` and `IOLAB_TRUTH_SEED` choose
//! the random stacks as in `stacks`.

mod evidence;
mod hosts;
mod kernels;
mod lab;
mod layers;
mod nfs;
mod pair;
mod safety;
mod witness;
