//! iolab-machine: What this computer, its file system and its device are, and what to expect of them

pub mod capture;
pub mod cgroup;
pub mod device;
pub mod doctor;
pub mod link;
pub mod load;
pub mod processor;
mod tlb;
#[cfg(test)]
mod tree;
