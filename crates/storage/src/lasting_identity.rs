//! Identity of an existing target, to distinguish it from another one with its name later. A run that destroys
//! data goes on only if the identity is unchanged.
//!
//! A file is identified by inode, time of birth (or file handle), size, id of the file system, and size and id
//! of the devices below. A device is identified by size, vendor, model and id of the disk, and by size and id
//! of each layer. A partition adds first byte, size and UUID of its entry; a loop device its file with offset
//! and limit. A mapped device adds its table and the numbers of its members; a RAID adds UUID, level, chunk size,
//! layout and members.
//!
//! An id is a WWID, a UUID of device mapper or md, or a serial number (for NVMe with the number of the
//! namespace). Text is not an id if it is empty, blank, zero or all `f`. Neither is text that another disk of
//! the same size has too, unless it is worldwide. A device with a layer without an id has no identity.
//!
//! Properties of a target that must not change during a run: its length, the blocks of a file, and the part of
//! its file that a loop device shows.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};

use super::fiemap::moves_data;
use super::sysfs::{self, Number};
use super::{Target, TargetKind, device_stack, users};
use iolab_workload::{Error, Result};

/// Deepest stack that is followed: deeper ones do not occur, but a cycle would.
const DEPTH_MAX: u32 = 8;

/// Most entries of a partition table that are examined.
const ENTRIES_MAX: u64 = 1024;

/// File system type of btrfs, whose files have device numbers that no device has (`BTRFS_SUPER_MAGIC` of
/// linux/magic.h).
const BTRFS: u32 = 0x9123_683e;

/// Identity of an existing target; empty for a scratch file, which is made anew in each session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastingIdentity {
    /// Inode of a file, its time of birth or handle, the id of its file system, and the devices below; `None` if
    /// it has neither a time of birth nor a handle.
    pub file: Option<String>,
    /// Size of a file, bytes.
    pub file_bytes: Option<u64>,
    /// Id and size of each layer of a device, and the place of the layer above; `None` if a layer cannot be
    /// identified.
    pub device: Option<String>,
    /// First byte of a partition on its disk, and its size, bytes.
    pub partition: Option<(u64, u64)>,
}

impl Target {
    /// Identity that distinguishes this target from another one with its name later.
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

    /// Whether the target was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}

/// First byte and size of a partition on its disk, bytes; `None` if the folder belongs to a whole disk.
fn place(folder: &Path) -> Option<(u64, u64)> {
    let bytes = |file: &str| sysfs::value(folder.join(file))?.checked_mul(512);
    folder.join("partition").exists().then_some(())?;
    Some((bytes("start")?, bytes("size")?))
}

/// Opens a device by its number and name.
type Opener<'a> = &'a dyn Fn(Number, &str) -> Option<File>;

/// Sources of information on devices.
struct Kernel<'a> {
    /// Root of sysfs: `/sys`.
    sys: &'a Path,
    /// Opens a device, to read its partition table. `None` for files: file system and time of birth identify
    /// them, ordinary users cannot read the table, and a file must have the same identity for all users.
    open: Option<Opener<'a>>,
    /// Table of a mapped device.
    table: &'a dyn Fn(Number) -> Option<String>,
}

