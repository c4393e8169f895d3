//! Targets with known behaviour, and what iolab must print about them.
//!
//! A [`Scenario`] is one row of the truth table: how its target is made, the workload, and what the `iolab` binary must answer.
//! The tests of this crate run every row; the example `matrix` adds what other tools print about the same targets.
//!
//! Everything made is private: files, mounts and devices belong to a scene and are removed with it, also when a test panics, is
//! interrupted or killed (see [`cleanup`]). Nothing that existed before is touched.

pub mod binary;
pub mod cleanup;
pub mod device;
pub mod files;
pub mod fuse;
pub mod iolab;
pub mod neighbours;
pub mod overlay;
pub mod ranks;
pub mod real_time;
pub mod reference_tools;
pub mod scattered_memory;
pub mod scenarios;
pub mod scene;
pub mod served;
pub mod stacks;
pub mod system;
pub mod vm;
pub mod workload;

pub use scenarios::{Expect, Scenario};
pub use scene::Scene;
pub use system::{Made, Unmade};
