//! iolab-storage: targets that trials read or write (scratch file, file, block device), with their opening,
//! consent, and detection of other users of their bytes.
//!
//! Files to begin with: `lib.rs` (the `Target`), `open_existing.rs` and `scratch.rs` (the two ways to get one),
//! `path_lookup.rs` (access for other programs), `users/` (other users of storage), `signature/` (content
//! of storage). `target_size.rs`, `space.rs` and `space_sources.rs` decide the size and where the space comes
//! from. docs/SAFETY.md has the promise; the doc comments of `users.rs`, `lasting_identity.rs`, `signature.rs`
//! and `space_sources.rs` have the rules.

#![allow(unsafe_code)] // system calls that no safe crate has

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use rustix::fs::FileType;

use iolab_workload::region_state::Medium;
use iolab_workload::{Error, Result};

mod device_stack;
mod direct_io;
mod errno;
mod extra_files;
pub mod fiemap;
mod inspected_target;
mod lasting_identity;
mod mounts;
mod open;
mod open_existing;
mod overlay;
mod path_lookup;
pub mod procfs;
mod program_files;
mod purge;
mod scratch;
pub mod sectors;
mod signature;
mod space;
mod space_sources;
pub mod sysfs;
mod target_need;
mod target_size;
mod users;

pub use device_stack::{Stack, device_under, lies_in_memory};
pub use direct_io::OpenMode;
pub use extra_files::{ExtraFiles, PrivateFiles};
pub use fiemap::{next_data, seek_holes};
pub use inspected_target::Opened;
pub use lasting_identity::{LastingIdentity, Standing};
use mounts::Mount;
pub use mounts::{FileSystem, Layers, NfsMount, file_systems, unescape};
pub use overlay::{Layering, is_overlaid};
pub use path_lookup::Lent;
use path_lookup::NamedObject;
pub use purge::{PURGE_MAX, Purge, is_nvme_namespace, nvme_log_page};
use scratch::Scratch;
pub use scratch::{ScratchRemover, leftover_bytes};
pub use space::{Demand, check_together};
use space_sources::Sources;
pub use space_sources::{free, taken};
pub use target_need::{Consent, Need, Share};
pub use target_size::Size;
pub use users::mapped_kinds;

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A file made by iolab, removed when the target is dropped.
    Scratch,
    /// A file that existed before.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as `/dev/zero`: not storage. Reads only.
    CharDevice,
}

/// Alignment of the parts of a file that several processes fill, bytes.
const FILL_UNIT: u64 = 1 << 12;

/// Alignment that direct I/O needs, as `statx` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Alignment of the buffer's address, bytes.
    pub memory: u64,
    /// Alignment of offset and length, bytes.
    pub offset: u64,
}

/// An opened and checked target. Dropping it removes a scratch file.
#[derive(Debug)]
pub struct Target {
    private: Vec<Target>,
    path: PathBuf,
    kind: TargetKind,
    size: u64,
    // Number of this process among those that fill the file, and their count.
    portion: (u64, u64),
    // Bytes that fresh files of trials take in the same directory.
    fresh: u64,
    // Declared before the name: NFS keeps the removed name of an open file.
    file: File,
    scratch: Option<Scratch>,
    /// Other paths to a writable device, held open exclusively so that they cannot be mounted.
    _claims: Vec<File>,
    writable: bool,
    notes: Vec<String>,
    // For a device, the part of its file that each loop device below showed at opening.
    shown: Option<Vec<String>>,
    // Cached: the stack below does not change while the target is open, and is needed around every trial.
    stack: OnceLock<Stack>,
    holder: OnceLock<Option<File>>,
}

