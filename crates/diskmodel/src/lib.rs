//! iolab-diskmodel: disks computed in virtual time.
//!
//! A [`Model`] is a function of its state and its requests: it has no clock and no I/O, and the same calls give the same results.
//! [`build()`] makes one from a [`Definition`](crate::definition::Definition).
//! Formulas, sources and the accuracy reached are in docs/MODELS.md.
//!
//! Files to begin with: `definition.rs` models as data and as text, `disk/`, `ssd/` and `parts/` models, `build.rs` from a
//! definition to its model.

mod block_map;
mod build;
pub mod definition;
pub mod disk;
mod model;
pub mod parts;
pub mod ssd;

pub use build::build;
pub use model::{Completion, MILLISECOND, Model, Ns, Op, Request, ServedFrom, serve};
