//! What stores the bytes of a target.

use crate::named_enum::named;

named! {
    /// What stores the bytes of a target.
    #[derive(Default)]
    pub enum Medium: "medium" {
        /// Devices of this machine, through the kernel.
        #[default]
        Storage = "storage",
        /// Certainly memory.
        Memory = "memory",
        /// A process (FUSE) or another machine (NFS, SMB, a hypervisor's shared folder), about whose storage the kernel knows
        /// nothing.
        Elsewhere = "elsewhere",
    }
}
