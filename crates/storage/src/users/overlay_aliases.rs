//! Other names for a file's bytes: a file of an overlay is in one of its layers, and has another identity
//! there.
//!
//! Files of a server that is mounted more than once. Each mount may have its own number, by which the kernel
//! knows the file again. The server's handle of the file stays the same.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use super::super::mounts::Mount;
use super::super::overlay;
use super::exports::{Namespace, rooted};
use super::inventory::Inventory;
use super::storage_graph::FileId;
use crate::sysfs::Number;

/// Other identities and properties of a file.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    /// All identities, its own first.
    pub(super) files: Vec<FileId>,
    /// Handles of the same files without access to their content (`O_PATH`).
    pub(super) handles: Vec<File>,
    /// Whether another machine serves the file.
    pub(super) is_served: bool,
    /// Handles of served files, by which other mounts of the server know them.
    pub(super) served: Vec<Handle>,
    /// Block devices below their file systems.
    pub(super) devices: BTreeSet<Number>,
    /// Mount point of an overlay that has the file in one of its layers.
    pub(super) layer_of: Option<PathBuf>,
    /// Upper layer of an overlay, which is out of reach.
    pub(super) unreached: Option<PathBuf>,
}

/// Position of a file: its file system, by the number in mountinfo, and its path there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FileSystemPath {
    fs: Number,
    path: PathBuf,
}

impl Aliases {
    /// Finds the other identities of an open file.
    pub(super) fn of(inventory: &Inventory, file: &File) -> Self {
        let mut search = Search {
            inventory,
            found: Self::default(),
            seen: BTreeSet::new(),
        };
        search.visit(file, true);
        search.served_to_loops();
        search.found
    }
}

struct Search<'a> {
    inventory: &'a Inventory,
    found: Aliases,
    seen: BTreeSet<FileSystemPath>,
}

impl Search<'_> {
    fn visit(&mut self, file: &File, is_first: bool) {
        let Ok(stat) = rustix::fs::fstat(file) else {
            return;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let id = FileId::of(&stat);
                if !self.found.files.contains(&id) {
                    self.found.files.push(id);
                    self.found.handles.extend(file.try_clone());
                }
            }
            FileType::Directory => {}
            _ => return,
        }
        let Some((namespace, mount)) = self.inventory.mount_of(file) else {
            return;
        };
        self.found
            .devices
            .extend(self.inventory.devices_of(&stat, mount));
        if let Some(server) = Server::of(mount) {
            self.by_other_mounts(file, &stat, &server);
        }
        let Some(place) = place(file, mount) else {
            return;
        };
        if !self.seen.insert(place.clone()) {
            return;
        }
        self.above(&place, is_first);
        let upper = mount.layers.as_ref().and_then(|l| l.upper.as_ref());
        if let Some(upper) = upper {
            let reached = open_layer(namespace, mount, upper)
                .is_some_and(|folder| self.below(&stat, &place, &folder));
            if !reached {
                self.found.unreached = Some(upper.clone());
            }
        }
    }

    /// Adds the identities of a file through other mounts of its server. A matching name and address are
    /// certain; a server may have several of each, and then its handle of the file decides.
    fn by_other_mounts(&mut self, file: &File, stat: &Stat, server: &Server<'_>) {
        let id = FileId::of(stat);
        let mounts = self.inventory.namespaces.iter().flat_map(|n| &n.mounts);
        let same = mounts.filter(|mount| Server::of(mount).is_some_and(|own| own.is_same(server)));
        for mount in same {
            let other = FileId {
                dev: mount.device,
                ..id
            };
            if !self.found.files.contains(&other) {
                self.found.files.push(other);
            }
        }
        self.found.is_served = true;
        self.found.served.extend(handle(file, id));
    }

    /// Adds files below loop devices that are the same by their handles.
    fn served_to_loops(&mut self) {
        let found = &mut self.found;
        for id in self.inventory.graph.files() {
            let may_be = found.served.iter().any(|own| own.inode == id.inode);
            if !may_be || found.files.contains(&id) {
                continue;
            }
            let reached = self.inventory.reach(id);
            let other = reached.and_then(|file| handle(&file, id));
            if other.is_some_and(|other| found.served.iter().any(|own| own.is_same(&other))) {
                found.files.push(id);
            }
        }
    }

    /// Continues with the file in the upper layer of an overlay. True if that can be the layer. Lower layers
    /// are never written: a file that only they have is copied when it is opened for writing.
    fn below(&mut self, shown: &Stat, place: &FileSystemPath, upper: &File) -> bool {
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let held = open_within(upper, &place.path)
            .and_then(|file| Some((rustix::fs::fstat(&file).ok()?, file)));
        match held {
            Some((stat, file)) if is_file(&stat) && is_file(shown) => {
                let traits = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
                let is_it = traits(&stat) == traits(shown);
                if is_it {
                    self.visit(&file, false);
                }
                is_it
            }
            // Data will be written there.
            _ => {
                self.visit(upper, false);
                true
            }
        }
    }

    /// Adds the files of overlays that have this file in one of their layers.
    fn above(&mut self, place: &FileSystemPath, is_first: bool) {
        for namespace in &self.inventory.namespaces {
            for mount in &namespace.mounts {
                let layers = mount.layers.iter().flat_map(|layers| layers.all());
                for layer in layers {
                    let folder = open_layer(namespace, mount, layer);
                    let lies = folder.and_then(|folder| {
                        let (_, below) = self.inventory.mount_of(&folder)?;
                        self::place(&folder, below)
                    });
                    let Some(within) = lies.and_then(|lies| place.within(&lies)) else {
                        continue;
                    };
                    if is_first {
                        self.found.layer_of = Some(mount.fs.mount_point.clone());
                    }
                    let shown = Path::new("/").join(within);
                    let Ok(shown) = shown.strip_prefix(&mount.root) else {
                        continue;
                    };
                    let path = rooted(&namespace.root, &mount.fs.mount_point).join(shown);
                    if let Some(file) = open(&path) {
                        self.visit(&file, false);
                    }
                }
            }
        }
    }
}

