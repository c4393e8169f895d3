//! What is read or written: scratch file, file, block device; how it is opened; its safety checks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

mod device;
mod direct;
mod errno;
mod existing;
mod fill;
mod folder;
mod lookup;
mod mounts;
mod scratch;
mod signature;
mod size;
mod space;
mod stack;

pub use folder::Folder;
use lookup::Found;
pub use mounts::FileSystem;
use scratch::Scratch;
pub use stack::Stack;

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A file of our own, removed when the target is dropped.
    Scratch,
    /// A file that was there before.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/zero`: not storage. Reads only.
    CharDevice,
}

/// What answers for a target's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Devices of this machine, through the kernel.
    Storage,
    /// Memory, beyond doubt.
    Memory,
    /// A process (FUSE) or another machine (NFS, SMB, a hypervisor's shared folder): the kernel does not know what it
    /// does with them.
    Elsewhere,
}

/// How much of a target is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Exactly this many bytes (user's wish): refused when they are not to be had.
    Exactly(u64),
    /// At most this many bytes (a default): cut to what is there or fits, never below `least`.
    AtMost {
        /// The wanted size, bytes.
        most: u64,
        /// The smallest useful size, bytes.
        least: u64,
    },
}

/// The user's consent to destroy what an existing target holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// None given.
    No,
    /// `--destroy-data`: what carries no known signature may be overwritten.
    Destroy,
    /// `--destroy-data=SIGNATURE`: a target carrying this signature may be overwritten too;
    /// several are separated by commas.
    DestroySignature(String),
}

/// What is needed of a target.
#[derive(Debug, Clone)]
pub struct Need {
    /// How much of it.
    pub size: Size,
    /// Whether it will be written.
    pub write: bool,
    /// Consent, for existing targets.
    pub consent: Consent,
}

/// Alignment that direct I/O needs, as `statx` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Of the buffer's address, bytes.
    pub memory: u64,
    /// Of the offset and the length, bytes.
    pub offset: u64,
}

/// How a worker opens the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenMode {
    /// For writing too.
    pub write: bool,
    /// `O_DIRECT`.
    pub direct: bool,
    /// `O_SYNC`.
    pub osync: bool,
    /// `O_DSYNC`.
    pub odsync: bool,
}

/// The flags as the C library has them: rustix 1.1 without libc gives `O_SYNC` for both.
const O_SYNC: OFlags = OFlags::from_bits_retain(libc::O_SYNC as _);
const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as _);

/// An opened and checked target. Dropping it removes a scratch file.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    kind: TargetKind,
    size: u64,
    // Declared before the file: it is dropped first, while the lock still guards the name.
    scratch: Option<Scratch>,
    file: File,
    writable: bool,
    notes: Vec<String>,
}

impl Target {
    /// Opens PATH: a directory gets a scratch file, an existing file or device is opened as `need` allows.
    ///
    /// # Errors
    /// Of kind refused when data could be lost or the file system crowded; of kind usage when PATH
    /// is missing, out of reach, of a wrong kind or too small; each with what to do next.
    pub fn open(path: &Path, need: &Need) -> Result<Self> {
        need.size.check()?;
        let found = lookup::find(path)?;
        let mut notes = Vec::new();
        if let Some(link) = &found.link {
            notes.push(format!(
                "{} is a symlink; the target is {}",
                link.display(),
                found.path.display()
            ));
        }
        match found.file_type() {
            FileType::Directory => Self::open_scratch(found, need, notes),
            FileType::RegularFile | FileType::BlockDevice => {
                Self::open_existing(&found, need, notes)
            }
            FileType::CharacterDevice => Self::open_zero(&found, need, notes),
            other => Err(wrong_kind(&found.path, other)),
        }
    }

