//! Models as plain data and as text.
//!
//! A [`Definition`] describes a disk in TOML; [`catalogue`] contains the built-in ones; [`disksim`] reads parameter files of
//! DiskSim. [`build`](crate::build()) makes a model of a definition.
//!
//! Files to begin with: `document.rs` reading and writing, `parts.rs`, `disk.rs` and `ssd.rs` the parts, `check.rs` valid values,
//! `catalogue.rs` those in `models/*.toml`, `disksim/` parameter files of DiskSim.

pub mod catalogue;
mod check;
pub mod disk;
pub mod disksim;
mod document;
pub mod parts;
pub mod ssd;

pub use document::Definition;
pub use parts::PartDefinition;
