//! What tells an existing target from another one that has its name later. A run that destroys data goes on only where this is the same.
//!
//! A file is the same by inode, time of birth (or file handle), size, id of the file system, and size and id of the devices below. A device
//! is the same by size, vendor, model and id of the disk, and by size and id of each layer; a partition also by first byte, size and UUID
//! of its entry; a loop device by its file with offset and limit; a mapped device by its table with ids in place of numbers; a RAID by
//! UUID, level, chunk size, layout and members.
//!
//! An id is a WWID, a UUID of device mapper or md, or a serial number (of NVMe with the number of the namespace). Text that is empty, blank,
//! zero, all `f`, or that another disk of the same size has too, is not an id unless it is worldwide. A layer without an id is the same
//! only until it is attached anew or the machine restarts (`boot_id`, `diskseq`).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};

use super::device::Number;
use super::{Target, TargetKind, device_stack, sysfs, users};

/// Deeper stacks than this do not occur; a circle would.
const DEPTH_MAX: u32 = 8;

/// Most entries of a partition table that are looked at.
const ENTRIES_MAX: u64 = 1024;

/// The type of btrfs, whose files have numbers that no device has (`BTRFS_SUPER_MAGIC` of linux/magic.h).
const BTRFS: u32 = 0x9123_683e;

/// How long a text of an identity names the same target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// Of each layer, from the device down to the disks: its id, its size, and the place of what stands on it.
    pub text: String,
    /// Whether a loop device's file is known by the number of its file system, which the kernel can give to another one at any restart or mount.
    pub is_passing: bool,
}

/// What tells a file from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its inode, and its time of birth or its handle.
    pub file: String,
    /// What it lies on: the id of its file system, and the devices below that.
    pub place: String,
    /// Whether a device below has no lasting id, or is not known, so that the place holds the number of the device instead: the kernel can
    /// give it to another one at any restart or mount.
    pub is_numbered: bool,
}

