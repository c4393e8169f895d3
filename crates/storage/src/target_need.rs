//! Needs of a run, and the user's consent to destroy data.

use iolab_workload::Result;
use rustix::fs::FileType;

use crate::extra_files::ExtraFiles;
use crate::path_lookup::NamedObject;
use crate::signature;
use crate::target_size::Size;

/// The user's consent to destroy the data on an existing target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// No consent.
    No,
    /// `--destroy-data`: data without a known signature may be overwritten.
    Destroy,
    /// `--destroy-data=SIGNATURE`: a target with this signature may be overwritten too; several are separated
    /// by commas.
    DestroySignature(String),
}

impl Consent {
    /// Consent of `--destroy-data` with these formats, separated by commas; an empty text names none.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an unknown format.
    pub fn to_destroy(formats: &str) -> Result<Self> {
        if formats.is_empty() {
            return Ok(Self::Destroy);
        }
        Ok(Self::DestroySignature(signature::check_names(formats)?))
    }
}

/// Needs of a run from one target.
#[derive(Debug, Clone)]
pub struct Need {
    /// Wanted size.
    pub size: Size,
    /// Whether the target will be written.
    pub write: bool,
    /// Consent, for existing targets.
    pub consent: Consent,
    /// Files needed next to it; only a directory can provide them.
    pub beside: ExtraFiles,
    /// Whether other programs get access to it.
    pub lends: bool,
}

impl Need {
    /// Exactly this number of bytes for reading; no existing data may be destroyed.
    pub fn reading(bytes: u64) -> Self {
        Self {
            size: Size::Exactly(bytes),
            write: false,
            consent: Consent::No,
            beside: ExtraFiles::default(),
            lends: false,
        }
    }

    /// As [`Need::reading`], for writing too.
    pub fn writing(bytes: u64) -> Self {
        Self {
            write: true,
            ..Self::reading(bytes)
        }
    }

    /// Bytes that the run uses of an existing file or device.
    pub(super) fn bytes_of(&self, found: &NamedObject) -> u64 {
        let wanted = self.size.wanted();
        match found.file_type() {
            FileType::RegularFile => wanted.min(u64::try_from(found.stat.st_size).unwrap_or(0)),
            _ => wanted,
        }
    }
}

/// Part of a process in the scratch file of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Used bytes of the file.
    pub bytes: u64,
    /// Number of this process among those that use the file; the one that made it has 0.
    pub rank: u32,
    /// Number of processes, at least 1.
    pub ranks: u32,
    /// Sizes of the files of this process's workers, bytes.
    pub private: Vec<u64>,
}
