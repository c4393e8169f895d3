//! A solid-state disk: flash, and the layer that maps logical slots to pages of it.

mod device;
mod ftl;

pub use device::Ssd;
pub use ftl::{Collected, Ftl, SlotPosition};
