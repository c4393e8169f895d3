//! Stack below a device, down to the bottom: its disk, the devices below dm and md, the file of a loop device.
//!
//! States in which a block device does not accept iolab's requests.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, major, minor};

use super::mounts::{self, NfsMount};
use super::overlay::{self, Ground};
use super::path_lookup::NamedObject;
use super::sysfs::{self, Number};
use super::users::{PAUSE, TIMEOUT};
use iolab_workload::counters::amplifies_writes;
use iolab_workload::{Error, Result};

/// Most devices that are followed, more than any sane stack has.
const DEVICES_MAX: usize = 256;

/// Devices or server that a target's bytes pass through below the file system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stack {
    /// Device that the target lies on: major, minor.
    pub device: Option<(u32, u32)>,
    /// Disks at the bottom, in ascending order; empty if the bytes end in memory. `None` where the device is
    /// the bottom itself, or the bottom is unknown.
    pub bottom: Option<Vec<(u32, u32)>>,
    /// Known devices below `device`, in ascending order.
    pub below: Vec<(u32, u32)>,
    /// Whether a loop device is on the way: its bytes are in a file, which the page cache may hold.
    pub in_file: bool,
    /// Whether the layers pass on each byte once and add none. True for partitions, RAID 0, and loop devices
    /// with direct I/O whose file system does not multiply writes. Also for mapped devices that are linear,
    /// striped, encrypted or multipath.
    pub passes_on: bool,
    /// NFS mount that the bytes come from; `None` also if they come from several.
    pub nfs: Option<NfsMount>,
    /// Whether the file of a loop device is on another machine (NFS, SMB).
    pub in_remote_file: bool,
    /// Other devices of a file system on several devices (btrfs): any of them may have the bytes.
    pub beside: Vec<Stack>,
}

impl Stack {
    /// Stack below a block device.
    pub(super) fn of_device(device: Option<Number>) -> Self {
        Self::below_in(Path::new("/sys"), device)
    }

    /// Stack below a file that was found to lie on this device. The file's own NFS mount takes precedence over
    /// mounts of files below.
    pub(super) fn of_file(device: Option<Number>, own: Option<NfsMount>) -> Self {
        Self::of_file_in(Path::new("/sys"), device, own)
    }

    fn of_file_in(sys: &Path, device: Option<Number>, own: Option<NfsMount>) -> Self {
        let below = Self::below_in(sys, device);
        let all = device.map_or_else(Vec::new, |device| members(sys, device));
        let others = all.into_iter().filter(|other| Some(*other) != device);
        Self {
            nfs: own.or(below.nfs),
            beside: others
                .map(|other| Self::below_in(sys, Some(other)))
                .collect(),
            ..below
        }
    }

    /// This stack, then the stacks of the file system's other devices.
    pub fn each(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.beside)
    }

    /// Disks at the bottom, or the device itself if it lies on no other; `None` where neither is known.
    pub fn disks(&self) -> Option<Vec<(u32, u32)>> {
        let own = || self.device.map(|device| vec![device]);
        self.bottom.clone().or_else(own)
    }

    fn below_in(sys: &Path, device: Option<Number>) -> Self {
        let Some(number) = device else {
            return Self::default();
        };
        let mut walk = Walk {
            sys,
            seen: BTreeSet::new(),
            bottom: BTreeSet::new(),
            in_file: false,
            passes_on: true,
            served: Vec::new(),
            in_remote_file: false,
        };
        let known = walk.down(number).is_some();
        let nfs = walk.only_nfs();
        let is_bottom = walk.bottom.iter().eq([&number]);
        walk.seen.remove(&number);
        Self {
            device,
            below: walk.seen.into_iter().collect(),
            bottom: (known && !is_bottom).then(|| walk.bottom.into_iter().collect()),
            in_file: walk.in_file,
            passes_on: walk.passes_on,
            nfs,
            in_remote_file: walk.in_remote_file,
            beside: Vec::new(),
        }
    }
}

