//! Events that wake the serving process.

use std::io::Write;
use std::os::unix::net::UnixStream;

/// Reason to wake the serving process: one byte through a socket, so that the process can wait for it and for
/// signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Data was written for which there was no memory, for the first time.
    Full = b'f' as isize,
    /// The disk was unmounted, or can no longer serve.
    Unmounted = b'u' as isize,
}

impl Wake {
    /// The event that a byte stands for; `None` for a byte that is not one of ours.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let all = [Wake::Full, Wake::Unmounted];
        all.into_iter().find(|wake| *wake as u8 == byte)
    }

    pub(crate) fn ring(self, mut bell: &UnixStream) {
        // A closed receiver means that the process is already ending.
        let _ = bell.write_all(&[self as u8]);
    }
}
