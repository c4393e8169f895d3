//! Mounts and file systems: `/proc/self/mountinfo`, see proc_pid_mountinfo(5).
//!
//! The layers of an overlay, as the options of its mount name them.
//! Sources: Documentation/filesystems/overlayfs.rst and fs/overlayfs/params.c of Linux.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{StatFs, major, minor};

use super::sysfs::number_of;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// File system type: `ext4`, `xfs`, `tmpfs`.
    pub kind: String,
    /// Mount point.
    pub mount_point: PathBuf,
    /// Mount options, then options of the file system, comma-separated.
    pub mount_options: String,
    /// Mounted source: a device's path, or a name of the file system's own.
    pub source: String,
}

/// An NFS mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfsMount {
    /// Mount point.
    pub point: PathBuf,
    /// Number of the file system that it shows. All mounts of one file system share counters.
    pub file_system: (u32, u32),
    /// Server and export: `server:/export`.
    pub server: String,
}

/// One line of `mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(super) id: u64,
    pub(super) device: (u32, u32),
    /// Mounted part of the file system.
    pub(crate) root: PathBuf,
    /// Layers of an overlay; `None` for other file systems.
    pub(super) layers: Option<Layers>,
    pub(crate) fs: FileSystem,
}

impl Mount {
    /// Whether this mount is of the block device: by its number, or by its source if the file system has an
    /// anonymous number (btrfs).
    pub(super) fn is_of(&self, device: (u32, u32)) -> bool {
        self.device == device || (self.device.0 == 0 && self.source_device() == Some(device))
    }

    /// Description as an NFS mount; `None` for other file systems.
    pub(super) fn nfs(self) -> Option<NfsMount> {
        let is_nfs = self.fs.kind == "nfs" || self.fs.kind == "nfs4";
        is_nfs.then_some(NfsMount {
            point: self.fs.mount_point,
            file_system: self.device,
            server: self.fs.source,
        })
    }

    /// Whether the mount is a file system in user space without a device (`fuseblk` has one).
    pub(super) fn is_fuse(&self) -> bool {
        self.fs.kind == "fuse" || self.fs.kind.starts_with("fuse.")
    }

    /// Whether both show the same file system.
    pub(super) fn is_same_file_system(&self, other: &Self) -> bool {
        self.device == other.device
    }

    pub(super) fn source_device(&self) -> Option<(u32, u32)> {
        let source = Path::new(&self.fs.source);
        source
            .is_absolute()
            .then(|| block_device_at(source))
            .flatten()
    }
}

/// Number of the block device at a path.
pub(super) fn block_device_at(path: &Path) -> Option<(u32, u32)> {
    number_of(&rustix::fs::stat(path).ok()?)
}

/// Mounts in order: a later one hides what lies below it. Empty without `/proc`.
pub fn file_systems() -> Vec<FileSystem> {
    let mountinfo = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = parse(&mountinfo).into_iter();
    mounts.map(|mount| mount.fs).collect()
}

/// All mounts in the content of a `mountinfo` file; malformed lines are left out.
pub(crate) fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let text = |index: usize| {
        fields
            .get(index)
            .map(|field| String::from_utf8_lossy(&unescape(field)).into_owned())
    };
    let (major, minor) = text(2)?
        .split_once(':')
        .map(|(a, b)| (a.parse().ok(), b.parse().ok()))?;
    let path = |index: usize| {
        let bytes = unescape(fields.get(index)?);
        Some(PathBuf::from(OsString::from_vec(bytes)))
    };
    let (own, shared) = (text(5)?, text(dash + 3).unwrap_or_default());
    let mut options: Vec<&str> = own.split(',').collect();
    for option in shared.split(',') {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    let kind = text(dash + 1)?;
    Some(Mount {
        id: text(0)?.parse().ok()?,
        device: (major?, minor?),
        root: path(3)?,
        layers: (kind == "overlay")
            .then(|| Layers::of_options(fields.get(dash + 3).copied().unwrap_or_default())),
        fs: FileSystem {
            kind,
            mount_point: path(4)?,
            mount_options: options.join(","),
            source: text(dash + 2)?,
        },
    })
}

