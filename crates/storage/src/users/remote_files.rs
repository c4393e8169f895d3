//! Files of a server that is mounted more than once. Each mount may have its own number, by which the kernel
//! knows the file again. The server's handle of the file stays the same.

use std::path::Path;

use super::super::mounts::Mount;

/// Identity of a file on a server, see open_by_handle_at(2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handle {
    /// Inode; files with different inodes differ.
    pub(super) inode: u64,
    bytes: Vec<u8>,
}

/// `MAX_HANDLE_SZ` of linux/exportfs.h.
const MOST: usize = 128;
/// Shortest useful handle, bytes: shorter ones have only an inode number.
const LEAST: usize = 8;

/// `struct file_handle` of linux/fs.h, with room for the longest.
#[repr(C)]
struct Raw {
    length: u32,
    kind: i32,
    bytes: [u8; MOST],
}

impl Handle {
    /// Handle of the object at a link of `/proc`; `None` if its file system has none. Sends no request to a
    /// server.
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

    /// Whether both handles are of one file. A client's handle contains the server's handle, which contains the
    /// handle in the file system there; that may be on this machine. It begins with the name of the export and
    /// ends with the name of the file, so two exports of one file system share the end.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (short, long) = match self.bytes.len() <= other.bytes.len() {
            true => (&self.bytes, &other.bytes),
            false => (&other.bytes, &self.bytes),
        };
        let is_within = || long.windows(short.len()).any(|part| part == short);
        let ends = short.iter().rev().zip(long.iter().rev());
        let end: Vec<u8> = ends
            .take_while(|(a, b)| a == b)
            .map(|(byte, _)| *byte)
            .collect();
        // An inode number and a random generation, not the filler of a fixed-length handle.
        let is_name = end.len() >= LEAST && end.iter().filter(|byte| **byte != 0).count() >= 4;
        self.inode == other.inode && (is_name || is_within())
    }
}

/// Handle of the object at a link of `/proc`, as bytes; `None` if its file system has none.
pub(in super::super) fn handle(link: &Path, inode: u64) -> Option<Vec<u8>> {
    Handle::at(link, inode).map(|handle| handle.bytes)
}

/// Server of a mounted file system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Server<'a> {
    name: &'a str,
    address: Option<&'a str>,
}

impl<'a> Server<'a> {
    /// Server of a mount; `None` for a file system that names no other machine.
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

    /// Whether both are one machine, judged by name and address.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name || self.address.is_some() && self.address == other.address
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::mounts;
    use super::*;

    fn handle(inode: u64, bytes: &[u8]) -> Handle {
        Handle {
            inode,
            bytes: bytes.to_vec(),
        }
    }

    /// Handles of Linux 6.1: of ext4, and of NFS from two exports of it.
    #[test]
    fn a_file_is_known_by_its_handle() {
        let ext4 = [15, 0, 0, 0, 0xa1, 0xb2, 0xc3, 0xd4];
        let served = |export: &[u8], name: &[u8]| {
            handle(15, &[&[0, 0, 0, 0, 15], export, name, &[0, 0]].concat())
        };
        let root = served(b"root", &ext4);
        assert!(root.is_same(&root.clone()));
        assert!(root.is_same(&served(b"a deeper one", &ext4)));
        assert!(root.is_same(&handle(15, &ext4)) && handle(15, &ext4).is_same(&root));
        // Another generation; another inode.
        let other = [15, 0, 0, 0, 0xa1, 0xb2, 0xc3, 0xd5];
        assert!(!root.is_same(&served(b"root", &other)));
        assert!(!root.is_same(&handle(15, &other)));
        assert!(!root.is_same(&Handle {
            inode: 16,
            ..root.clone()
        }));
        // Handles that two servers pad with zeros.
        let filled = |name: u8| handle(15, &[&[name; 12][..], &[0; 16]].concat());
        assert!(!filled(1).is_same(&filled(2)));
    }

    #[test]
    fn an_open_file_has_one_handle() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = rustix::fs::stat(file.path()).unwrap().st_ino;
        let Some(own) = Handle::at(file.path(), inode) else {
            return needs::skip(needs::Need::FileHandles, "none of a temporary file");
        };
        let open = std::fs::File::open(file.path()).unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        assert_eq!(Handle::at(Path::new(&link), inode), Some(own));
        assert_eq!(Handle::at(Path::new("/no such file"), inode), None);
    }

    #[test]
    fn a_server_is_known_by_name_or_address() {
        let mounts = |source: &str, options: &str| {
            mounts::parse(format!("39 29 0:32 / /a rw - nfs4 {source} rw,{options}\n").as_bytes())
        };
        let is_one = |a: (&str, &str), b: (&str, &str)| {
            let (a, b) = (mounts(a.0, a.1), mounts(b.0, b.1));
            let other = Server::of(&b[0]).expect("a server");
            Server::of(&a[0]).expect("a server").is_same(&other)
        };
        let nas = ("nas:/", "addr=10.0.0.1");
        assert!(is_one(nas, ("nas:/sub", "addr=10.0.0.2")));
        assert!(is_one(nas, ("10.0.0.1:/", "addr=10.0.0.1")));
        assert!(!is_one(nas, ("box:/", "addr=10.0.0.2")));
        assert!(!is_one(("nas:/", "vers=3"), ("box:/", "vers=3")));
        assert!(is_one(("//nas/share", "vers=3"), ("//nas/other", "vers=3")));
        assert!(is_one(
            ("[fe80::1]:/", "vers=3"),
            ("[fe80::1]:/x", "vers=3")
        ));
        for source in ["/dev/sda1", "tmpfs", "none"] {
            assert_eq!(Server::of(&mounts(source, "x")[0]), None);
        }
    }
}
