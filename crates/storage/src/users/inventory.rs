//! Devices, mounts and swap according to the kernel: `/sys`, and `/proc` for every visible mount namespace.
//!
//! File or device below a loop device, according to the loop driver (`LOOP_GET_STATUS64`, see loop(4)). A path
//! in sysfs may by now name another file, or belong to another mount namespace.
//!
//! Kernel drivers that use a block device without a claim on it, from sysfs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, major, minor};
use rustix::io::Errno;

use super::super::errno::{of_std, read_kernel_file, reason};
use super::super::mounts::{self, Mount, unescape};
use super::super::{procfs, sysfs};
use super::disk_ids;
use super::exports::{Exports, Namespace, rooted};
use super::mapper::{self, SECTOR};
use super::storage_graph::{Below, Device, FileId, Graph, Node, Piece};
use crate::sysfs::{Number, number_of};
use iolab_workload::{Error, Result};

/// Devices, mounts and swap according to the kernel.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    pub(super) graph: Graph,
    /// Mount namespaces, this process's own first.
    pub(super) namespaces: Vec<Namespace>,
    /// Files and devices used as swap.
    pub(super) swaps: Vec<PathBuf>,
    /// Names by which the files below loop devices were opened.
    pub(super) names: BTreeMap<FileId, PathBuf>,
    /// Devices of each mounted btrfs file system.
    pub(super) btrfs: Vec<Vec<Number>>,
    /// Devices that drivers use without a claim, each with the user in words.
    pub(super) unclaimed: BTreeMap<Number, String>,
    /// Devices and files that other machines use through the kernel.
    pub(super) exports: Exports,
}

/// Function that asks a loop device what it stands on.
type Ask<'a> = &'a dyn Fn(Number, &str) -> std::result::Result<Backing, Errno>;

impl Inventory {
    /// Reads all devices, mounts and swap areas that `/proc` and `/sys` list.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) when `/proc` or `/sys` cannot be read.
    pub(super) fn read() -> Result<Self> {
        let ask = |number, name: &str| {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            backing(&open_node(number, name, flags)?)
        };
        Self::read_from(Path::new("/proc"), Path::new("/sys"), &ask)
    }

    pub(super) fn read_from(proc: &Path, sys: &Path, ask: Ask) -> Result<Self> {
        let mountinfo = read_kernel_file(&proc.join("self/mountinfo"))?.ok_or_else(|| {
            untold(
                "there is no mountinfo in /proc",
                "run where /proc is mounted",
            )
        })?;
        // A kernel built without swap has no such file.
        let swaps = read_kernel_file(&proc.join("swaps"))?.unwrap_or_default();
        let own = Namespace {
            root: PathBuf::from("/"),
            process: None,
            mounts: mounts::parse(&mountinfo),
        };
        let mut inventory = Self {
            namespaces: std::iter::once(own).chain(other_namespaces(proc)).collect(),
            swaps: parse_swaps(&swaps),
            btrfs: sysfs::btrfs_devices(sys),
            unclaimed: read(sys),
            ..Self::default()
        };
        inventory.exports = Exports::read(sys, &inventory.namespaces);
        inventory.read_devices(sys, ask)?;
        Ok(inventory)
    }