/// Number of the mount through which an open file was reached.
pub(super) fn id_of(file: impl AsFd) -> Option<u64> {
    let fdinfo = format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd());
    let text = std::fs::read_to_string(fdinfo).ok()?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    id.trim().parse().ok()
}

/// Mount through which an open file was reached.
pub(super) fn mount_of(file: impl AsFd) -> Option<Mount> {
    let mounts = parse(&std::fs::read("/proc/self/mountinfo").ok()?);
    let id = id_of(&file);
    if let Some(mount) = mounts.iter().find(|mount| Some(mount.id) == id) {
        return Some(mount.clone());
    }
    // In a chroot the mount itself may be outside; another mount of the same file system will do.
    let stat = rustix::fs::fstat(file).ok()?;
    let device = (major(stat.st_dev), minor(stat.st_dev));
    mounts
        .into_iter()
        .rev()
        .find(|mount| mount.device == device)
}

/// Whether a file system is in memory: tmpfs, ramfs, hugetlbfs (magic numbers of linux/magic.h).
pub(super) fn is_memory_fs(stat: &StatFs) -> bool {
    [0x0102_1994, 0x8584_58f6, 0x9584_58f6].contains(&(stat.f_type as u32))
}

/// Whether a file system is served by a process or another machine. Magic numbers of linux/magic.h and of the
/// file systems' own sources: FUSE and virtiofs, NFS, SMB, 9p, Ceph, AFS, Coda, VirtualBox' shared folders,
/// Lustre, OrangeFS.
pub(super) fn is_served_fs(stat: &StatFs) -> bool {
    [
        0x6573_5546, 0x0000_6969, 0xff53_4d42, 0xfe53_4d42, 0x0000_517b, 0x0102_1997, 0x00c3_6400,
        0x5346_414f, 0x6b41_4653, 0x7375_7245, 0x786f_4256, 0x0bd0_0bd0, 0x2003_0528,
    ]
    .contains(&(stat.f_type as u32))
}

/// Name that identifies a file system, and whether it is valid on every host: then the server is part of the
/// name (`server:/export`, `//server/share`).
pub(super) fn identity(file: impl AsFd) -> (String, bool) {
    let mount = mount_of(&file);
    let stat = rustix::fs::fstat(&file);
    let served = rustix::fs::fstatfs(&file).is_ok_and(|stat| is_served_fs(&stat));
    if let Some(mount) = mount.as_ref().filter(|_| served)
        && names_server(&mount.fs.source)
    {
        return (format!("{} {}", mount.fs.kind, mount.fs.source), true);
    }
    let number = stat.map_or((0, 0), |stat| (major(stat.st_dev), minor(stat.st_dev)));
    // The subvolumes of btrfs have different numbers, and one source.
    let source = mount.filter(|_| number.0 == 0);
    let (major, minor) = source.and_then(|m| m.source_device()).unwrap_or(number);
    (format!("{major}:{minor}"), false)
}

fn names_server(source: &str) -> bool {
    source.contains(':') || source.starts_with("//")
}

