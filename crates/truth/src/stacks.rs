//! Stacks of storage with some bytes in use: the nodes that iolab may write to, and those it must refuse.
//!
//! A [`Plan`] describes a stack of files, loop devices over ranges of them, partitions, file systems, overlays
//! and swap, with processes that hold some of them open. It is drawn from a seed ([`draw`]) or written down.
//! The [`oracle`] decides from the plan alone which node is free. [`Built`] makes the stack for real. [`trial`]
//! lets iolab write to one node of it, and compares the [`contents`] of all others, before and after everything
//! is mounted anew. A stack that fails is reduced by [`shrink`] before it is shown.

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
