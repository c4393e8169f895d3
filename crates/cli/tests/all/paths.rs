//! Targets whose paths are as long as a path can be: they work, or are refused for that reason before anything is written.

use std::path::{Path, PathBuf};

use crate::support::{entries, folder, run_tiny};

/// Longest path that a system call takes, bytes.
const PATH_MAX: usize = 4095;

/// A folder below `folder` whose path has exactly `length` bytes.
fn deep(folder: &Path, length: usize) -> PathBuf {
    let mut path = folder.to_owned();
    loop {
        let left = length - path.as_os_str().len() - 1;
        if left <= 200 {
            path.push("y".repeat(left));
            break;
        }
        // Leaves room for the separator and a name of one byte.
        path.push("x".repeat(left.min(200).min(left - 2)));
    }
    std::fs::create_dir_all(&path).unwrap();
    assert_eq!(path.as_os_str().len(), length);
    path
}

#[test]
fn targets_have_paths_of_any_length() {
    let folder = folder();
    // The scratch file's own path is longer than any system call takes.
    let target = deep(folder.path(), PATH_MAX - 5);
    let place = target.to_str().unwrap();
    run_tiny(folder.path(), "read-size", &[place, "-o", "a.iolab"]).expect(0);
    assert_eq!(entries(&target), [""; 0]);
    let beyond = format!("{place}{}", "y".repeat(10));
    let done = run_tiny(folder.path(), "read-size", &[&beyond]).expect(2);
    insta::assert_snapshot!(done.stderr.replace(place, "DEEP"), @r"
    error: cannot find DEEPyyyyyyyyyy: File name too long (os error 36)
      give a shorter path, for example relative to its directory
    ");
    assert_eq!(entries(&target), [""; 0]);
}