    fn open_scratch(found: Found, need: &Need, mut notes: Vec<String>) -> Result<Self> {
        check_stores(&found)?;
        let dir = found.path;
        scratch::check_writable(&found.handle, &dir)?;
        notes.extend(scratch::remove_leftovers(&found.handle, &dir));
        let size = match space::room(&found.handle, &dir)? {
            Some(room) => {
                let room = room.saturating_sub(scratch::FOOTER_LEN);
                let (size, note) = need.size.of_room(room, &dir)?;
                notes.extend(note);
                size
            }
            None => {
                notes.push(format!(
                    "the file system of {} does not say how much space is free",
                    dir.display()
                ));
                need.size.wanted()
            }
        };
        let (scratch, file) = Scratch::create(found.handle, &dir, size)?;
        let target = Self {
            path: scratch.path().to_owned(),
            kind: TargetKind::Scratch,
            size,
            scratch: Some(scratch),
            file,
            writable: true,
            notes,
        };
        Ok(target.with_memory_note())
    }

    fn open_existing(found: &Found, need: &Need, mut notes: Vec<String>) -> Result<Self> {
        if found.file_type() == FileType::RegularFile {
            check_stores(found)?;
        }
        let existing = existing::open(found, need)?;
        notes.extend(existing.note);
        let target = Self {
            path: found.path.clone(),
            kind: existing.kind,
            size: existing.size,
            scratch: None,
            file: existing.file,
            writable: need.write,
            notes,
        };
        Ok(target.with_memory_note())
    }

    /// `/dev/zero`, the one character device that can stand in for a file when it is read.
    fn open_zero(found: &Found, need: &Need, mut notes: Vec<String>) -> Result<Self> {
        if found.stat.st_rdev != rustix::fs::makedev(1, 5) {
            return Err(wrong_kind(&found.path, FileType::CharacterDevice));
        }
        let place = found.path.display();
        if need.write {
            return Err(
                Error::refused(format!("{place} stores nothing: it cannot be written"))
                    .hint("give a directory, a file or a block device"),
            );
        }
        let file = found
            .open(OFlags::RDONLY)
            .map_err(|errno| errno::on_path("open", &found.path, errno))?;
        notes.push(format!(
            "{place} is a character device, not storage: what is measured is memory"
        ));
        Ok(Self {
            path: found.path.clone(),
            kind: TargetKind::CharDevice,
            size: need.size.wanted(),
            scratch: None,
            file,
            writable: false,
            notes,
        })
    }

    fn with_memory_note(mut self) -> Self {
        if self.is_memory() {
            self.notes.push(format!(
                "{} lies in memory (tmpfs or its like), not on storage",
                self.path.display()
            ));
        }
        self
    }

    /// The path that is read and written (of the scratch file, for a directory).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Usable bytes, after any cut.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Remarks for the user: a cut size, a followed symlink, "not storage".
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The block device it lies on (MAJOR, MINOR), when it is exactly one. A file system over
    /// several devices (btrfs) counts as lying on the one it was mounted by.
    pub fn device(&self) -> Option<(u32, u32)> {
        match self.kind {
            TargetKind::CharDevice => None,
            TargetKind::BlockDevice => device::number_of(&rustix::fs::fstat(&self.file).ok()?),
            TargetKind::Scratch | TargetKind::File => mounts::device_below(&self.file),
        }
    }

    /// The block devices below it, down to the disks.
    pub fn stack(&self) -> Stack {
        Stack::below(self.device())
    }

    /// The file system it lies on; `None` for devices.
    pub fn filesystem(&self) -> Option<FileSystem> {
        match self.kind {
            TargetKind::CharDevice | TargetKind::BlockDevice => None,
            TargetKind::Scratch | TargetKind::File => Some(mounts::mount_of(&self.file)?.fs),
        }
    }

    /// Whether it is beyond doubt no storage: a character device, or a file in tmpfs, ramfs or
    /// hugetlbfs. A RAM disk is a block device and counts as storage here.
    pub fn is_memory(&self) -> bool {
        match self.kind {
            TargetKind::CharDevice => true,
            TargetKind::BlockDevice => false,
            TargetKind::Scratch | TargetKind::File => {
                rustix::fs::fstatfs(&self.file).is_ok_and(|stat| mounts::is_memory_fs(&stat))
            }
        }
    }

    /// What answers for its bytes.
    pub fn medium(&self) -> Medium {
        let is_file = matches!(self.kind, TargetKind::Scratch | TargetKind::File);
        let is_served =
            || rustix::fs::fstatfs(&self.file).is_ok_and(|stat| mounts::is_served_fs(&stat));
        if self.is_memory() {
            Medium::Memory
        } else if is_file && is_served() {
            Medium::Elsewhere
        } else {
            Medium::Storage
        }
    }

