//! Paths of targets byte for byte: a run file stores text, and a path need not be UTF-8.

use std::path::{Path, PathBuf};

use crate::RunRecord;
use crate::environment::KEYS;

/// The bytes of a path that is not UTF-8; `None` if text keeps it.
pub fn beyond_text(path: &Path) -> Option<Vec<u8>> {
    let bytes = || path.as_os_str().as_encoded_bytes().to_owned();
    path.to_str().is_none().then(bytes)
}

/// The paths of the targets of a run, its own first.
pub fn target_paths(record: &RunRecord) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = record.targets().map(PathBuf::from).collect();
    let exact = record.environment.get(&KEYS.target_path_hex);
    // A file may come from a stranger: the path that is opened has to be the one that is shown.
    if let Some(exact) = exact
        .and_then(of_bytes)
        .filter(|path| path.display().to_string() == record.run.target)
    {
        paths[0] = exact;
    }
    paths
}

/// The path of these bytes; `None` on systems whose paths are not bytes, which cannot have such a target.
fn of_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        Some(std::ffi::OsString::from_vec(bytes).into())
    }
    #[cfg(not(unix))]
    {
        drop(bytes);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back_and_text_needs_no_bytes() {
        let path = of_bytes(b"/a \xff\x00\xfe".to_vec()).expect("paths are bytes");
        let mut record = RunRecord::default();
        record.run.target = path.display().to_string();
        let bytes = beyond_text(&path).expect("not UTF-8");
        record.environment.put(&KEYS.target_path_hex, bytes);
        assert_eq!(target_paths(&record), [path]);
        record.run.target = "/shown".to_owned();
        assert_eq!(target_paths(&record), [Path::new("/shown")]);
        assert_eq!(beyond_text(Path::new("/ä")), None);
    }
}