    fn read_devices(&mut self, sys: &Path, ask: Ask) -> Result<()> {
        let all = sys.join("dev/block");
        let entries = std::fs::read_dir(&all)
            .map_err(unread(&all, "run where /sys is mounted and can be read"))?;
        let mut ids = BTreeMap::new();
        for entry in entries {
            let link = entry.map_err(unread(&all, "run where /sys can be read"))?;
            let link = link.path();
            let shown = std::fs::canonicalize(&link).ok().and_then(|dir| {
                let number = sysfs::device_number(&dir)?;
                Some((number, sysfs::value(dir.join("size"))?, dir))
            });
            let Some((number, sectors, dir)) = shown else {
                // A device that goes away meanwhile is skipped; its link disappears first.
                if link.symlink_metadata().is_err() {
                    continue;
                }
                return Err(untold(
                    &format!("{} leads to a device that is hidden", link.display()),
                    "run where all of /sys can be read",
                ));
            };
            let bytes = sectors.saturating_mul(SECTOR);
            let device = self.device(&dir, number, bytes, ask)?;
            // A disk of its own: a device that stands on others has no hardware id.
            if device.below == Below::Nothing && bytes > 0 {
                ids.insert(number, disk_ids::ids(&dir));
            }
            self.graph.devices.insert(number, device);
        }
        self.names
            .extend(self.exports.connect(&mut self.graph, &ids));
        ids.retain(|number, _| self.graph.devices[number].below == Below::Nothing);
        disk_ids::join(&mut self.graph, ids);
        Ok(())
    }

    fn device(&mut self, dir: &Path, number: Number, bytes: u64, ask: Ask) -> Result<Device> {
        let name = sysfs::name_of(dir);
        let slaves = linked(&dir.join("slaves"))?;
        let below = if dir.join("partition").exists() {
            let disk = dir.parent().and_then(sysfs::device_number);
            let disk = disk.ok_or_else(|| {
                untold(
                    &format!("the disk of {name} has no device number"),
                    "choose another target",
                )
            })?;
            let start = sysfs::value(dir.join("start")).ok_or_else(|| {
                untold(
                    &format!("the start of {name} cannot be read"),
                    "run where all of /sys can be read",
                )
            })?;
            let start = start.saturating_mul(SECTOR);
            Below::Partition(Piece::whole(bytes, Node::Device(disk), start))
        } else if dir.join("loop").exists() {
            self.loop_device(dir, number, &name, bytes, ask)
        } else if slaves.is_empty() {
            Below::Nothing
        } else {
            mapper::below(dir, number).unwrap_or(Below::Spread(slaves))
        };
        Ok(Device {
            name,
            bytes,
            below,
            holders: linked(&dir.join("holders"))?,
            read_only: sysfs::value(dir.join("ro")) == Some(1),
        })
    }

    /// Object below a loop device. The name of its file may be too long to show, or missing.
    fn loop_device(
        &mut self,
        dir: &Path,
        number: Number,
        name: &str,
        bytes: u64,
        ask: Ask,
    ) -> Below {
        let path = sysfs::backing_file(dir);
        let answer = ask(number, name).or_else(|errno| match &path {
            // An ordinary user may not ask; the object at the path is the best guess.
            Some(path) if !rustix::process::geteuid().is_root() => {
                named_backing(dir, path).ok_or(errno)
            }
            _ => Err(errno),
        });
        match answer {
            Ok(backing) => {
                if let (Node::File(file), Some(path)) = (backing.node, path) {
                    self.names.insert(file, path);
                }
                Below::Loop(Piece::whole(bytes, backing.node, backing.offset))
            }
            // Detached between the two looks.
            Err(Errno::NXIO) => Below::Nothing,
            Err(errno) => {
                let on = match path {
                    Some(path) => format!("stands on {}, and", path.display()),
                    None => "is set up, and".to_owned(),
                };
                Below::Unknown(format!(
                    "/dev/{name} {on} does not tell more: {}",
                    reason(errno)
                ))
            }
        }
    }

    /// Mount of a device, in words.
    pub(super) fn mounted(&self, number: Number) -> Option<String> {
        let of_btrfs = |mount: &Mount| {
            let source = mount.source_device();
            mount.fs.kind == "btrfs"
                && self
                    .btrfs
                    .iter()
                    .any(|all| all.contains(&number) && source.is_some_and(|n| all.contains(&n)))
        };
        self.namespaces.iter().find_map(|namespace| {
            let is_it = |mount: &&Mount| mount.is_of(number) || of_btrfs(mount);
            namespace.mounted(is_it)
        })
    }