/// Devices of the file system that a device belongs to, or the device alone.
pub(super) fn members(sys: &Path, device: Number) -> Vec<Number> {
    let all = sysfs::btrfs_devices(sys).into_iter();
    let mut all = all.filter(|devices| devices.contains(&device));
    all.next().unwrap_or_else(|| vec![device])
}

struct Walk<'a> {
    sys: &'a Path,
    seen: BTreeSet<Number>,
    bottom: BTreeSet<Number>,
    in_file: bool,
    passes_on: bool,
    /// Mounts of servers and programs that files on the way lie on, each once; `None` for one other than NFS.
    served: Vec<Option<NfsMount>>,
    in_remote_file: bool,
}

impl Walk<'_> {
    /// Notes the disks below a device; `None` when they are unknown.
    fn down(&mut self, number: Number) -> Option<()> {
        if self.seen.len() >= DEVICES_MAX {
            return None;
        }
        if !self.seen.insert(number) {
            return Some(());
        }
        let folder = sysfs::folder_of(self.sys, number)?;
        if folder.join("partition").exists() {
            return self.down(sysfs::device_number(folder.parent()?)?);
        }
        let below = sysfs::linked_devices(&folder.join("slaves")).ok()?;
        if let Some(file) = sysfs::backing_file(&folder) {
            self.in_file = true;
            self.passes_on &= sysfs::value(folder.join("loop/dio")) == Some(1);
            return self.file(&file);
        }
        if below.is_empty() {
            self.bottom.insert(number);
        } else {
            self.passes_on &= passes_on(&folder, number);
        }
        below.into_iter().try_for_each(|number| self.down(number))
    }

    /// NFS mount that all of these files lie on.
    fn only_nfs(&mut self) -> Option<NfsMount> {
        match self.served.as_mut_slice() {
            [only] => only.take(),
            _ => None,
        }
    }

    fn note_served(&mut self, mount: Option<NfsMount>) {
        let number = |mount: &Option<NfsMount>| mount.as_ref().map(|mount| mount.file_system);
        if self
            .served
            .iter()
            .all(|other| number(other) != number(&mount))
        {
            self.served.push(mount);
        }
    }

    /// Adds the device that a file lies on; a file in memory has none.
    fn file(&mut self, path: &Path) -> Option<()> {
        let file = named(path)?;
        if is_in_memory(&file) {
            return Some(());
        }
        let is_served = rustix::fs::fstatfs(&file).is_ok_and(|stat| mounts::is_served_fs(&stat));
        let mount = mounts::mount_of(&file);
        let amplifies =
            |mount: &mounts::Mount| amplifies_writes(&mount.fs.kind, &mount.fs.mount_options);
        self.passes_on &= !mount.as_ref().is_some_and(amplifies);
        if let Some(mount) = mount.filter(|_| is_served) {
            self.in_remote_file |= !mount.fs.kind.starts_with("fuse");
            self.note_served(mount.nfs());
        }
        let mut devices = members(self.sys, device_of(&file)?).into_iter();
        devices.try_for_each(|number| self.down(number))
    }
}

/// Whether a mapped device or a software RAID passes on each byte once.
fn passes_on(folder: &Path, number: Number) -> bool {
    const KINDS: [&str; 4] = ["linear", "striped", "crypt", "multipath"];
    if let Ok(level) = std::fs::read_to_string(folder.join("md/level")) {
        return matches!(level.trim(), "raid0" | "linear");
    }
    let kinds = super::users::mapped_kinds(number);
    !kinds.is_empty() && kinds.iter().all(|kind| KINDS.contains(&kind.as_str()))
}

/// Block device that a file lies on, or is: major and minor. `None` for a file in memory or on another machine,
/// and if unknown.
pub fn device_under(path: &Path) -> Option<(u32, u32)> {
    named(path)
        .filter(|file| !is_in_memory(file))
        .and_then(|file| device_of(&file))
}