/// Name of a file system that is an interface to the kernel and stores nothing (magic numbers of
/// linux/magic.h). Reading there has side effects, and writing there can do any harm.
pub(super) fn kernel_fs(stat: &StatFs) -> Option<&'static str> {
    const KERNEL: &[(u32, &str)] = &[
        (0x0000_9fa0, "proc"),
        (0x6265_6572, "sysfs"),
        (0x6462_6720, "debugfs"),
        (0x7472_6163, "tracefs"),
        (0x6265_6570, "configfs"),
        (0x7363_6673, "securityfs"),
        (0xf97c_ff8c, "selinuxfs"),
        (0x0027_e0eb, "cgroup"),
        (0x6367_7270, "cgroup2"),
        (0xcafe_4a11, "bpf"),
        (0x6165_676c, "pstore"),
        (0xde5e_81e4, "efivarfs"),
        (0x0000_1cd1, "devpts"),
        (0x1980_0202, "mqueue"),
        (0x4249_4e4d, "binfmt_misc"),
        (0x6e73_6673, "nsfs"),
        (0x5049_4446, "pidfs"),
        (0x5a3c_69f0, "apparmorfs"),
        (0x4341_5d53, "smackfs"),
        (0x0765_5821, "resctrl"),
        (0x6573_5543, "fusectl"),
        (0x6e66_7364, "nfsd"),
        (0x6759_6969, "rpc_pipefs"),
        (0x6c6f_6f70, "binderfs"),
        (0xabba_1974, "xenfs"),
        (0x0000_9fa2, "usbfs"),
        (0x5345_434d, "secretmem"),
        (0x444d_4142, "dma-buf"),
    ];
    KERNEL
        .iter()
        .find(|(magic, _)| *magic == stat.f_type as u32)
        .map(|(_, name)| *name)
}

/// Undoes the kernel's `\040` for a space and its like.
pub fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

/// Folders that an overlay is made of, by the names they were mounted by. This process may know them by other
/// names: the names may be relative, or from another mount namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// Layer that is written to; `None` if the overlay is read-only.
    pub upper: Option<PathBuf>,
    /// Read-only layers, topmost first.
    pub lower: Vec<PathBuf>,
}

impl Layers {
    /// Parses the options of an overlay's superblock in `mountinfo`, escapes included.
    fn of_options(options: &[u8]) -> Self {
        let mut layers = Self::default();
        for option in options.split(|byte| *byte == b',') {
            let Some(at) = option.iter().position(|byte| *byte == b'=') else {
                continue;
            };
            let value = &option[at + 1..];
            match &option[..at] {
                b"upperdir" => layers.upper = folders(value).into_iter().next(),
                b"lowerdir" => layers.lower.extend(folders(value)),
                // One folder each, without colons and escapes of the mount's own.
                b"lowerdir+" | b"datadir+" => layers.lower.push(path(unescape(value))),
                _ => {}
            }
        }
        layers
    }

