//! The file that the options of a job name.

use std::path::PathBuf;

use crate::options::Options;

/// The file of a job, else the folder in which it has files of its own; `None` for the folder that fio runs in. A file of a library's driver
/// is named by an option of its own.
pub fn named_file(options: &Options) -> Option<PathBuf> {
    let directory = options.get("directory").map(PathBuf::from);
    let path_of_library = options.get("libblkio_path");
    match (path_of_library.or(options.get("filename")), directory) {
        // fio puts the directory before an absolute name too.
        (Some(name), Some(directory)) if path_of_library.is_none() => {
            Some(directory.join(name.trim_start_matches('/')))
        }
        (Some(name), _) => Some(PathBuf::from(name)),
        (None, directory) => directory,
    }
}
