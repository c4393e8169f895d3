//! The run files of a folder.

use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};

/// The run files of a folder, in the order of their names.
pub(crate) fn files_of_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| {
        Error::usage(format!(
            "cannot read the folder {}: {error}",
            folder.display()
        ))
        .hint("name a folder with run files (*.iolab)")
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "iolab")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
