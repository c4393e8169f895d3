//! What other tools print for the same workload on the same target.

mod fio;
mod iozone;

pub use fio::fio;
pub use iozone::iozone;

/// What stands in the table where a tool is not there.
const NOT_INSTALLED: &str = "not installed";
