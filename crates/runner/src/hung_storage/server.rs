//! The file server of a path, found without any request to the server.

use std::path::Path;

use iolab_storage::FileSystem;

/// The file server on which a path lies by its name alone.
pub(super) fn server_of(path: &Path, mounts: &[FileSystem]) -> Option<String> {
    let above = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    // The last mount hides earlier ones.
    let own = above.max_by_key(|mount| mount.mount_point.components().count())?;
    (own.kind == "nfs" || own.kind == "nfs4").then(|| own.source.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, at: &Path, source: &str) -> FileSystem {
        FileSystem {
            kind: kind.to_owned(),
            mount_point: at.to_owned(),
            mount_options: String::new(),
            source: source.to_owned(),
        }
    }

    #[test]
    fn the_mount_that_hides_others_is_the_one() {
        let at = Path::new("/mnt/x");
        let mut mounts = vec![mount("nfs", at, "host:/a")];
        let server = |mounts: &[FileSystem]| server_of(&at.join("y"), mounts);
        assert_eq!(server(&mounts).as_deref(), Some("host:/a"));
        mounts.push(mount("nfs", Path::new("/mnt"), "host:/b"));
        assert_eq!(server(&mounts).as_deref(), Some("host:/a"));
        mounts.push(mount("tmpfs", at, "tmpfs"));
        assert_eq!(server(&mounts), None);
    }
}
