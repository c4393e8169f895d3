//! Laboratory of virtual machines. Storage that hosts rarely have (device mapper, RAID, volumes, zoned disks,
//! several namespaces) runs in guests under QEMU's emulation of a processor (TCG).
//!
//! [`image`] builds kernel and root file system once and keeps them outside the tree. [`guest`] boots one guest
//! with its disks, [`pair`] two on one network. [`talk`] is the protocol of host and guest: JSON, line by line.
//! Disks of a guest are files of the host, whose checksums show every change, whatever the guest says.

pub mod guest;
pub mod image;
pub mod pair;
pub mod stack;
pub mod talk;

pub use guest::{Answer, Guest};
pub use pair::Pair;
