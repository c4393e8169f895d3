//! A laboratory of virtual machines: what no host has at hand (device mapper, RAID, volumes, zoned disks, several namespaces)
//! runs in guests under QEMU's emulation of a processor (TCG).
//!
//! [`image`] builds kernel and root file system once and keeps them outside the tree; [`guest`] boots one with its disks,
//! [`pair`] two on one network, and [`talk`] is what host and guest say to each other: JSON, line by line. Disks of a guest are files of the host, whose
//! checksums tell what has changed whatever the guest says.

pub mod guest;
pub mod image;
pub mod pair;
pub mod stack;
pub mod talk;

pub use guest::{Answer, Guest};
pub use pair::Pair;
