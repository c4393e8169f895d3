//! Disks that are computed in virtual time.
//!
//! A [`Model`] is a function of its state and the requests it gets: no clock, no I/O, and the same results for the same
//! calls. [`build()`] makes it of a [`Definition`](crate::definition::Definition); [`check`] compares a model with what a
//! real drive did. Formulas, sources and the accuracy reached are in docs/MODELS.md.
//!
//! Files to begin with: `disk/`, `ssd/`, `parts/`, `build.rs` from a definition to its model.

mod build;
pub mod check;
pub mod definition;
pub mod disk;
mod model;
pub mod parts;
pub mod ssd;

pub use build::build;
pub use model::{Completion, MILLISECOND, Model, Ns, Op, Request, ServedFrom, serve};
