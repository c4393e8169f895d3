//! The files that SQLite keeps next to a database.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};

use super::system::name_count;

/// Suffixes of files that SQLite keeps next to a database: its log, the journal and the index of the log.
pub(super) const SIDE_FILES: [&str; 3] = ["-wal", "-journal", "-shm"];

/// Refuses files next to a run file that SQLite did not write: it opens, changes and removes them by name only.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with the name of the file.
pub(super) fn check_side_files(path: &Path) -> Result<()> {
    for ending in SIDE_FILES {
        let name = beside(path, ending);
        let Ok(there) = name.symlink_metadata() else {
            continue;
        };
        if !there.is_file() || name_count(&there) > 1 || !is_sqlites(&name, ending) {
            return Err(Error::refused(format!(
                "{} does not belong to {}, and would be taken for a part of it",
                name.display(),
                path.display()
            ))
            .hint("move one of the two to another name"));
        }
    }
    Ok(())
}

/// Whether a file next to a database begins like SQLite's, or with zeros, which a power failure leaves.
fn is_sqlites(name: &Path, ending: &str) -> bool {
    // https://sqlite.org/fileformat2.html, sections 3 and 4; https://sqlite.org/walformat.html, section 2.
    const WAL: [u8; 3] = [0x37, 0x7f, 0x06];
    const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const SHARED: u32 = 3_007_000;
    let mut first = Vec::new();
    let read = File::open(name).and_then(|file| file.take(8).read_to_end(&mut first));
    let begins = match ending {
        "-wal" => first.starts_with(&WAL),
        "-journal" => first.starts_with(&JOURNAL),
        _ => first.starts_with(&SHARED.to_ne_bytes()),
    };
    // An unreadable file is not writable either; SQLite reports it.
    read.is_err() || begins || first.iter().all(|byte| *byte == 0)
}

/// The path of a file that SQLite keeps next to a run file.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn has_wal(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0)
}