impl Kernel<'_> {
    fn folder(&self, number: Number) -> Option<PathBuf> {
        sysfs::folder_of(self.sys, number)
    }

    /// Identity of a file that stays unique over time: an inode number is reused once its file is deleted.
    fn file(&self, file: impl AsFd, depth: u32) -> Option<String> {
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
                format!("handle {:x?}", users::file_handle(&link, stat.stx_ino)?)
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
        let place = self.place_of_file(number, system, &devices, depth)?;
        Some(format!("{} {born} {place}", stat.stx_ino))
    }

    /// Place of a file, by the id of its file system and the devices below, or by the number of its file system
    /// if these are unknown. The kernel may reassign that number at any restart or mount.
    fn place_of_file(
        &self,
        number: Number,
        system: u64,
        devices: &[Number],
        depth: u32,
    ) -> Option<String> {
        let below = depth.checked_sub(1)?;
        let layers = devices.iter().map(|device| self.layer(*device, below));
        let layers = layers.collect::<Option<Vec<_>>>().unwrap_or_default();
        Some(match layers.is_empty() || system == 0 {
            true => format!("{}:{} {system:x}", number.0, number.1),
            false => format!("{system:x} on {}", in_order(layers)),
        })
    }

    /// Identity of a device with all layers below; `None` if a layer has no id. The number of an attachment
    /// (`diskseq`) is not an id: a zram device keeps it over a reset.
    fn layer(&self, number: Number, depth: u32) -> Option<String> {
        let below = depth.checked_sub(1)?;
        let own = self.folder(number)?;
        if own.join("partition").exists() {
            return self.partition(&own, below);
        }
        let text = |file: &str| sysfs::text_of(own.join(file));
        let bytes = text("size")?;
        let members = sysfs::linked_devices(&own.join("slaves")).ok()?.into_iter();
        let named = match sysfs::backing_file(&own) {
            Some(file) => self.loop_file(&own, &file, below)?,
            None => self.id(&own, &bytes)?,
        };
        // The volume manager gives each volume an id of its own; other mapped devices may have been moved to
        // other bytes.
        let has_table = own.join("dm").exists() && !named.starts_with("LVM-");
        let table = match has_table {
            true => (self.table)(number)?,
            false => String::new(),
        };
        let members = members.map(|member| {
            let layer = self.layer(member, below)?;
            Some(match has_table {
                // A table names its members by number.
                true => format!("{}:{} {layer}", member.0, member.1),
                false => layer,
            })
        });
        let members: Vec<String> = members.collect::<Option<_>>()?;
        let level = ["md/level", "md/chunk_size", "md/layout"];
        let level = level.map(|file| text(file).unwrap_or_default());
        let level = level.join(" ");
        let members = in_order(members);
        Some(format!("[{named} {bytes} {table} {level}{members}]"))
    }

    /// Identity of a partition by its folder, with all layers below.
    fn partition(&self, own: &Path, depth: u32) -> Option<String> {
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
        Some(format!("partition {start}+{bytes} {entry} on {disk}"))
    }

    /// Id of a disk of this size; `None` without one, or if another disk has the same: vendors and virtual
    /// machines reuse some serial numbers.
    fn id(&self, own: &Path, size: &str) -> Option<String> {
        let id = users::lasting_id(own)?;
        let is_other = |dir: &Path| {
            let text = std::fs::read_to_string(dir.join("size")).unwrap_or_default();
            // A path below a multipath NVMe disk, which is not a block device of its own, has the same id.
            sysfs::device_number(dir).is_some()
                && text.trim() == size
                && dir.canonicalize().is_ok_and(|dir| dir != own)
        };
        let mut others = sysfs::paths_in(self.sys.join("block")).into_iter();
        let is_shared = !id.is_worldwide
            && others.any(|dir| is_other(&dir) && users::lasting_id(&dir).as_ref() == Some(&id));
        (!is_shared).then_some(id.text)
    }

    /// Identity of a loop device by its file and the part of it; `None` if the file's path leads nowhere from
    /// here.
    fn loop_file(&self, folder: &Path, file: &Path, depth: u32) -> Option<String> {
        // Opens without waiting, because the name may belong to another object here.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = rustix::fs::open(file, flags, Mode::empty()).ok()?;
        let part = ["loop/offset", "loop/sizelimit"].map(|name| sysfs::value(folder.join(name)));
        let file = self.file(&file, depth)?;
        Some(format!("{file} {part:?}"))
    }
}

/// Texts of layers, in an order that does not depend on their numbers.
fn in_order(mut layers: Vec<String>) -> String {
    layers.sort_unstable();
    layers.concat()
}

/// UUID that the kernel reports for a partition.
fn told_uuid(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("uevent")).ok()?;
    let mut lines = text.lines();
    let uuid = lines.find_map(|line| line.strip_prefix("PARTUUID="));
    uuid.map(str::to_owned)
}

