//! Fake `/sys` or `/proc` for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

/// A tree of files and links in a folder that is removed at the end.
pub struct Tree(TempDir);

impl Tree {
    /// An empty tree.
    ///
    /// # Panics
    ///
    /// As all methods, if the file system refuses.
    pub fn empty() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// The root of the tree.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and a newline at its end.
    pub fn file(&self, path: &str, content: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, format!("{content}\n")).expect("written");
    }

    /// Writes files below `folder`: name and content.
    pub fn files(&self, folder: &str, files: &[(&str, &str)]) {
        for (name, content) in files {
            self.file(&Path::new(folder).join(name).to_string_lossy(), content);
        }
    }

    /// Makes `from` a link to `to`, both below the root.
    pub fn link(&self, from: &str, to: &str) {
        let from = self.path().join(from);
        fs::create_dir_all(from.parent().expect("has one")).expect("made");
        fs::create_dir_all(self.path().join(to)).expect("made");
        symlink(self.path().join(to), from).expect("linked");
    }
}
