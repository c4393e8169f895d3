//! A hard disk with heads, platters, a segmented buffer and a queue.

mod bus;
mod costs;
mod drive;
mod job;
mod layout;
mod mechanics;
mod segments;
mod stream;
mod transfer;
mod write_cache;
mod zone;

pub use drive::Drive;
pub use layout::{Layout, Run, SectorPosition};
pub use mechanics::{Arm, Head};
