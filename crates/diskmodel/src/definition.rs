//! Models as plain data and as text.
//!
//! A [`Definition`] says what a modelled disk is made of, in TOML; [`catalogue`] holds those that come with iolab; [`disksim`]
//! reads parameter files of DiskSim. `iolab-diskmodel` computes the disks. It is optimised for millions of requests; a definition is
//! read a few times in a run, and apart from it is compiled in little time.
//!
//! Files to begin with: `document.rs` what is read and written, `parts.rs`, `disk.rs` and `ssd.rs` what it is made
//! of, `check.rs` what values may be, `catalogue.rs` those in `models/*.toml`, `disksim/` parameter files of DiskSim.

pub mod catalogue;
mod check;
pub mod disk;
pub mod disksim;
mod document;
pub mod parts;
pub mod ssd;

pub use document::Definition;
pub use parts::PartDefinition;
