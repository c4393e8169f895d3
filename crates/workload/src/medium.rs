//! What answers for the bytes of a target.

use crate::named::named;

named! {
    /// What answers for a target's bytes.
    pub enum Medium: "medium" {
        /// Devices of this machine, through the kernel.
        Storage = "storage",
        /// Memory, beyond doubt.
        Memory = "memory",
        /// A process (FUSE) or another machine (NFS, SMB, a hypervisor's shared folder): the kernel does not know what it
        /// does with them.
        Elsewhere = "elsewhere",
    }
}
