//! What is read or written: scratch file, file, block device; how it is opened; its safety checks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::Result;

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
    /// `--destroy-data=SIGNATURE`: a target carrying this signature may be overwritten too.
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

/// An opened and checked target. Dropping it removes a scratch file.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    kind: TargetKind,
    size: u64,
    file: File,
}

impl Target {
    /// Opens PATH: a directory gets a scratch file, an existing file or device is opened as `need` allows.
    pub fn open(_path: &Path, _need: &Need) -> Result<Self> {
        unimplemented!()
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
        &[]
    }
    /// The block device it lies on (MAJOR, MINOR), when it is exactly one.
    pub fn device(&self) -> Option<(u32, u32)> {
        None
    }
    /// Alignment for direct I/O.
    ///
    /// # Errors
    /// When the target does not support it, with the remedy.
    pub fn direct_alignment(&self) -> Result<DirectAlignment> {
        unimplemented!()
    }
    /// A new open file description of the same object.
    pub fn reopen(&self, _mode: OpenMode) -> Result<File> {
        unimplemented!()
    }
    /// The main descriptor (buffered).
    pub fn file(&self) -> &File {
        &self.file
    }
    /// Writes `size()` bytes of incompressible data into a scratch file and makes them durable;
    /// nothing for other kinds. `progress` gets the bytes written so far.
    pub fn fill(
        &self,
        _seed: u64,
        _stop: &AtomicBool,
        _progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        unimplemented!()
    }
}
