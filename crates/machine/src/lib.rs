//! iolab-machine: What this computer, its file system and its device are, and what to expect of them
//!
//! Files to begin with: `capture.rs` the environment, `doctor.rs` with one rule a function in `doctor/rules/`.

pub mod capture;
pub mod cgroup;
pub mod device;
pub mod doctor;
mod kernel_text;
pub mod link;
pub mod load;
pub mod processor;
mod tlb;
pub mod transport;
#[cfg(test)]
mod tree;
