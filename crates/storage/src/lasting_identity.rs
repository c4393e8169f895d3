//! What tells an existing target from another one that has its name later. A run that destroys data goes on only where this is the same.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};

use super::device::Number;
use super::{Target, TargetKind, procfs, sysfs, users};

/// Deeper stacks than this do not occur; a circle would.
const DEPTH_MAX: u32 = 8;

/// Most entries of a partition table that are looked at.
const ENTRIES_MAX: u64 = 1024;

/// Where the kernel keeps an id that outlasts a restart: WWID, UUID or serial number, in the folder of a disk.
const IDS: [&str; 6] = [
    "device/wwid",
    "wwid",
    "dm/uuid",
    "md/uuid",
    "device/serial",
    "serial",
];

/// How long a text of an identity names the same target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// Of each layer, from the device down to the disks: its id, its size, and the place of what stands on it.
    pub text: String,
    /// Whether a layer has no lasting id, so that the text ends with a restart of the machine, or when that layer is attached anew.
    pub is_passing: bool,
}

/// What tells an existing target from others; nothing of a scratch file, which is made anew in each session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastingIdentity {
    /// Of a file: its device, its file system, its inode, and its time of birth or its handle; `None` where it has neither.
    pub file: Option<String>,
    /// Size of a file, bytes.
    pub file_bytes: Option<u64>,
    /// Of a device: what it is made of; `None` where a layer cannot be told from others.
    pub device: Option<DeviceIdentity>,
    /// Of a partition: its first byte on its disk, and its bytes.
    pub partition: Option<(u64, u64)>,
}

impl Target {
    /// What tells it from another target that has its name later.
    pub fn lasting_identity(&self) -> LastingIdentity {
        match self.kind {
            TargetKind::Scratch | TargetKind::CharDevice => LastingIdentity::default(),
            TargetKind::File => LastingIdentity {
                file: identity_of_file(&self.file),
                file_bytes: self.file.metadata().ok().map(|found| found.len()),
                ..LastingIdentity::default()
            },
            TargetKind::BlockDevice => {
                let kernel = Kernel {
                    sys: Path::new("/sys"),
                    boot: procfs::boot_id(),
                    open: &|number, name| users::open_node(number, name, OFlags::RDONLY).ok(),
                };
                let number = self.block_number();
                LastingIdentity {
                    device: number.and_then(|number| kernel.device(number)),
                    partition: number.and_then(|number| place(&kernel.folder(number)?)),
                    ..LastingIdentity::default()
                }
            }
        }
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}

/// What tells a file from others, at any time: an inode number is given again once its file is deleted.
fn identity_of_file(file: impl AsFd) -> Option<String> {
    let wanted = StatxFlags::BTIME | StatxFlags::INO;
    let file = file.as_fd();
    let stat = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    let born = match stat.stx_mask & StatxFlags::BTIME.bits() != 0 {
        true => format!(
            "born {}.{:09}",
            stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec
        ),
        false => {
            let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            format!("handle {:x?}", users::handle(&link, stat.stx_ino)?)
        }
    };
    // The number alone can be that of another file system after a restart.
    let system = rustix::fs::fstatfs(file).ok()?.f_fsid;
    Some(format!(
        "{}:{} {system:?} {} {born}",
        stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino
    ))
}

/// What tells of devices.
struct Kernel<'a> {
    /// `/sys`.
    sys: &'a Path,
    /// Tells this start of the machine from others.
    boot: Option<String>,
    /// Opens a device by its number and name.
    open: &'a dyn Fn(Number, &str) -> Option<File>,
}

impl Kernel<'_> {
    fn folder(&self, (major, minor): Number) -> Option<PathBuf> {
        let link = self.sys.join(format!("dev/block/{major}:{minor}"));
        link.canonicalize().ok()
    }

    /// What a device is made of, down to the disks.
    fn device(&self, number: Number) -> Option<DeviceIdentity> {
        let mut identity = DeviceIdentity {
            text: String::new(),
            is_passing: false,
        };
        identity.add(self, number, DEPTH_MAX)?;
        Some(identity)
    }
}

/// First byte and bytes of a partition on its disk; `None` where the folder is that of a disk.
fn place(folder: &Path) -> Option<(u64, u64)> {
    let bytes = |file: &str| sysfs::value(&folder.join(file))?.checked_mul(512);
    folder.join("partition").exists().then_some(())?;
    Some((bytes("start")?, bytes("size")?))
}

