//! What a run needs of its target, and what the user consents to.

use iolab_workload::Result;
use rustix::fs::FileType;

use crate::extra_files::ExtraFiles;
use crate::path_lookup::NamedObject;
use crate::signature;
use crate::target_size::Size;

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

impl Consent {
    /// That of `--destroy-data`, with these formats, separated by commas; an empty text names none.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a format that is not known.
    pub fn to_destroy(formats: &str) -> Result<Self> {
        if formats.is_empty() {
            return Ok(Self::Destroy);
        }
        Ok(Self::DestroySignature(signature::check_names(formats)?))
    }
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
    /// What is needed beside it; only a directory can offer that.
    pub beside: ExtraFiles,
    /// Whether other programs are given it.
    pub lends: bool,
}

impl Need {
    /// Exactly so many bytes of it, for reading; nothing that is there may be destroyed.
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
}

impl Need {
    /// Bytes of an existing file or device that it uses.
    pub(super) fn bytes_of(&self, found: &NamedObject) -> u64 {
        let wanted = self.size.wanted();
        match found.file_type() {
            FileType::RegularFile => wanted.min(u64::try_from(found.stat.st_size).unwrap_or(0)),
            _ => wanted,
        }
    }
}

/// The part that a process has in the scratch file of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Bytes of the file that are used.
    pub bytes: u64,
    /// Number of this process among those that use the file; that which made it has 0.
    pub rank: u32,
    /// How many these are, at least 1.
    pub ranks: u32,
    /// Sizes of the files of the own workers, bytes.
    pub private: Vec<u64>,
}