    /// All layers, in lookup order.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.upper.iter().chain(&self.lower).map(PathBuf::as_path)
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// Folders between colons. A backslash escapes the next character; Linux 6.5 to 6.7 write a colon within a name
/// as `\072` instead.
fn folders(value: &[u8]) -> Vec<PathBuf> {
    const BACKSLASH: &[u8] = b"\\134";
    let mut found = vec![Vec::new()];
    let mut rest = value;
    while let Some(&first) = rest.first() {
        if first == b':' {
            found.push(Vec::new());
            rest = &rest[1..];
            continue;
        }
        let skip = if rest.starts_with(BACKSLASH) && rest.len() > BACKSLASH.len() {
            BACKSLASH.len()
        } else {
            0
        };
        let (byte, length) = one(&rest[skip..]);
        if let Some(name) = found.last_mut() {
            name.push(byte);
        }
        rest = &rest[skip + length..];
    }
    // Two colons precede layers that hold only data.
    found.retain(|name| !name.is_empty());
    found.into_iter().map(path).collect()
}

/// First character of a field of `mountinfo`, and its length there, bytes.
fn one(field: &[u8]) -> (u8, usize) {
    let escaped = field.get(..4).map(unescape);
    match escaped.as_deref() {
        Some([byte]) => (*byte, 4),
        _ => (field.first().copied().unwrap_or_default(), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"22 27 0:21 / /proc rw,relatime - proc proc rw
36 35 98:0 /mnt1 /mnt\\040two rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue
garbage
41 31 0:38 / /a\\134b rw - btrfs /dev/null rw,subvol=/";

    proptest::proptest! {
        #[test]
        fn no_damage_panics(
            at in 0..SAMPLE.len(),
            with in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
            cut in 0..40usize,
        ) {
            let mut bytes = SAMPLE.to_vec();
            bytes.splice(at..(at + cut).min(SAMPLE.len()), with);
            proptest::prop_assert!(parse(&bytes).len() < 50);
            proptest::prop_assert!(unescape(&bytes).len() <= bytes.len());
        }
    }

    #[test]
    fn mountinfo_is_read_with_its_escapes() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[1].fs.mount_point, Path::new("/mnt two"));
        assert_eq!(mounts[1].fs.kind, "ext3");
        assert_eq!(mounts[1].fs.source, "/dev/root");
        assert_eq!(mounts[1].fs.mount_options, "rw,noatime,errors=continue");
        assert_eq!(mounts[2].fs.mount_point, Path::new("/a\\b"));
        assert!(mounts[1].is_of((98, 0)) && !mounts[1].is_of((98, 1)));
        // The source exists, but is not a block device.
        assert_eq!(mounts[2].source_device(), None);
        assert_eq!(mounts[2].root, Path::new("/"));
        assert_eq!(mounts[2].layers, None);
    }

    #[test]
    fn served_file_system_is_one_for_all_hosts() {
        for source in ["nas:/export", "//nas/share", "10.0.0.1@tcp:/lustre"] {
            assert!(names_server(source), "{source}");
        }
        for source in ["/dev/sda1", "gpfs0", "tmpfs", "/dev/fuse"] {
            assert!(!names_server(source), "{source}");
        }
        let folder = tempfile::tempdir().unwrap();
        let own = identity(std::fs::File::open(folder.path()).unwrap());
        assert_eq!(own, identity(tempfile::tempfile_in(folder.path()).unwrap()));
        let proc = std::fs::File::open("/proc").unwrap();
        assert_ne!(own, identity(proc));
    }

    fn lower(options: &str) -> Vec<PathBuf> {
        Layers::of_options(options.as_bytes()).lower
    }

    /// Options as Linux 6.18 prints them.
    #[test]
    fn layers_are_read_as_linux_prints_them() {
        let layers =
            Layers::of_options(b"rw,lowerdir=l,upperdir=/tmp/u\\040p,workdir=w,uuid=on,xino=off");
        assert_eq!(layers.upper.as_deref(), Some(Path::new("/tmp/u p")));
        assert_eq!(layers.lower, [Path::new("l")]);
        assert_eq!(layers.all().count(), 2);
        let escaped =
            r"ro,lowerdir=/t/x\040y:/t/a\134:b:/t/c\134\054d:/t/e\134\134f,redirect_dir=on";
        let expected = ["/t/x y", "/t/a:b", "/t/c,d", r"/t/e\f"].map(PathBuf::from);
        assert_eq!(lower(escaped), expected);
        let one_by_one = r"ro,lowerdir+=/t/a:b,lowerdir+=/t/e\134f,datadir+=/t/l,metacopy=on";
        let expected = ["/t/a:b", r"/t/e\f", "/t/l"].map(PathBuf::from);
        assert_eq!(lower(one_by_one), expected);
    }

    #[test]
    fn colons_separate_layers_unless_escaped() {
        assert_eq!(
            lower("lowerdir=/a:/b::/c"),
            ["/a", "/b", "/c"].map(PathBuf::from)
        );
        assert_eq!(
            lower(r"lowerdir=/a\072b:/c"),
            ["/a:b", "/c"].map(PathBuf::from)
        );
        assert_eq!(lower(r"lowerdir=/a\134"), [PathBuf::from(r"/a\")]);
        assert_eq!(lower("rw,lowerdir,index=off"), [] as [PathBuf; 0]);
    }

    proptest::proptest! {
        #[test]
        fn any_options_are_read(options in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
            let text = [b"lowerdir=", &options[..]].concat();
            for layer in Layers::of_options(&text).all() {
                proptest::prop_assert!(!layer.as_os_str().is_empty());
            }
        }
    }
}
