//! Models as plain data and as text.
//!
//! A [`Definition`] describes a disk in TOML; [`catalogue`] contains the built-in ones.
//! [`build`](crate::build()) makes a model of a definition.
//!
//! Files to begin with: `document.rs` reading and writing, `parts.rs`, `disk.rs` and `ssd.rs` the parts, `check.rs` valid values,
//! `catalogue.rs` those in `models/*.toml`.

pub mod catalogue;
mod check;
pub mod disk;
mod document;
pub mod parts;
pub mod ssd;

pub use document::Definition;
pub use parts::PartDefinition;
