//! How long written data lives, as the kernel is told.

use std::fs::File;
use std::os::fd::AsRawFd;

use iolab_workload::trial::WriteHint;
use iolab_workload::{Error, Result};

/// `F_GET_RW_HINT` and `F_SET_RW_HINT` of linux/fcntl.h.
const GET: libc::c_int = 1035;
const SET: libc::c_int = 1036;

/// A file whose hint is as it was once this is dropped: the kernel keeps it with the file, not with who has it open.
#[derive(Debug)]
pub(crate) struct HintedFile {
    file: File,
    /// `None` where it had this hint: another group of the trial may have given it, and restores it.
    before: Option<u64>,
}

impl HintedFile {
    /// Tells the kernel how long what is written to a file lives.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the kernel takes no hint for this file.
    pub(crate) fn new(file: &File, hint: WriteHint) -> Result<Self> {
        let refused = |error: std::io::Error| {
            Error::usage(format!(
                "the kernel takes no write hint for this file (F_SET_RW_HINT): {error}"
            ))
            .hint("set write_hint=none; only the owner of a file and root can give it one")
        };
        let file = file.try_clone().map_err(refused)?;
        let before = call(&file, GET, 0).map_err(refused)?;
        // RWH_WRITE_LIFE_NONE and those behind it.
        let number = match hint {
            WriteHint::Unspecific => 1,
            WriteHint::Short => 2,
            WriteHint::Medium => 3,
            WriteHint::Long => 4,
            WriteHint::Extreme => 5,
        };
        call(&file, SET, number).map_err(refused)?;
        Ok(Self {
            file,
            before: Some(before).filter(|before| *before != number),
        })
    }
}

impl Drop for HintedFile {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Where it is refused now, there is nothing else to do.
            let _ = call(&self.file, SET, before);
        }
    }
}

/// Gets or sets the hint; what it is after that.
fn call(file: &File, command: libc::c_int, mut hint: u64) -> std::io::Result<u64> {
    // SAFETY: both commands read or write one number of 64 bits at the address, which lives through the call.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut hint) };
    match status {
        0 => Ok(hint),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_hint_for_as_long_as_it_is_held() {
        let file = tempfile::tempfile().expect("a file");
        let before = call(&file, GET, 0).expect("a hint");
        let held = HintedFile::new(&file, WriteHint::Long).expect("a hint");
        assert_eq!(call(&file, GET, 0).expect("a hint"), 4);
        drop(held);
        assert_eq!(call(&file, GET, 0).expect("a hint"), before);
    }
}
