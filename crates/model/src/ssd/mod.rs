//! A solid-state disk: flash behind a page-mapped translation layer.

pub mod definition;
mod device;
mod ftl;

pub use definition::SsdDefinition;
pub use device::Ssd;
pub use ftl::{Collected, Ftl, Spot};