    /// Mount of a file by itself, without a loop device, in words: erofs and FUSE can do that.
    pub(super) fn mounted_file(&self, file: FileId) -> Option<String> {
        self.namespaces.iter().find_map(|namespace| {
            namespace.mounted(|mount| {
                let stat = namespace.source(mount);
                stat.is_some_and(|stat| number_of(&stat).is_none() && FileId::of(&stat) == file)
            })
        })
    }

    /// Whether an image is mounted by itself under a name that leads nowhere: a relative name, or a changed
    /// one.
    pub(super) fn has_lost_image(&self) -> bool {
        self.namespaces.iter().any(|namespace| {
            let is_lost = |mount: &Mount| {
                mount.fs.kind == "erofs" && mount.device.0 == 0 && namespace.source(mount).is_none()
            };
            namespace.mounts.iter().any(is_lost)
        })
    }

    /// Mount through which an open file was reached, in any namespace: the kernel numbers all mounts alike.
    pub(super) fn mount_of(&self, file: &File) -> Option<(&Namespace, &Mount)> {
        let id = mounts::id_of(file)?;
        self.namespaces.iter().find_map(|namespace| {
            let mount = namespace.mounts.iter().find(|mount| mount.id == id)?;
            Some((namespace, mount))
        })
    }

    /// Devices below the file system of a file, which was reached through this mount.
    pub(super) fn devices_of(&self, stat: &Stat, mount: &Mount) -> Vec<Number> {
        let own = FileId::of(stat).dev;
        let named = [Some(own), Some(mount.device), mount.source_device()];
        let known = |number: &Number| self.graph.devices.contains_key(number);
        let Some(device) = named.into_iter().flatten().find(known) else {
            return Vec::new();
        };
        let together = self.btrfs.iter().find(|all| all.contains(&device));
        together.cloned().unwrap_or_else(|| vec![device])
    }

    /// Whether a file can be on an overlay, judged by the number of its file system. With layers on several
    /// file systems, an overlay has more numbers than its mount; btrfs with subvolumes has too.
    pub(super) fn may_be_overlaid(&self, file: FileId) -> bool {
        let mounts = || self.namespaces.iter().flat_map(|space| &space.mounts);
        let is_overlay = |mount: &Mount| mount.layers.is_some();
        if let Some(mount) = mounts().find(|mount| mount.device == file.dev) {
            return is_overlay(mount);
        }
        file.dev.0 == 0
            && (mounts().any(is_overlay) || !mounts().any(|mount| mount.fs.kind == "btrfs"))
    }

    /// Opens the file that a loop device stands on, without access to its content, in any namespace that has
    /// the name by which it was opened.
    pub(super) fn reach(&self, file: FileId) -> Option<File> {
        let name = self.names.get(&file)?;
        self.namespaces.iter().find_map(|namespace| {
            let path = rooted(&namespace.root, name);
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
            let stat = rustix::fs::fstat(&opened).ok()?;
            (FileId::of(&stat) == file).then(|| File::from(opened))
        })
    }

    /// Whether a device or file is used as swap.
    pub(super) fn is_swap(&self, node: Node) -> bool {
        self.swaps
            .iter()
            .filter_map(|path| rustix::fs::stat(path).ok())
            .any(|stat| match node {
                Node::Device(number) => number_of(&stat) == Some(number),
                Node::File(file) => number_of(&stat).is_none() && FileId::of(&stat) == file,
                Node::Disk(_) => false,
            })
    }

    /// Name of a node for people.
    pub(super) fn name(&self, node: Node) -> String {
        match node {
            Node::Device(number) => match self.graph.devices.get(&number) {
                Some(device) => format!("/dev/{}", device.name),
                None => format!("device {}:{}", number.0, number.1),
            },
            Node::File(file) => match self.names.get(&file) {
                Some(path) => path.display().to_string(),
                None => format!(
                    "inode {} of device {}:{}",
                    file.inode, file.dev.0, file.dev.1
                ),
            },
            Node::Disk(disk) => format!("disk {}", self.graph.disks[disk].name),
        }
    }
}