/// What tells an existing target from others; nothing of a scratch file, which is made anew in each session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastingIdentity {
    /// Of a file: what it is, and where; `None` where it has neither a time of birth nor a handle.
    pub file: Option<FileIdentity>,
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
        let open = |number: Number, name: &str| users::open_node(number, name, OFlags::RDONLY).ok();
        let kernel = Kernel {
            sys: Path::new("/sys"),
            open: (self.kind == TargetKind::BlockDevice).then_some(&open),
            table: &users::mapped_table,
        };
        match self.kind {
            TargetKind::Scratch | TargetKind::CharDevice => LastingIdentity::default(),
            TargetKind::File => LastingIdentity {
                file: kernel.file(&self.file, DEPTH_MAX),
                file_bytes: self.file.metadata().ok().map(|found| found.len()),
                ..LastingIdentity::default()
            },
            TargetKind::BlockDevice => {
                let number = self.block_number();
                LastingIdentity {
                    device: number.and_then(|number| kernel.layer(number, DEPTH_MAX)),
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

/// First byte and bytes of a partition on its disk; `None` where the folder is that of a disk.
fn place(folder: &Path) -> Option<(u64, u64)> {
    let bytes = |file: &str| sysfs::value(&folder.join(file))?.checked_mul(512);
    folder.join("partition").exists().then_some(())?;
    Some((bytes("start")?, bytes("size")?))
}

/// Opens a device by its number and name.
type Opener<'a> = &'a dyn Fn(Number, &str) -> Option<File>;

/// What tells of devices.
struct Kernel<'a> {
    /// `/sys`.
    sys: &'a Path,
    /// Opens a device, to read its partition table; `None` for files, which their file system and time of birth tell
    /// from others: an ordinary user cannot read the table, and the same file has one identity for all users.
    open: Option<Opener<'a>>,
    /// The table of a mapped device.
    table: &'a dyn Fn(Number) -> Option<String>,
}

impl Kernel<'_> {
    fn folder(&self, (major, minor): Number) -> Option<PathBuf> {
        let link = self.sys.join(format!("dev/block/{major}:{minor}"));
        link.canonicalize().ok()
    }

    /// What tells a file from others, at any time: an inode number is given again once its file is deleted.
    fn file(&self, file: impl AsFd, depth: u32) -> Option<FileIdentity> {
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
        let kind = rustix::fs::fstatfs(file).ok()?.f_type;
        let system = rustix::fs::fstatvfs(file).ok()?.f_fsid;
        let number = (stat.stx_dev_major, stat.stx_dev_minor);
        let devices = match number.0 {
            0 if kind as u32 == BTRFS => match device_stack::device_below(file) {
                Some(device) => device_stack::members(self.sys, device),
                None => Vec::new(),
            },
            // An overlay or a server, whose number no device has.
            0 => Vec::new(),
            _ => vec![number],
        };
        let (place, is_numbered) = self.place_of_file(number, system, &devices, depth)?;
        Some(FileIdentity {
            file: format!("{} {born}", stat.stx_ino),
            place,
            is_numbered,
        })
    }

    /// What a file lies on, given the number of its file system, the id of that, and the devices below; and whether that holds the number.
    fn place_of_file(
        &self,
        number: Number,
        system: u64,
        devices: &[Number],
        depth: u32,
    ) -> Option<(String, bool)> {
        let below = depth.checked_sub(1)?;
        // The number alone can be that of another file system after a restart.
        let numbered = format!("{}:{} {system:x}", number.0, number.1);
        let layers = devices.iter().map(|device| self.layer(*device, below));
        let Some(layers) = layers.collect::<Option<Vec<_>>>() else {
            return Some((numbered, true));
        };
        let has_id = system != 0;
        if layers.is_empty() || !has_id || layers.iter().any(|layer| layer.is_passing) {
            return Some((numbered, true));
        }
        // XFS, FAT and F2FS give the number of the device as the id of the file system.
        let id = match system == encoded(number) {
            true => String::new(),
            false => format!("{system:x}"),
        };
        Some((format!("{id} on {}", in_order(layers)), false))
    }

    /// What a device and what lies below it are made of, down to the disks; `None` where a layer has no id. The number of an attachment
    /// (`diskseq`) is none: a zram device keeps it over a reset.
    fn layer(&self, number: Number, depth: u32) -> Option<DeviceIdentity> {
        let below = depth.checked_sub(1)?;
        let own = self.folder(number)?;
        if own.join("partition").exists() {
            return self.partition(&own, below);
        }
        let text = |file: &str| {
            let text = std::fs::read_to_string(own.join(file)).ok()?;
            Some(text.trim().to_owned())
        };
        let bytes = text("size")?;
        let members = sysfs::linked_devices(&own.join("slaves")).ok()?.into_iter();
        let members = members.map(|member| Some((member, self.layer(member, below)?)));
        let members: Vec<(Number, DeviceIdentity)> = members.collect::<Option<_>>()?;
        let mut is_passing = members.iter().any(|(_, member)| member.is_passing);
        let named = match sysfs::backing_file(&own) {
            Some(file) => self.loop_file(&own, &file, below).map(|file| {
                is_passing |= file.is_passing;
                file.text
            }),
            None => self.id(&own, &bytes),
        }?;
        // The volume manager gives each volume an id of its own; other mapped devices can be on other bytes by now.
        let is_volume = named.starts_with("LVM-");
        let mut table = String::new();
        if own.join("dm").exists() && !is_volume {
            let read = (self.table)(number)?;
            table = by_members(&read, &members)?;
        }
        let level = ["md/level", "md/chunk_size", "md/layout"];
        let level = level.map(|file| text(file).unwrap_or_default());
        let level = level.join(" ");
        let members = in_order(members.into_iter().map(|(_, member)| member));
        Some(DeviceIdentity {
            text: format!("[{named} {bytes} {table} {level}{members}]"),
            is_passing,
        })
    }

    /// A partition, given its folder, and what it lies on.
    fn partition(&self, own: &Path, depth: u32) -> Option<DeviceIdentity> {
        let (start, bytes) = place(own)?;
        let parent = own.parent()?;
        let disk = sysfs::device_number(parent)?;
        let entry = self.open.and_then(|open| {
            let node = open(disk, &sysfs::name_of(parent));
            let entry = node.and_then(|node| entry_at(&node, start));
            entry.or_else(|| told_uuid(own))
        });
        let entry = entry.unwrap_or_default();
        let disk = self.layer(disk, depth)?;
        Some(DeviceIdentity {
            text: format!("partition {start}+{bytes} {entry} on {}", disk.text),
            ..disk
        })
    }

    /// The id of a disk, which has this size; `None` where it has none, or where another disk has the same: vendors and virtual machines
    /// give some serial numbers more than once.
    fn id(&self, own: &Path, size: &str) -> Option<String> {
        let id = users::lasting_id(own)?;
        let is_other = |dir: &Path| {
            let text = std::fs::read_to_string(dir.join("size")).unwrap_or_default();
            // A path below a multipath disk of NVMe, which shows none itself, has the same id.
            sysfs::device_number(dir).is_some()
                && text.trim() == size
                && dir.canonicalize().is_ok_and(|dir| dir != own)
        };
        let all = std::fs::read_dir(self.sys.join("block")).into_iter();
        let mut others = all.flatten().flatten().map(|entry| entry.path());
        let is_shared = !id.is_worldwide
            && others.any(|dir| is_other(&dir) && users::lasting_id(&dir).as_ref() == Some(&id));
        (!is_shared).then_some(id.text)
    }

    /// The file of a loop device and the part of it; `None` where its path leads nowhere from here.
    fn loop_file(&self, folder: &Path, file: &Path, depth: u32) -> Option<DeviceIdentity> {
        // Nothing waits for what may have that name here.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = rustix::fs::open(file, flags, Mode::empty()).ok()?;
        let part = ["loop/offset", "loop/sizelimit"].map(|name| sysfs::value(&folder.join(name)));
        let FileIdentity {
            file,
            place,
            is_numbered,
        } = self.file(&file, depth)?;
        Some(DeviceIdentity {
            text: format!("{file} {place} {part:?}"),
            is_passing: is_numbered,
        })
    }
}

/// The texts of layers, in an order that does not depend on their numbers.
fn in_order(layers: impl IntoIterator<Item = DeviceIdentity>) -> String {
    let mut texts: Vec<String> = layers.into_iter().map(|layer| layer.text).collect();
    texts.sort_unstable();
    texts.concat()
}

/// The table of a mapped device with what its members are in place of their numbers, which they have by chance; `None` where it names
/// another device.
fn by_members(table: &str, members: &[(Number, DeviceIdentity)]) -> Option<String> {
    let words = table.split([' ', '\n']).map(|word| {
        let Some(number) = sysfs::parse_number(word) else {
            return Some(word);
        };
        let member = members.iter().find(|(member, _)| *member == number);
        member.map(|(_, member)| member.text.as_str())
    });
    let words: Vec<&str> = words.collect::<Option<_>>()?;
    Some(words.join(" "))
}

/// The id that file systems without one of their own make of the number of their device (`huge_encode_dev` and `u64_to_fsid` of Linux).
fn encoded((major, minor): Number) -> u64 {
    u64::from((minor & 0xff) | (major << 8) | ((minor & !0xff) << 12))
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

#[cfg(test)]
mod tests;