impl DeviceIdentity {
    /// Adds a device and what lies below it; `None` where nothing tells it from others.
    fn add(&mut self, kernel: &Kernel<'_>, number: Number, depth: u32) -> Option<()> {
        let below = depth.checked_sub(1)?;
        let own = kernel.folder(number)?;
        if own.join("partition").exists() {
            let (start, bytes) = place(&own)?;
            let parent = own.parent()?;
            let disk = sysfs::device_number(parent)?;
            let node = (kernel.open)(disk, &sysfs::name_of(parent));
            let entry = node.and_then(|node| entry_at(&node, start));
            let entry = entry.or_else(|| told_uuid(&own)).unwrap_or_default();
            self.text += &format!("partition {start}+{bytes} {entry} on ");
            return self.add(kernel, disk, below);
        }
        let text = |file: &str| {
            let text = std::fs::read_to_string(own.join(file)).ok()?;
            Some(text.trim().to_owned())
        };
        let id = IDS
            .iter()
            .find_map(|file| text(file).filter(|id| is_id(id)));
        let bytes = text("size")?;
        // The volume manager gives each volume an id of its own; other mapped devices can be on other bytes by now.
        let is_volume = id.as_deref().is_some_and(|id| id.starts_with("LVM-"));
        let table = match own.join("dm").exists() && !is_volume {
            true => users::mapped_table(number)?,
            false => String::new(),
        };
        let lasting = match sysfs::backing_file(&own) {
            Some(file) => identity_of_loop(&own, &file),
            None => id,
        };
        let named = match lasting {
            Some(lasting) => lasting,
            None => {
                self.is_passing = true;
                // The process that serves a network device is another one after it is attached anew.
                let server = text("pid").unwrap_or_default();
                format!("{} {} {server}", kernel.boot.as_ref()?, text("diskseq")?)
            }
        };
        let level = ["md/level", "md/chunk_size", "md/layout"];
        let level = level.map(|file| text(file).unwrap_or_default());
        self.text += &format!("[{named} {bytes} {table} {}", level.join(" "));
        let mut members = sysfs::linked_devices(&own.join("slaves")).ok()?;
        members.sort_unstable();
        for member in members {
            self.add(kernel, member, below)?;
        }
        self.text += "]";
        Some(())
    }
}

/// The id that the kernel tells of a partition.
fn told_uuid(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("uevent")).ok()?;
    let mut lines = text.lines();
    let uuid = lines.find_map(|line| line.strip_prefix("PARTUUID="));
    uuid.map(str::to_owned)
}

/// The id that the table on a disk gives the partition that begins at this byte: of a GPT its UUID, of an MBR the id of the disk.
fn entry_at(disk: &File, start: u64) -> Option<String> {
    let read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        disk.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let word = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    for sector in [512, 4096] {
        // UEFI specification, 5.3: place, number and size of the entries; of an entry its id and its first sector.
        let Some(header) = read(sector, 92).filter(|bytes| bytes.starts_with(b"EFI PART")) else {
            continue;
        };
        let shape = word(&header, 80)?;
        let (count, size) = (shape & u64::from(u32::MAX), shape >> 32);
        let entries = word(&header, 72)?.checked_mul(sector)?;
        for number in 0..count.min(ENTRIES_MAX) {
            let entry = read(entries.checked_add(number.checked_mul(size)?)?, 40)?;
            if word(&entry, 32)?.checked_mul(sector) == Some(start) {
                return Some(format!("{:02x?}", &entry[16..32]));
            }
        }
    }
    let sector = read(0, 512)?;
    sector
        .ends_with(&[0x55, 0xaa])
        .then(|| format!("{:02x?}", &sector[440..444]))
}

/// Whether a text tells a disk from others: some report blanks or zeros.
fn is_id(text: &str) -> bool {
    let bare = text.trim_start_matches("0x");
    bare.chars()
        .any(|c| !matches!(c, ' ' | '0' | '-' | '.' | ':'))
}

