//! Files of a server that is mounted more than once. Each mount may have a number of its own, under which the kernel knows the
//! file once more. The handle by which the server knows it is the same.

use std::path::Path;

use super::super::mounts::Mount;

/// What tells a file of a server from others, see open_by_handle_at(2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handle {
    /// Files with another one differ.
    pub(super) inode: u64,
    bytes: Vec<u8>,
}

/// `MAX_HANDLE_SZ` of linux/exportfs.h.
const MOST: usize = 128;
/// Shorter ones have no more than an inode number.
const LEAST: usize = 8;

/// `struct file_handle` of linux/fs.h, with room for the longest.
#[repr(C)]
struct Raw {
    length: u32,
    kind: i32,
    bytes: [u8; MOST],
}

impl Handle {
    /// The handle of what a link of `/proc` leads to; `None` where its file system has none. Nothing is asked of a server.
    pub(super) fn at(link: &Path, inode: u64) -> Option<Self> {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(link.as_os_str().as_bytes()).ok()?;
        let mut raw = Raw {
            length: MOST as u32,
            kind: 0,
            bytes: [0; MOST],
        };
        let mut mount = 0;
        // SAFETY: the path ends with NUL. `Raw` is a `file_handle` followed by as many bytes as its `length` says, and it and
        // `mount`, to which the call writes, live on this stack.
        let answer = unsafe {
            libc::name_to_handle_at(
                libc::AT_FDCWD,
                path.as_ptr(),
                (&raw mut raw).cast(),
                &raw mut mount,
                libc::AT_SYMLINK_FOLLOW,
            )
        };
        let bytes = raw.bytes.get(..raw.length as usize)?.to_vec();
        (answer == 0 && bytes.len() >= LEAST).then_some(Self { inode, bytes })
    }

    /// Whether both are of one file. The handle that a client has of a file contains the one of its server, which contains the
    /// one of the file system there: that may be one of this machine.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (short, long) = match self.bytes.len() <= other.bytes.len() {
            true => (&self.bytes, &other.bytes),
            false => (&other.bytes, &self.bytes),
        };
        self.inode == other.inode && long.windows(short.len()).any(|part| part == short)
    }
}

/// The server of a mounted file system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Server<'a> {
    name: &'a str,
    address: Option<&'a str>,
}

impl<'a> Server<'a> {
    /// Who serves what is mounted; `None` for a file system that names no other machine.
    pub(super) fn of(mount: &'a Mount) -> Option<Self> {
        let source = mount.fs.source.as_str();
        let name = match source.strip_prefix("//") {
            Some(share) => share.split('/').next()?,
            None => source.split_once(":/").map(|(host, _)| host)?,
        };
        let mut options = mount.fs.mount_options.split(',');
        Some(Self {
            name,
            address: options.find_map(|option| option.strip_prefix("addr=")),
        })
    }

    /// Whether both are one machine, as far as name and address tell.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name || self.address.is_some() && self.address == other.address
    }
}
