//! A solid-state disk: flash behind a page-mapped translation layer.

mod device;
mod ftl;

pub use device::Ssd;
pub use ftl::{Collected, Ftl, SlotPosition};