/// Whether a file is in memory, so that writes to it reach no device.
pub fn lies_in_memory(path: &Path) -> bool {
    named(path).is_some_and(|file| is_in_memory(&file))
}

fn named(path: &Path) -> Option<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .ok()
        .map(File::from)
}

/// Not a block device, whose node in `/dev` is on a tmpfs.
fn is_in_memory(file: &File) -> bool {
    own_number(file).is_none()
        && rustix::fs::fstatfs(file).is_ok_and(|stat| mounts::is_memory_fs(&stat))
}

fn device_of(file: &File) -> Option<Number> {
    own_number(file).or_else(|| device_below(file))
}

/// Number of a block device; `None` for other files.
fn own_number(file: &File) -> Option<Number> {
    let stat = rustix::fs::fstat(file).ok()?;
    sysfs::number_of(&stat)
}

/// Block device that an open regular file lies on, if any. For a file of an overlay, the device of the layer
/// with its bytes.
pub(super) fn device_below(file: impl AsFd) -> Option<(u32, u32)> {
    device_by_number(&file).or_else(|| match overlay::ground(&file) {
        Ground::Itself => mounts::mount_of(&file)?.source_device(),
        Ground::Layer(layer) => {
            device_by_number(&layer).or_else(|| mounts::mount_of(&layer)?.source_device())
        }
        Ground::OutOfReach => None,
    })
}

/// Device with the number of the file's file system.
fn device_by_number(file: impl AsFd) -> Option<(u32, u32)> {
    let stat = rustix::fs::fstat(file).ok()?;
    let device = (major(stat.st_dev), minor(stat.st_dev));
    let folder = format!("/sys/dev/block/{}:{}", device.0, device.1);
    Path::new(&folder).exists().then_some(device)
}

/// Checks that the device of a target and the devices below it are not suspended: requests would wait for the
/// whole suspension. To be called before any request that would wait, such as reading a directory.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused): the suspended device, and the command that resumes it.
pub(crate) fn check_awake(found: &NamedObject) -> Result<()> {
    let device = sysfs::number_of(&found.stat).or_else(|| device_below(&found.handle));
    device.map_or(Ok(()), |number| check_device(&found.path, number))
}

fn check_device(path: &Path, number: Number) -> Result<()> {
    let sys = Path::new("/sys");
    // A change of a mapping table suspends the device briefly.
    let deadline = Instant::now() + TIMEOUT;
    let name = loop {
        let mut all = std::iter::once(number).chain(Stack::of_device(Some(number)).below);
        match all.find_map(|number| suspended(sys, number)) {
            None => return Ok(()),
            Some(name) if Instant::now() >= deadline => break name,
            Some(_) => std::thread::sleep(PAUSE),
        }
    };
    Err(Error::refused(format!(
        "{} does not answer: the device mapper has suspended {name}, and every request to it waits",
        path.display()
    ))
    .hint(format!(
        "resume it (`dmsetup resume {name}`), or choose another target"
    )))
}

/// Name of a mapped device that is suspended.
fn suspended(sys: &Path, number: Number) -> Option<String> {
    let folder = sysfs::folder_of(sys, number)?;
    let is_suspended = sysfs::value(folder.join("dm/suspended")) == Some(1);
    is_suspended.then(|| {
        let name = sysfs::text_of(folder.join("dm/name"));
        name.unwrap_or_else(|| sysfs::name_of(&folder))
    })
}

/// Checks that a device accepts writes at any offset, as iolab makes them.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) for a zoned disk.
pub(crate) fn check_not_zoned(path: &Path, number: Number) -> Result<()> {
    if !is_host_managed(Path::new("/sys"), number) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{} is a zoned device (host-managed): each zone takes writes only at its write pointer, and iolab chooses offsets by itself",
        path.display()
    ))
    .hint("measure reads, or make a file system for zones on it (btrfs, f2fs) and give a directory there"))
}

