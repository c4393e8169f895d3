//! Temporary files of tests on the disk of the sources, also in unit tests and as an ordinary user.

use std::path::PathBuf;
use std::{fs, io};

/// Cargo's folder for temporary files of tests, for a test program in `target/PROFILE/deps`. Integration tests
/// have it in `CARGO_TARGET_TMPDIR`, unit tests do not.
///
/// # Errors
///
/// The folder cannot be made.
pub fn folder_on_disk() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(3);
    let target = target.ok_or_else(|| io::Error::other("the own path has no folder"))?;
    let folder = target.join("tmp");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
