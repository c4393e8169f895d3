//! Targets whose behaviour is known, and what iolab must say of them.
//!
//! A [`Scenario`] is one row of the truth table: how its target is made, what is asked of it, and what the `iolab`
//! binary must answer. The tests of this crate perform every row; the example `matrix` puts what other tools print on
//! the same targets beside it.
//!
//! All that is made is private: files, mounts and loop devices live in a temporary folder and are taken down when
//! they are dropped, also by a test that panics. Nothing that existed before is touched.

pub mod device;
pub mod files;
pub mod fuse;
pub mod iolab;
pub mod rivals;
pub mod scenarios;
pub mod scene;
pub mod system;
pub mod workload;

pub use scenarios::{Expect, Scenario};
pub use scene::Scene;
pub use system::{Made, Missing};