/// The file of a loop device and the part of it; `None` where its path leads nowhere from here.
fn identity_of_loop(folder: &Path, file: &Path) -> Option<String> {
    // Nothing waits for what may have that name here.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Mode::empty()).ok()?;
    let part = ["loop/offset", "loop/sizelimit"].map(|name| sysfs::value(&folder.join(name)));
    Some(format!("{} {part:?}", identity_of_file(&file)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Need;

    /// A folder that stands for `/sys`, with a disk of two partitions.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            let path = sys.path().join("devices/vda").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        put("dev", "252:0\n");
        put("size", "204800\n");
        put("diskseq", "9\n");
        for (number, start) in [("1", "2048"), ("2", "43008")] {
            put(&format!("vda{number}/partition"), number);
            put(&format!("vda{number}/start"), start);
            put(&format!("vda{number}/size"), "40960");
            put(&format!("vda{number}/dev"), &format!("252:{number}"));
        }
        files.iter().for_each(|(name, text)| put(name, text));
        let links = sys.path().join("dev/block");
        fs::create_dir_all(&links).expect("made");
        for (number, to) in [("252:0", ""), ("252:1", "/vda1"), ("252:2", "/vda2")] {
            let to = format!("../../devices/vda{to}");
            symlink(to, links.join(number)).expect("linked");
        }
        sys
    }

    fn told(sys: &Path, boot: Option<&str>, number: Number) -> Option<DeviceIdentity> {
        let kernel = Kernel {
            sys,
            boot: boot.map(str::to_owned),
            open: &|_, _| None,
        };
        kernel.device(number)
    }

    fn of(files: &[(&str, &str)], boot: &str, number: Number) -> Option<DeviceIdentity> {
        told(machine(files).path(), Some(boot), number)
    }

    #[test]
    fn a_disk_without_an_id_is_the_same_while_it_stays_attached() {
        let of = |files: &[(&str, &str)], boot| of(files, boot, (252, 0)).expect("told");
        let first = of(&[], "boot 1");
        assert!(first.is_passing);
        assert_eq!(first, of(&[], "boot 1"));
        assert_ne!(first, of(&[], "boot 2"));
        assert_ne!(first, of(&[("diskseq", "10")], "boot 1"));
        assert_ne!(first, of(&[("pid", "77")], "boot 1"), "served by another");
        let named = of(&[("serial", "S1")], "boot 1");
        assert!(!named.is_passing);
        assert_eq!(named, of(&[("serial", "S1"), ("diskseq", "10")], "boot 2"));
        assert_ne!(named, of(&[("serial", "S2")], "boot 1"));
        assert_ne!(named, of(&[("serial", "S1"), ("size", "99")], "boot 1"));
        // Zeros and blanks are no id.
        assert!(of(&[("serial", "0000 0000")], "boot 1").is_passing);
    }

    #[test]
    fn what_nothing_tells_from_others_has_no_identity() {
        let sys = machine(&[]);
        fs::remove_file(sys.path().join("devices/vda/diskseq")).expect("removed");
        assert_eq!(told(sys.path(), Some("boot 1"), (252, 0)), None);
        assert_eq!(of(&[], "boot 1", (7, 7)), None, "not there");
        assert_eq!(told(machine(&[]).path(), None, (252, 0)), None);
    }

    #[test]
    fn partitions_are_told_by_their_places() {
        let named = [("serial", "S1")];
        let of = |files: &[(&str, &str)], minor| of(files, "boot 1", (252, minor)).expect("told");
        assert_ne!(of(&named, 1), of(&named, 2));
        // The second one has become the first.
        let moved = [("serial", "S1"), ("vda1/start", "43008")];
        assert_ne!(of(&named, 1), of(&moved, 1));
        assert_eq!(of(&named, 2).text, of(&moved, 1).text);
        let anew = [("serial", "S1"), ("vda1/uevent", "PARTN=1\nPARTUUID=a-b\n")];
        assert_ne!(of(&named, 1), of(&anew, 1), "made anew at its place");
        let sys = machine(&named);
        let place = |part: &str| place(&sys.path().join("devices/vda").join(part));
        assert_eq!(place("vda2"), Some((43_008 * 512, 40_960 * 512)));
        assert_eq!(place(""), None);
    }

    #[test]
    fn the_table_on_the_disk_tells_a_partition_that_was_made_anew() {
        let disk = tempfile::tempfile().expect("a file");
        let put = |at: u64, bytes: &[u8]| disk.write_all_at(bytes, at).expect("written");
        put(0, &[0; 1 << 16]);
        assert_eq!(entry_at(&disk, 1 << 20), None, "no table");
        put(440, &[1, 2, 3, 4]);
        put(510, &[0x55, 0xaa]);
        assert_eq!(
            entry_at(&disk, 1 << 20).as_deref(),
            Some("[01, 02, 03, 04]")
        );
        for sector in [4096, 512] {
            put(sector, b"EFI PART");
            put(sector + 72, &2_u64.to_le_bytes());
            put(sector + 80, &4_u32.to_le_bytes());
            put(sector + 84, &128_u32.to_le_bytes());
            let second = 2 * sector + 128;
            put(second + 16, &[sector.to_le_bytes()[1]; 16]);
            put(second + 32, &((1 << 20) / sector).to_le_bytes());
            let expected = format!("{:02x?}", [sector.to_le_bytes()[1]; 16]);
            assert_eq!(entry_at(&disk, 1 << 20), Some(expected));
        }
        // Sizes that no table has.
        put(512 + 72, &[0xff; 16]);
        assert_eq!(entry_at(&disk, 1 << 20), None);
    }

    #[test]
    fn a_circle_has_no_identity() {
        let sys = machine(&[("serial", "S1")]);
        let slaves = sys.path().join("devices/vda/slaves");
        fs::create_dir(&slaves).expect("made");
        symlink("../../vda", slaves.join("vda")).expect("linked");
        assert_eq!(told(sys.path(), Some("boot 1"), (252, 0)), None);
    }

    #[test]
    fn another_file_of_the_same_name_is_told_from_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        let of = |path: &Path| {
            let target = Target::open(path, &Need::reading(1 << 12)).expect("opened");
            let identity = target.lasting_identity();
            assert_eq!(identity.file_bytes, Some(1 << 12));
            identity.file
        };
        let fill = || fs::write(&path, [0; 1 << 12]).expect("written");
        fill();
        let Some(first) = of(&path) else {
            return needs::skip(needs::Need::BirthTimes, folder.path().display());
        };
        assert_eq!(of(&path), Some(first.clone()));
        fs::remove_file(&path).expect("removed");
        fill();
        assert_ne!(of(&path), Some(first));
        // One that is made for a session is never another's.
        let scratch = Target::open(folder.path(), &Need::writing(1 << 12)).expect("made");
        assert_eq!(scratch.lasting_identity(), LastingIdentity::default());
        assert!(scratch.is_writable());
    }
}
