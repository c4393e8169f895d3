//! A hard disk with heads, platters, a segmented buffer and a queue.

mod bus;
mod costs;
mod drive;
mod layout;
mod mechanics;
mod media_stream;
mod segments;
mod transfer;
mod waiting_request;
mod write_cache;
mod zone;

pub use drive::Drive;
pub use layout::{Layout, Run, SectorPosition};
pub use mechanics::{Arm, Head};