impl Target {
    /// Joins the run of another process on this or another host, which made the scratch directory at `path`. Uses
    /// the file in it, and makes a scratch directory for this process's worker files. Dropping the target removes only the
    /// latter.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) when the file is not a scratch file of this size; of
    /// kind [`Usage`](iolab_workload::Kind::Usage) when it is out of reach.
    pub fn join(path: &Path, share: &Share) -> Result<Self> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        let found = path_lookup::find(dir)?;
        check_stores(&found)?;
        users::check_directory(&found)?;
        scratch::check_writable(&found.handle, dir)?;
        let (scratch, file) = Scratch::join(&found.handle, path, share.bytes)?;
        let mut target = Self::of_scratch(scratch, file, share.bytes, Vec::new());
        target.portion = (share.rank.into(), share.ranks.max(1).into());
        target.private = share
            .private
            .iter()
            .map(|bytes| target.beside(*bytes))
            .collect::<Result<_>>()?;
        Ok(target)
    }

    /// Target that is only read, with no files of its own.
    fn of(path: PathBuf, kind: TargetKind, size: u64, file: File, notes: Vec<String>) -> Self {
        Self {
            private: Vec::new(),
            path,
            kind,
            size,
            portion: (0, 1),
            fresh: 0,
            scratch: None,
            file,
            _claims: Vec::new(),
            writable: false,
            notes,
            shown: None,
            stack: OnceLock::new(),
            holder: OnceLock::new(),
        }
    }

    /// Target for a scratch file that has just been created.
    fn of_scratch(scratch: Scratch, file: File, size: u64, notes: Vec<String>) -> Self {
        let path = scratch.path().to_owned();
        Self {
            scratch: Some(scratch),
            writable: true,
            ..Self::of(path, TargetKind::Scratch, size, file, notes)
        }
    }

    /// An empty file for `bytes` bytes, which belongs to this scratch file and is removed when it is dropped.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when this is not a scratch file; otherwise the file
    /// cannot be made.
    pub fn beside(&self, bytes: u64) -> Result<Self> {
        let Some(scratch) = &self.scratch else {
            return Err(no_scratch(&self.path));
        };
        let (scratch, file) = scratch.numbered_beside(bytes)?;
        Ok(Self::of_scratch(scratch, file, bytes, Vec::new()))
    }

    /// Private file of a worker by its number; the first worker's files come first.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when the file was not requested when the target was
    /// opened, or is smaller than `bytes`.
    pub fn private_file(&self, number: usize, bytes: u64) -> Result<&Self> {
        self.private
            .get(number)
            .filter(|file| file.size >= bytes)
            .ok_or_else(|| no_scratch(&self.path))
    }

    fn with_memory_note(mut self) -> Self {
        if self.is_memory() {
            self.notes.push(format!(
                "{} is in memory (tmpfs or similar), not on storage",
                self.named().display()
            ));
        }
        self
    }

    /// Path that is read and written; for a directory, the path of the scratch file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path that the user named, for messages: the directory with the scratch directory, otherwise the path itself.
    pub fn named(&self) -> &Path {
        match &self.scratch {
            Some(scratch) => scratch.dir_path().parent().unwrap_or(&self.path),
            None => &self.path,
        }
    }

    /// Path by which another process joins the target ([`Target::join`]) or opens it.
    pub fn shared_path(&self) -> &Path {
        self.scratch.as_ref().map_or(&self.path, Scratch::dir_path)
    }

    /// Kind of the target.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Usable bytes, after any reduction.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that [`Target::fill`] writes into a scratch file and its private files; 0 for other kinds.
    pub fn fill_bytes(&self) -> u64 {
        match self.kind {
            TargetKind::Scratch => {
                self.private.iter().map(|file| file.size).sum::<u64>() + self.own_bytes()
            }
            _ => 0,
        }
    }

    /// Space that the target and its extra files take from file systems and memory; empty for existing files
    /// and devices. A scratch file made by another process ([`Target::join`]) is counted there.
    ///
    /// # Errors
    /// The file system cannot be asked.
    pub fn demands(&self) -> Result<Vec<Demand>> {
        let Some(scratch) = &self.scratch else {
            return Ok(Vec::new());
        };
        let beside: u64 = self.private.iter().map(|file| file.size).sum();
        let made = match self.portion {
            (0, _) => self.size + self.fresh,
            _ => 0,
        };
        Sources::of_directory(scratch.dir(), self.named())?.demands(self.size, beside + made)
    }

    /// Bytes that new files on its file system may take, a reserve for the rest of the system left out; `None`
    /// for devices, and where the file system does not say.
    pub fn room(&self) -> Option<u64> {
        let is_file = matches!(self.kind, TargetKind::Scratch | TargetKind::File);
        let sources = Sources::of_directory(&self.file, self.named());
        let sources = sources.ok().filter(|_| is_file)?;
        sources.room().ok()?.map(|(bytes, _)| bytes)
    }

    /// Divides the filling of the scratch file among `ranks` processes ([`Target::join`]): this one fills the
    /// first part.
    pub fn divide(&mut self, ranks: u32) {
        if self.kind == TargetKind::Scratch {
            self.portion = (0, ranks.max(1).into());
        }
    }

    /// Range of the file that this process fills.
    fn own_range(&self) -> Range<u64> {
        let (number, of) = self.portion;
        let at = |number: u64| match number == of {
            true => self.size,
            false => {
                let start = u128::from(self.size) * u128::from(number) / u128::from(of);
                start as u64 / FILL_UNIT * FILL_UNIT
            }
        };
        at(number)..at(number + 1)
    }

    fn own_bytes(&self) -> u64 {
        let range = self.own_range();
        range.end - range.start
    }

    /// Remarks for the user: a reduced size, a followed symlink, "not storage".
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Block device that it lies on (major, minor), if it is exactly one. A file system on several devices
    /// (btrfs) counts as lying on the one it was mounted by; [`stack`](Self::stack) has the others. A file of
    /// an overlay counts as lying on the device of the layer with its bytes, if within reach.
    pub fn device(&self) -> Option<(u32, u32)> {
        match self.kind {
            TargetKind::CharDevice => None,
            TargetKind::BlockDevice => self.block_number(),
            TargetKind::Scratch | TargetKind::File => device_stack::device_below(self.holder()),
        }
    }

    /// Number of the block device that it is.
    fn block_number(&self) -> Option<sysfs::Number> {
        sysfs::number_of(&rustix::fs::fstat(&self.file).ok()?)
    }

    /// Whether the target is the same file or device as `other`, by any name, or another path to it.
    pub fn is_same(&self, other: &Self) -> bool {
        let identity = |target: &Self| {
            let stat = rustix::fs::fstat(&target.file).ok()?;
            Some(match target.kind {
                TargetKind::Scratch | TargetKind::File => (stat.st_dev, stat.st_ino),
                TargetKind::BlockDevice | TargetKind::CharDevice => (stat.st_rdev, 0),
            })
        };
        let is_one = identity(self).is_some_and(|own| identity(other) == Some(own));
        let is_path = || {
            let (own, other) = (self.block_number()?, other.block_number()?);
            Some(users::are_paths_to_same(own, other))
        };
        self.kind == other.kind && (is_one || is_path().unwrap_or(false))
    }

    /// Block devices below it, down to the disks, or the NFS mount that it lies on.
    pub fn stack(&self) -> &Stack {
        self.stack.get_or_init(|| match self.kind {
            TargetKind::CharDevice | TargetKind::BlockDevice => Stack::of_device(self.device()),
            TargetKind::Scratch | TargetKind::File => {
                Stack::of_file(self.device(), self.mount().and_then(Mount::nfs))
            }
        })
    }

    /// File system that it lies on; `None` for devices.
    pub fn filesystem(&self) -> Option<FileSystem> {
        self.mount().map(|mount| mount.fs)
    }

    fn mount(&self) -> Option<Mount> {
        match self.kind {
            TargetKind::CharDevice | TargetKind::BlockDevice => None,
            TargetKind::Scratch | TargetKind::File => mounts::mount_of(&self.file),
        }
    }

    /// Position in an overlay; `None` if it does not lie in one.
    pub fn layering(&self) -> Option<Layering> {
        match self.kind {
            TargetKind::CharDevice | TargetKind::BlockDevice => None,
            TargetKind::Scratch | TargetKind::File => overlay::layering(&self.file),
        }
    }

    /// Whether the target is certainly not storage: a character device, or a file in tmpfs, ramfs or hugetlbfs.
    /// A RAM disk is a block device and counts as storage here.
    pub fn is_memory(&self) -> bool {
        match self.kind {
            TargetKind::CharDevice => true,
            TargetKind::BlockDevice => false,
            TargetKind::Scratch | TargetKind::File => {
                rustix::fs::fstatfs(self.holder()).is_ok_and(|stat| mounts::is_memory_fs(&stat))
            }
        }
    }

    /// Medium that holds its bytes.
    pub fn medium(&self) -> Medium {
        inspected_target::medium_of(self.holder(), || {
            self.stack().each().any(|one| one.in_remote_file)
        })
    }

    /// Alignment for direct I/O.
    ///
    /// # Errors
    /// The target does not support it; with the remedy.
    pub fn direct_alignment(&self) -> Result<DirectAlignment> {
        direct_io::alignment(&self.file, &self.path, self.kind)
    }

    /// A new open file description of the same object, even if its path now names another.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) when it is opened for writing but the target was
    /// opened for reading; of kind [`Usage`](iolab_workload::Kind::Usage) when the target does not support
    /// direct I/O.
    pub fn reopen(&self, mode: OpenMode) -> Result<File> {
        self.check_rights(mode.write)?;
        // No O_EXCL: on a block device the main descriptor holds the claim.
        path_lookup::open_same(&self.file, &self.path, mode.flags())
            .map_err(|errno| mode.refused(&self.path, errno))
    }

    fn check_rights(&self, write: bool) -> Result<()> {
        if write && !self.writable {
            return Err(Error::refused(format!(
                "refusing to write to {}: it was opened for reading only",
                self.path.display()
            ))
            .hint("a workload that writes has to say so before the target is opened"));
        }
        Ok(())
    }

    /// Main descriptor, for buffered I/O.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// File that holds its bytes, for inspection only; for a file of an overlay, the file in a layer, if within
    /// reach.
    pub fn holder(&self) -> &File {
        let layer = self.holder.get_or_init(|| overlay::holder(&self.file));
        layer.as_ref().unwrap_or(&self.file)
    }

    /// Writes incompressible data into a scratch file and its private files, and syncs them; does nothing for
    /// other kinds. `progress` gets the bytes written so far, of [`Target::fill_bytes`].
    ///
    /// # Errors
    /// Of kind [`Interrupted`](iolab_workload::Kind::Interrupted) soon after `stop` is set; of kind
    /// [`Failed`](iolab_workload::Kind::Failed) when a write fails, with offset and remedy.
    pub fn fill(&self, seed: u64, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<()> {
        if self.kind != TargetKind::Scratch {
            return Ok(());
        }
        let mut before = self.own_bytes();
        if before > 0 {
            self.fill_own(self.own_range(), seed, stop, progress)?;
        }
        for (number, file) in self.private.iter().enumerate() {
            let seed = seed.wrapping_add(number as u64 + 1);
            file.fill_own(0..file.size, seed, stop, &mut |done| {
                progress(before + done)
            })?;
            before += file.size;
        }
        Ok(())
    }

    /// Writes incompressible data over a trimmed range of a scratch file; does nothing for other kinds.
    ///
    /// # Errors
    /// As [`Target::fill`].
    pub fn refill(&self, range: Range<u64>, seed: u64, stop: &AtomicBool) -> Result<()> {
        match self.kind {
            TargetKind::Scratch => self.fill_own(range, seed, stop, &mut |_| {}),
            _ => Ok(()),
        }
    }

    fn fill_own(
        &self,
        range: Range<u64>,
        seed: u64,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        // Direct I/O if possible, so that the page cache is left to the rest of the system.
        let direct = self
            .direct_alignment()
            .ok()
            .filter(|alignment| alignment.memory <= extra_files::ALIGNMENT && !self.is_memory())
            .and_then(|alignment| {
                let mode = OpenMode {
                    write: true,
                    direct: true,
                    ..OpenMode::default()
                };
                Some((self.reopen(mode).ok()?, alignment.offset))
            });
        extra_files::Filling {
            path: &self.path,
            buffered: &self.file,
            direct,
            range,
        }
        .run(seed, stop, progress)
    }

    /// Handle that removes the scratch directory while threads still use it; `None` for other kinds, and for another
    /// process's file.
    pub fn scratch_remover(&self) -> Option<ScratchRemover> {
        self.scratch.as_ref()?.remover()
    }

    /// Removes the scratch file and its private files, and reports failures; does nothing for other kinds.
    ///
    /// # Errors
    /// Another process has replaced one of the files, or a file cannot be removed; the others are removed all
    /// the same.
    pub fn remove(self) -> Result<()> {
        if !self.private.is_empty() {
            self.sweep();
        }
        let private = self.private.into_iter().map(Target::remove);
        let beside = private.fold(Ok(()), Result::and);
        drop(self.file);
        beside.and(self.scratch.map_or(Ok(()), |scratch| scratch.remove()))
    }
}

fn no_scratch(path: &Path) -> Error {
    Error::usage(format!(
        "{} is a single file or device: layout=private and allocate=fresh need more files",
        path.display()
    ))
    .hint("give a directory, where scratch files are made; or set layout=shared and allocate=none")
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

/// Refuses files and directories of file systems that are interfaces to the kernel.
fn check_stores(found: &NamedObject) -> Result<()> {
    let stat = rustix::fs::fstatfs(&found.handle)
        .map_err(|errno| errno::on_path("look at the file system of", &found.path, errno))?;
    match mounts::kernel_fs(&stat) {
        Some(name) => Err(Error::usage(format!(
            "{} is in {name}, which stores nothing",
            found.path.display()
        ))
        .hint("give a directory, a file or a block device of real storage")),
        None => Ok(()),
    }
}