/// Id of the partition that begins at byte `start`, from the table on the disk: the UUID in a GPT, the id of
/// the disk in an MBR.
fn entry_at(disk: &File, start: u64) -> Option<String> {
    let read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        disk.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let word = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    for sector in [512, 4096] {
        // UEFI specification, 5.3: place, number and size of the entries; id and first sector of an entry.
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

/// Share of a file's blocks that may disappear in a trial: blocks of extent trees, which the file system
/// merges.
const LOST_MAX: f64 = 0.05;

/// Properties of a target before a trial.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Bytes in the blocks of a file; `None` if they mean nothing.
    allocated: Option<u64>,
}

impl Target {
    /// Properties before a trial; `trims` says whether the trial gives blocks back.
    ///
    /// # Errors
    /// Of kind [`Failed`](iolab_workload::Kind::Failed): the target is shorter than it was; of kind
    /// [`Refused`](iolab_workload::Kind::Refused): a loop device shows another part of its file.
    pub fn standing(&self, trims: bool) -> Result<Standing> {
        // A moved part is shorter, too, but the move is the better reason.
        self.check_loops()?;
        self.check_length()?;
        let is_file = matches!(self.kind, TargetKind::File | TargetKind::Scratch);
        let stays = is_file && !trims && !moves_data(&self.file);
        Ok(Standing {
            allocated: stays.then(|| self.allocated()).flatten(),
        })
    }

    /// Checks after the trial that all is as it was before.
    ///
    /// # Errors
    /// As [`Target::standing`]; also if a file has lost blocks, as after a truncation and regrowth.
    pub fn check_standing(&self, before: Standing) -> Result<()> {
        self.standing(true)?;
        let lost = before
            .allocated
            .zip(self.allocated())
            .map_or(0, |(before, now)| before.saturating_sub(now));
        match lost as f64 > self.size as f64 * LOST_MAX {
            false => Ok(()),
            true => Err(self.cut("lost blocks during the trial")),
        }
    }

    fn allocated(&self) -> Option<u64> {
        let stat = rustix::fs::fstat(&self.file).ok()?;
        let blocks = u64::try_from(stat.st_blocks).ok()?.checked_mul(512)?;
        // A file system frees space that it has reserved beyond the end.
        Some(blocks.min(u64::try_from(stat.st_size).ok()?))
    }

    fn check_length(&self) -> Result<()> {
        let length = match self.kind {
            TargetKind::CharDevice => return Ok(()),
            TargetKind::BlockDevice => self.block_number().and_then(sysfs::bytes_of),
            TargetKind::File | TargetKind::Scratch => {
                let stat = rustix::fs::fstat(&self.file).ok();
                stat.and_then(|stat| u64::try_from(stat.st_size).ok())
            }
        };
        match length.is_none_or(|length| length >= self.size) {
            true => Ok(()),
            false => Err(self.cut("became shorter during the run")),
        }
    }

    fn cut(&self, what: &str) -> Error {
        Error::failed(format!(
            "{} {what}: another process has truncated it",
            self.path.display()
        ))
        .hint("the run file keeps the earlier trials; find that process before you measure again")
    }

    fn check_loops(&self) -> Result<()> {
        let number = self.block_number();
        match self.kind == TargetKind::BlockDevice && number.map(shown_parts) != self.shown {
            false => Ok(()),
            true => Err(Error::refused(format!(
                "{} is not what iolab has opened: a loop device shows another part of its file, or another file",
                self.path.display()
            ))
            .hint("the run file keeps the earlier trials; see 'losetup -l', and measure again once nothing changes it")),
        }
    }
}

/// File, offset and limit of each loop device that a device stands on.
pub(crate) fn shown_parts(number: Number) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(folder) = sysfs::folder_of(Path::new("/sys"), number) {
        add_parts(&folder, DEPTH_MAX, &mut parts);
    }
    parts
}

fn add_parts(folder: &Path, depth: u32, parts: &mut Vec<String>) {
    let Some(below) = depth.checked_sub(1) else {
        return;
    };
    let disk = sysfs::disk_of(folder);
    let text = |name: &str| std::fs::read_to_string(disk.join("loop").join(name));
    let shown = ["backing_file", "offset", "sizelimit"].map(|name| text(name).unwrap_or_default());
    if disk.join("loop").exists() {
        parts.push(shown.concat());
    }
    for member in sysfs::paths_in(disk.join("slaves")) {
        if let Ok(member) = member.canonicalize() {
            add_parts(&member, below, parts);
        }
    }
}