impl FileId {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            dev: (major(stat.st_dev), minor(stat.st_dev)),
            inode: stat.st_ino,
        }
    }
}

/// Opens a device by its number, wherever its node is.
///
/// # Errors
/// Errors of open(2); `ENOENT` when no node in `/dev` stands for it.
pub(in super::super) fn open_node(
    number: Number,
    name: &str,
    flags: OFlags,
) -> std::result::Result<File, Errno> {
    let by_number = format!("/dev/block/{}:{}", number.0, number.1);
    let mut last = Errno::NOENT;
    for path in [format!("/dev/{name}"), by_number] {
        // Checked before the opening: opening something else there could have effects.
        if mounts::block_device_at(Path::new(&path)) != Some(number) {
            continue;
        }
        match rustix::fs::open(&*path, flags | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) if rustix::fs::fstat(&file).is_ok_and(|s| number_of(&s) == Some(number)) => {
                return Ok(File::from(file));
            }
            Ok(_) => {}
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

/// Makes an error of one on a directory.
fn unread(dir: &Path, hint: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |error| {
        let why = format!("{}: {}", dir.display(), reason(of_std(&error)));
        untold(&why, hint)
    }
}

fn untold(what: &str, hint: &str) -> Error {
    Error::refused(format!("cannot tell whether the target is in use: {what}")).hint(hint)
}

/// Mounts in the other namespaces and roots of processes. Invisible ones are left out: the kernel's claims on
/// devices cover them, too.
fn other_namespaces(proc: &Path) -> Vec<Namespace> {
    let identity = |dir: &Path| {
        let namespace = std::fs::read_link(dir.join("ns/mnt")).ok()?;
        let root = rustix::fs::stat(dir.join("root")).ok()?;
        Some((namespace, root.st_dev, root.st_ino))
    };
    let mut known: BTreeSet<_> = identity(&proc.join("self")).into_iter().collect();
    let mut found = Vec::new();
    for process in procfs::numbers_in(proc) {
        let dir = proc.join(process.to_string());
        let Some(key) = identity(&dir) else { continue };
        if !known.insert(key) {
            continue;
        }
        if let Ok(mountinfo) = std::fs::read(dir.join("mountinfo")) {
            found.push(Namespace {
                root: dir.join("root"),
                process: Some(process),
                mounts: mounts::parse(&mountinfo),
            });
        }
    }
    found
}

/// Numbers of the devices that a sysfs directory has links to.
fn linked(dir: &Path) -> Result<Vec<Number>> {
    sysfs::linked_devices(dir).map_err(unread(
        dir,
        "run where /sys can be read, or choose another target",
    ))
}

/// Object at the name of a loop device's file.
fn named_backing(dir: &Path, path: &Path) -> Option<Backing> {
    let stat = rustix::fs::stat(path).ok()?;
    let node = match number_of(&stat) {
        Some(number) => Node::Device(number),
        None => Node::File(FileId::of(&stat)),
    };
    let offset = sysfs::value(dir.join("loop/offset")).unwrap_or(0);
    Some(Backing { node, offset })
}

/// Whether any bytes may be shown by two devices that do not know of each other, or belong to a pool: by a loop
/// device, by the device mapper, or by two paths to a disk.
pub(super) fn may_show_twice(sys: &Path) -> bool {
    let mut ids = BTreeSet::new();
    sysfs::paths_in(sys.join("block")).iter().any(|dir| {
        dir.join("loop").exists()
            || dir.join("dm").exists()
            || disk_ids::ids(dir).into_iter().any(|id| !ids.insert(id))
    })
}

fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    let first_field = |line: &[u8]| {
        let end = line.iter().position(|byte| b" \t".contains(byte))?;
        let bytes = unescape(&line[..end]);
        Some(PathBuf::from(OsString::from_vec(bytes)))
    };
    text.split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(first_field)
        .collect()
}

/// `LOOP_GET_STATUS64` of linux/loop.h.
const GET_STATUS64: libc::c_ulong = 0x4c05;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// File or device below a loop device, and the first byte that the loop device shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backing {
    pub(super) node: Node,
    pub(super) offset: u64,
}

