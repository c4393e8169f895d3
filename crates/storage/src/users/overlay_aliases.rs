//! Other names for a file's bytes: a file of an overlay is in one of its layers, and has another identity
//! there.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use super::super::device::Number;
use super::super::mounts::Mount;
use super::super::overlay;
use super::inventory::Inventory;
use super::mount_namespace::{Namespace, rooted};
use super::remote_files::{Handle, Server};
use super::storage_graph::FileId;

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