impl FileSystemPath {
    /// Path from a folder to this place, if it is inside.
    fn within(&self, folder: &Self) -> Option<PathBuf> {
        let within = self.path.strip_prefix(&folder.path).ok()?;
        (self.fs == folder.fs).then(|| within.to_owned())
    }
}

fn handle(file: &File, id: FileId) -> Option<Handle> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    Handle::at(Path::new(&link), id.inode)
}

fn place(file: &File, mount: &Mount) -> Option<FileSystemPath> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let within = name.strip_prefix(&mount.fs.mount_point).ok()?;
    Some(FileSystemPath {
        fs: mount.device,
        path: mount.root.join(within),
    })
}

/// Folder that is a layer of an overlay, by the name that the mounting process may have used.
fn open_layer(namespace: &Namespace, mount: &Mount, layer: &Path) -> Option<File> {
    let named = overlay::places(layer, &mount.fs.mount_point);
    let in_namespace = named.iter().map(|path| rooted(&namespace.root, path));
    // Container engines mount overlays by names of the host, which may be the present root.
    in_namespace
        .chain(named.iter().cloned())
        .filter_map(|path| open(&path))
        .find(is_directory)
}

fn is_directory(file: &File) -> bool {
    let stat = rustix::fs::fstat(file);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn open(path: &Path) -> Option<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    opened.ok().map(File::from)
}

fn open_within(folder: &File, path: &Path) -> Option<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = path.strip_prefix("/").unwrap_or(path);
    let opened = rustix::fs::openat(folder, within, flags, Mode::empty());
    opened.ok().map(File::from)
}

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
pub(crate) fn file_handle(link: &Path, inode: u64) -> Option<Vec<u8>> {
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
    use super::*;
    use crate::mounts;

    fn file_handle(inode: u64, bytes: &[u8]) -> Handle {
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
            file_handle(15, &[&[0, 0, 0, 0, 15], export, name, &[0, 0]].concat())
        };
        let root = served(b"root", &ext4);
        assert!(root.is_same(&root.clone()));
        assert!(root.is_same(&served(b"a deeper one", &ext4)));
        assert!(root.is_same(&file_handle(15, &ext4)) && file_handle(15, &ext4).is_same(&root));
        // Another generation; another inode.
        let other = [15, 0, 0, 0, 0xa1, 0xb2, 0xc3, 0xd5];
        assert!(!root.is_same(&served(b"root", &other)));
        assert!(!root.is_same(&file_handle(15, &other)));
        assert!(!root.is_same(&Handle {
            inode: 16,
            ..root.clone()
        }));
        // Handles that two servers pad with zeros.
        let filled = |name: u8| file_handle(15, &[&[name; 12][..], &[0; 16]].concat());
        assert!(!filled(1).is_same(&filled(2)));
    }

    #[test]
    fn an_open_file_has_one_handle() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = rustix::fs::stat(file.path()).unwrap().st_ino;
        let Some(own) = Handle::at(file.path(), inode) else {
            return needs::skip(needs::Need::FileHandles, "none of a temporary file");
        };
        let open = File::open(file.path()).unwrap();
        let link = format!("/proc/self/fd/{}", AsRawFd::as_raw_fd(&open));
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
