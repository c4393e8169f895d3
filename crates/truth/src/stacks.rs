//! Stacks of storage in which some bytes are in use: what iolab may write there, and what it must refuse.
//!
//! A [`Plan`] says what stands on what: files, loop devices over ranges of them, partitions, file systems, overlays, swap,
//! and processes that hold something open. It is drawn from a seed ([`draw`]) or written down. The [`oracle`] tells
//! from the plan alone which node is free. [`Built`] makes the stack for real, [`trial`] lets iolab write to one
//! node of it, and compares the [`contents`] of all others, before and after everything was mounted anew. A stack that fails is
//! made smaller by [`shrink`] before it is shown.

pub mod build;
pub mod contents;
pub mod draw;
pub mod holder;
pub mod mapping;
pub mod oracle;
pub mod plan;
pub mod shrink;
pub mod trial;

pub use build::Built;
pub use mapping::Mapping;
pub use oracle::Expectation;
pub use plan::{Consent, Format, Hold, Id, Plan, Step, View};
