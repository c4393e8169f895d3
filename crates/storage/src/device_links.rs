//! The system's own names for block devices: symlinks below `/dev` that only root can make (`/dev/mapper/*`,
//! `/dev/VG/LV`, `/dev/disk/by-id/*`). Kernel names may change with every boot; these do not. Names by content
//! (`/dev/disk/by-label/*`, `by-uuid`) do not count: a copy of the disk has them too.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::device::Number;
use super::mounts;

/// Most links that are followed; the kernel has the same limit.
const LINKS_MAX: usize = 40;
/// Write permission of the group and of all others.
const WRITABLE: u32 = 0o022;

/// Whether a symlink below `/dev` leads to this device by links and folders that only root can change.
pub(super) fn leads_to(link: &Path, device: Number) -> bool {
    let root = Path::new("/dev");
    // In a user namespace, the owner may represent any user without a number there.
    let is_of_root = root.metadata().is_ok_and(|stat| stat.uid() == 0);
    is_of_root
        && leads_within(root, link).is_some_and(|end| mounts::block_device_at(&end) == Some(device))
}

/// Whether a folder below `root` names devices by something other than their identity: all of `disk` but
/// `by-id`.
fn names_content(root: &Path, folder: &Path) -> bool {
    let disk = root.join("disk");
    folder.starts_with(&disk) && !folder.starts_with(disk.join("by-id"))
}

/// End of a symlink below `root`; `None` where a step on the way leaves `root` or belongs to another user.
fn leads_within(root: &Path, link: &Path) -> Option<PathBuf> {
    let owner = root.metadata().ok()?.uid();
    let mut at = link.to_owned();
    for _ in 0..LINKS_MAX {
        let name = at.file_name()?.to_owned();
        let folder = std::fs::canonicalize(at.parent()?).ok()?;
        (is_guarded(root, &folder, owner) && !names_content(root, &folder)).then_some(())?;
        let path = folder.join(name);
        let stat = path.symlink_metadata().ok()?;
        if !stat.is_symlink() {
            return Some(path);
        }
        (stat.uid() == owner).then_some(())?;
        at = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// Whether a folder is on the file system of `root`, with one owner from there to `root` and no write
/// permission for others.
fn is_guarded(root: &Path, folder: &Path, owner: u32) -> bool {
    let Ok(within) = root.metadata() else {
        return false;
    };
    folder.starts_with(root)
        && folder
            .ancestors()
            .take_while(|above| above.starts_with(root))
            .all(|above| {
                above.metadata().is_ok_and(|stat| {
                    stat.dev() == within.dev() && stat.uid() == owner && stat.mode() & WRITABLE == 0
                })
            })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_lead_to_devices_by_guarded_steps_only() {
        let place = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(place.path()).expect("its path");
        for folder in [
            "mapper", "vg", "open", "disk", "disk/by-id", "disk/by-label",
        ] {
            let folder = root.join(folder);
            fs::create_dir(&folder).expect("created");
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("set");
        }
        fs::write(root.join("dm-0"), "").expect("written");
        symlink("../dm-0", root.join("mapper/vg-lv")).expect("linked");
        symlink("../mapper/vg-lv", root.join("vg/lv")).expect("linked");
        symlink(root.join("vg/lv"), root.join("open/lv")).expect("linked");
        let end = Some(root.join("dm-0"));
        for link in ["mapper/vg-lv", "vg/lv", "open/lv"] {
            assert_eq!(leads_within(&root, &root.join(link)), end, "{link}");
        }
        for (folder, end) in [("by-id", end.as_ref()), ("by-label", None)] {
            let link = root.join("disk").join(folder).join("scratch");
            symlink("../../dm-0", &link).expect("linked");
            assert_eq!(leads_within(&root, &link).as_ref(), end, "{folder}");
        }
        let open = |mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(root.join("open"), mode).expect("set");
        };
        // Another user may replace the link.
        for mode in [0o777, 0o1777, 0o775] {
            open(mode);
            assert_eq!(leads_within(&root, &root.join("open/lv")), None);
        }
        // A step on the way may lead anywhere.
        symlink(root.join("open/lv"), root.join("vg/far")).expect("linked");
        assert_eq!(leads_within(&root, &root.join("vg/far")), None);
        open(0o755);
        assert_eq!(leads_within(&root, &root.join("vg/far")), end);
        symlink("/etc/passwd", root.join("vg/out")).expect("linked");
        symlink("round", root.join("vg/round")).expect("linked");
        for link in ["vg/out", "vg/round", "vg/none"] {
            assert_eq!(leads_within(&root, &root.join(link)), None, "{link}");
        }
        let outside = tempfile::tempdir().expect("a folder");
        let link = outside.path().join("lv");
        symlink(root.join("vg/lv"), &link).expect("linked");
        assert_eq!(leads_within(&root, &link), None);
    }
}