/// Whether a disk, or a partition's disk, accepts only sequential writes within its zones.
fn is_host_managed(sys: &Path, number: Number) -> bool {
    let model = sysfs::folder_of(sys, number)
        .and_then(|folder| sysfs::text_of(sysfs::disk_of(&folder).join("queue/zoned")));
    model.as_deref() == Some("host-managed")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use needs::Tree;

    #[test]
    fn node_of_a_block_device_is_that_device() {
        let entries = fs::read_dir("/dev").expect("a folder").flatten();
        let numbers = entries.filter_map(|entry| {
            let stat = rustix::fs::lstat(entry.path()).ok()?;
            Some((entry.path(), sysfs::number_of(&stat)?))
        });
        let all: Vec<(PathBuf, Number)> = numbers.collect();
        if all.is_empty() {
            return needs::skip(needs::Need::BlockDevice, "/dev has no node of one");
        }
        for (path, number) in all {
            assert_eq!(device_under(&path), Some(number), "{path:?}");
            assert!(!lies_in_memory(&path), "{path:?}");
        }
    }

    /// Fake sysfs: sdq with partition sdq1, sdr, and devices that a test stacks on them.
    struct Fake(Tree);

    impl Fake {
        fn new() -> Self {
            let fake = Self(Tree::empty());
            fake.device("sdq", (259, 900));
            fake.device("sdq/sdq1", (259, 901));
            fake.file("sdq/sdq1/partition", "1");
            fake.device("sdr", (259, 910));
            fake
        }

        fn file(&self, name: &str, text: &str) {
            self.0.files("devices", &[(name, text)]);
        }

        fn device(&self, name: &str, (major, minor): Number) {
            self.file(&format!("{name}/dev"), &format!("{major}:{minor}"));
            let link = format!("dev/block/{major}:{minor}");
            self.0.link(&link, &format!("devices/{name}"));
        }

        fn put_upon(&self, upper: &str, lower: &str) {
            let name = lower.rsplit('/').next().expect("a name");
            let link = format!("devices/{upper}/slaves/{name}");
            self.0.link(&link, &format!("devices/{lower}"));
        }

        fn stack(&self, device: Number) -> Stack {
            Stack::below_in(self.0.path(), Some(device))
        }
    }

    #[test]
    fn multi_device_file_system_lies_on_each_device() {
        let fake = Fake::new();
        fake.device("sds", (259, 920));
        let on = |device| Stack::of_file_in(fake.0.path(), Some(device), None);
        assert_eq!(on((259, 910)).each().count(), 1);
        for device in ["sdr", "sds"] {
            let member = format!("fs/btrfs/4711/devices/{device}");
            fake.0.link(&member, &format!("devices/{device}"));
        }
        let devices = |stack: &Stack| -> Vec<_> { stack.each().map(|one| one.device).collect() };
        assert_eq!(
            devices(&on((259, 920))),
            [Some((259, 920)), Some((259, 910))]
        );
        assert_eq!(devices(&on((259, 900))), [Some((259, 900))]);
        // A user of one of its devices alone depends on that device only.
        assert_eq!(devices(&fake.stack((259, 910))), [Some((259, 910))]);
    }

    #[test]
    fn files_on_several_servers_have_no_common_mount() {
        let mount = |number: u32| {
            Some(NfsMount {
                point: PathBuf::from(format!("/mnt/{number}")),
                file_system: (0, number),
                server: "server:/export".to_owned(),
            })
        };
        let only = |mounts: &[Option<NfsMount>]| {
            let mut walk = Walk {
                sys: Path::new("/sys"),
                seen: BTreeSet::new(),
                bottom: BTreeSet::new(),
                in_file: true,
                passes_on: true,
                served: Vec::new(),
                in_remote_file: true,
            };
            for mount in mounts {
                walk.note_served(mount.clone());
            }
            walk.only_nfs()
        };
        assert_eq!(only(&[]), None);
        assert_eq!(only(&[mount(1), mount(1)]), mount(1));
        assert_eq!(only(&[mount(1), mount(2)]), None);
        // A file system served by a program, after an NFS one.
        assert_eq!(only(&[mount(1), None]), None);
        assert_eq!(only(&[None, None]), None);
    }

    #[test]
    fn striping_passes_each_byte_once_mirroring_does_not() {
        let passes_on = |level: &str| {
            let fake = Fake::new();
            fake.device("md9", (9, 9));
            fake.put_upon("md9", "sdq/sdq1");
            fake.put_upon("md9", "sdr");
            fake.file("md9/md/level", level);
            fake.stack((9, 9)).passes_on
        };
        assert!(passes_on("raid0"));
        assert!(!passes_on("raid1"));
    }

    #[test]
    fn mapped_devices_are_followed_to_all_their_disks() {
        let fake = Fake::new();
        fake.device("md9", (9, 9));
        fake.device("dm-7", (253, 7));
        fake.put_upon("md9", "sdq/sdq1");
        fake.put_upon("md9", "sdr");
        fake.put_upon("dm-7", "md9");
        // A cycle must not hang the walk.
        fake.put_upon("md9", "dm-7");
        let stack = fake.stack((253, 7));
        assert_eq!(stack.bottom, Some(vec![(259, 900), (259, 910)]));
        let below = [(9, 9), (259, 900), (259, 901), (259, 910)];
        assert_eq!(stack.below, below);
        assert!(!stack.in_file);
    }

    #[test]
    fn loop_device_leads_to_its_files_disk() {
        let fake = Fake::new();
        fake.device("loop3", (7, 3));
        let mut file = fake.0.path().join("a file");
        fs::write(&file, "x").expect("written");
        let back = |path: &Path| {
            fake.file("loop3/loop/backing_file", &path.display().to_string());
        };
        back(&file);
        // The disk below the file is not in this fake sysfs.
        let stack = fake.stack((7, 3));
        assert!(stack.in_file);
        file.set_extension("gone");
        back(&file);
        let stack = fake.stack((7, 3));
        assert_eq!((stack.in_file, stack.bottom), (true, None));
        let is_memory = |memory: &tempfile::NamedTempFile| {
            rustix::fs::fstatfs(memory.as_file()).is_ok_and(|stat| mounts::is_memory_fs(&stat))
        };
        let memory = tempfile::NamedTempFile::new_in("/dev/shm");
        let Some(memory) = memory.ok().filter(is_memory) else {
            return needs::skip(needs::Need::Shm, "no file in memory can be made");
        };
        back(memory.path());
        assert_eq!(fake.stack((7, 3)).bottom, Some(Vec::new()));
    }

    fn device(files: &[(&str, &str)]) -> Tree {
        let sys = Tree::empty();
        sys.files("disk", files);
        sys.link("dev/block/253:0", "disk");
        sys.link("dev/block/253:1", "disk/part");
        sys
    }

    #[test]
    fn states_are_read_as_the_kernel_writes_them() {
        let sys = device(&[
            ("dm/suspended", "1"),
            ("dm/name", "vg-lv"),
            ("queue/zoned", "none"),
        ]);
        assert_eq!(suspended(sys.path(), (253, 0)), Some("vg-lv".to_owned()));
        assert!(!is_host_managed(sys.path(), (253, 0)));
        let sys = device(&[
            ("dm/suspended", "0"),
            ("queue/zoned", "host-managed"),
            ("part/partition", "1"),
        ]);
        assert_eq!(suspended(sys.path(), (253, 0)), None);
        assert!(is_host_managed(sys.path(), (253, 0)));
        assert!(is_host_managed(sys.path(), (253, 1)));
        assert!(!is_host_managed(sys.path(), (253, 2)));
    }
}