    /// Alignment for direct I/O.
    ///
    /// # Errors
    /// When the target does not support it, with the remedy.
    pub fn direct_alignment(&self) -> Result<DirectAlignment> {
        direct::alignment(&self.file, &self.path, self.kind)
    }

    /// A new open file description of the same object, whatever its path names by now.
    ///
    /// # Errors
    /// Of kind refused when it is to be written but was opened for reading; of kind usage when
    /// the target does not support direct I/O.
    pub fn reopen(&self, mode: OpenMode) -> Result<File> {
        if mode.write && !self.writable {
            return Err(Error::refused(format!(
                "refusing to write to {}: it was opened for reading only",
                self.path.display()
            ))
            .hint("a workload that writes has to say so before the target is opened"));
        }
        let flags = [
            (mode.direct, OFlags::DIRECT),
            (mode.osync, O_SYNC),
            (mode.odsync, O_DSYNC),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .fold(OFlags::empty(), |flags, (_, flag)| flags | flag);
        let access = match mode.write {
            true => OFlags::RDWR,
            false => OFlags::RDONLY,
        };
        // No O_EXCL: on a block device the claim is held by the main descriptor.
        lookup::open_same(&self.file, &self.path, access | flags).map_err(|errno| match errno {
            Errno::INVAL if mode.direct => direct::unsupported(&self.path, "its file system"),
            _ => errno::on_path(&format!("open ({})", mode.flags()), &self.path, errno),
        })
    }

    /// The main descriptor (buffered).
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes `size()` bytes of incompressible data into a scratch file and makes them durable;
    /// nothing for other kinds. `progress` gets the bytes written so far.
    ///
    /// # Errors
    /// Of kind interrupted soon after `stop` is set; of kind failed when a write fails, with the
    /// offset and the remedy.
    pub fn fill(&self, seed: u64, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<()> {
        if self.kind != TargetKind::Scratch {
            return Ok(());
        }
        // Direct where it goes: the page cache is then left to the rest of the system.
        let direct = self
            .direct_alignment()
            .ok()
            .filter(|alignment| alignment.memory <= fill::ALIGNMENT && !self.is_memory())
            .and_then(|alignment| {
                let mode = OpenMode {
                    write: true,
                    direct: true,
                    ..OpenMode::default()
                };
                Some((self.reopen(mode).ok()?, alignment.offset))
            });
        fill::Filling {
            path: &self.path,
            buffered: &self.file,
            direct,
            region: self.size,
        }
        .run(seed, stop, progress)
    }

    /// Removes the scratch file, and tells when that fails; for other kinds nothing is removed.
    ///
    /// # Errors
    /// When somebody replaced the file by now, or it cannot be removed.
    pub fn remove(mut self) -> Result<()> {
        match &mut self.scratch {
            Some(scratch) => scratch.remove(),
            None => Ok(()),
        }
    }
}

impl OpenMode {
    /// Its flags as the kernel names them.
    fn flags(self) -> String {
        let access = if self.write { "O_RDWR" } else { "O_RDONLY" };
        [
            (true, access),
            (self.direct, "O_DIRECT"),
            (self.osync, "O_SYNC"),
            (self.odsync, "O_DSYNC"),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| name)
        .collect::<Vec<_>>()
        .join("|")
    }
}

fn wrong_kind(path: &Path, kind: FileType) -> Error {
    let what = match kind {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        _ => "of an unknown kind",
    };
    Error::usage(format!("{} is {what}, not storage", path.display()))
        .hint("give a directory, a file or a block device")
}

/// Refuses files and directories of file systems that are windows into the kernel.
fn check_stores(found: &Found) -> Result<()> {
    let stat = rustix::fs::fstatfs(&found.handle)
        .map_err(|errno| errno::on_path("look at the file system of", &found.path, errno))?;
    match mounts::kernel_fs(&stat) {
        Some(name) => Err(Error::usage(format!(
            "{} lies in {name}, which stores nothing",
            found.path.display()
        ))
        .hint("give a directory, a file or a block device of real storage")),
        None => Ok(()),
    }
}
