//! Disks that are computed in virtual time.
//!
//! A [`Model`] is a function of its state and the requests it gets: no clock, no I/O, and the same results for the same
//! calls. [`Definition`] reads models as text; [`catalogue`] holds those that come with iolab; [`check`] compares a
//! model with what a real drive did. Formulas, sources and the accuracy reached are in docs/MODELS.md.

pub mod catalogue;
pub mod check;
mod definition;
pub mod disk;
pub mod disksim;
mod model;
pub mod parts;
pub mod ssd;

pub use definition::{Definition, PartDefinition, ServerDefinition};
pub use model::{Completion, MILLISECOND, Model, Ns, Op, Request, Served, serve};