/// Asks an open loop device what it stands on.
///
/// # Errors
/// Errors of the kernel: `ENXIO` when it is not set up.
pub(super) fn backing(device: &File) -> std::result::Result<Backing, Errno> {
    let mut info = std::mem::MaybeUninit::<LoopInfo64>::zeroed();
    // SAFETY: the request writes one `loop_info64`, whose layout `LoopInfo64` has, to memory of that size on this stack.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), GET_STATUS64 as _, info.as_mut_ptr()) };
    if answer != 0 {
        return Err(of_std(&std::io::Error::last_os_error()));
    }
    // SAFETY: it was zeroed, which is a valid value of every field, and the kernel has filled it.
    let info = unsafe { info.assume_init() };
    let numbers = |encoded: u64| (major(encoded), minor(encoded));
    let node = match info.rdevice {
        0 => Node::File(FileId {
            dev: numbers(info.device),
            inode: info.inode,
        }),
        device => Node::Device(numbers(device)),
    };
    Ok(Backing {
        node,
        offset: info.offset,
    })
}

/// Devices that drivers use without a claim, each with the user in words.
pub(super) fn read(sys: &Path) -> BTreeMap<Number, String> {
    let folders = |folder: &str| sysfs::paths_in(sys.join(folder)).into_iter();
    let flash = folders("class/ubi").filter_map(|folder| flash(&folder));
    let xen = folders("bus/xen-backend/devices").filter_map(|folder| xen(&folder));
    let exports = folders("class/rnbd-server/ctl/devices").filter_map(|folder| {
        let number = sysfs::device_number(&folder.join("block_dev"))?;
        Some((number, "exported by rnbd-server".to_owned()))
    });
    flash.chain(xen).chain(exports).collect()
}

/// Block device of flash memory below UBI volumes (Documentation/ABI/stable/sysfs-class-ubi of Linux).
fn flash(folder: &Path) -> Option<(Number, String)> {
    /// `MTD_BLOCK_MAJOR` of linux/mtd/mtd.h.
    const MTD_BLOCK: u32 = 31;
    let number = u32::try_from(sysfs::value(folder.join("mtd_num"))?).ok()?;
    let user = format!("in use by the volumes of {}", sysfs::name_of(folder));
    Some(((MTD_BLOCK, number), user))
}

/// Device used as a disk of a Xen virtual machine, in hexadecimal (drivers/block/xen-blkback/xenbus.c of
/// Linux).
fn xen(folder: &Path) -> Option<(Number, String)> {
    let text = std::fs::read_to_string(folder.join("physical_device")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let user = format!(
        "in use by a virtual machine of Xen ({})",
        sysfs::name_of(folder)
    );
    Some(((number(major)?, number(minor)?), user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    #[test]
    fn users_are_read_as_the_kernel_names_them() {
        let sys = Tree::empty();
        assert!(read(sys.path()).is_empty());
        let xen = "bus/xen-backend/devices";
        sys.files("class/ubi", &[("ubi0/mtd_num", "2"), ("version", "1")]);
        sys.files(xen, &[("vbd-1-51712/physical_device", "fd:1a")]);
        sys.files(xen, &[("vif-1-0/state", "4")]);
        let rnbd = "class/rnbd-server/ctl/devices/x/block_dev";
        sys.files(rnbd, &[("dev", "8:16")]);
        let found = read(sys.path());
        let found: Vec<(Number, &str)> = found.iter().map(|(n, user)| (*n, &**user)).collect();
        assert_eq!(
            found,
            [
                ((8, 16), "exported by rnbd-server"),
                ((31, 2), "in use by the volumes of ubi0"),
                (
                    (253, 26),
                    "in use by a virtual machine of Xen (vbd-1-51712)"
                ),
            ]
        );
    }
}
