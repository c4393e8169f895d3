//! The storage medium of a target's bytes.

use crate::named_enum::named;

named! {
    /// The storage medium of a target's bytes.
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

impl Medium {
    /// Medium of several targets together: storage only if each of them is.
    pub fn of_all(media: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut media = media.into_iter();
        let first = media.next()?;
        let others = media.find(|medium| *medium != Self::Storage);
        Some(match first {
            Self::Storage => others.unwrap_or(first),
            _ => first,
        })
    }
}
