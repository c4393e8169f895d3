//! Which file server a path leads to, of which nothing is asked for that.

use std::path::{Component, Path, PathBuf, absolute};

use iolab_storage::FileSystem;

/// As many symbolic links as the kernel follows.
const LINKS: usize = 40;

/// The file server on which a path lies by its name alone.
pub(super) fn server_of(path: &Path, mounts: &[FileSystem]) -> Option<String> {
    let above = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    // The last one hides those that were mounted before it.
    let own = above.max_by_key(|mount| mount.mount_point.components().count())?;
    (own.kind == "nfs" || own.kind == "nfs4").then(|| own.source.clone())
}

/// Where a path leads by the symbolic links in it, as far as to a file server.
pub(super) fn resolved(path: &Path, mounts: &[FileSystem]) -> PathBuf {
    let mut rest = absolute(path).unwrap_or_else(|_| path.to_owned());
    let (mut at, mut links) = (PathBuf::new(), 0);
    loop {
        let mut parts = rest.components();
        let Some(part) = parts.next() else {
            return at;
        };
        let after = parts.as_path().to_owned();
        rest = match part {
            Component::Normal(name) => {
                at.push(name);
                if server_of(&at, mounts).is_some() {
                    return at.join(after);
                }
                match at.read_link() {
                    Ok(link) if links < LINKS => {
                        links += 1;
                        at.pop();
                        link.join(after)
                    }
                    _ => after,
                }
            }
            Component::ParentDir => {
                at.pop();
                after
            }
            root => {
                at.push(root);
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mount(kind: &str, at: &Path, source: &str) -> FileSystem {
        FileSystem {
            kind: kind.to_owned(),
            mount_point: at.to_owned(),
            mount_options: String::new(),
            source: source.to_owned(),
        }
    }

    /// The server has no such folder here: whatever asked it would find nothing.
    #[test]
    fn a_server_behind_symbolic_links_is_found_and_not_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().canonicalize().expect("a path");
        let nas = at.join("nas");
        let mounts = [
            mount("ext4", Path::new("/"), "/dev/vda"),
            mount("nfs4", &nas, "host:/export"),
        ];
        let below = nas.join("a/../b");
        symlink("nas/a/../b", at.join("relative")).expect("a link");
        symlink(at.join("relative"), at.join("absolute")).expect("a link");
        symlink("round", at.join("round")).expect("a link");
        std::fs::create_dir(at.join("here")).expect("a folder");
        for name in ["relative", "absolute", "here/../absolute", "./absolute"] {
            let found = resolved(&at.join(name), &mounts);
            assert_eq!(found, below, "{name}");
            let server = server_of(&found, &mounts);
            assert_eq!(server.as_deref(), Some("host:/export"), "{name}");
        }
        for (name, leads_to) in [("here/./x", "here/x"), ("round", "round")] {
            let found = resolved(&at.join(name), &mounts);
            assert_eq!(found, at.join(leads_to));
            assert_eq!(server_of(&found, &mounts), None);
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
