//! States in which a block device does not accept iolab's requests.

use std::path::{Path, PathBuf};
use std::time::Instant;

use iolab_workload::{Error, Result};

use super::device::{self, Number};
use super::device_stack::{Stack, device_below};
use super::path_lookup::NamedObject;
use super::sysfs;
use super::users::{PAUSE, TIMEOUT};

/// Checks that the device of a target and the devices below it are not suspended: requests would wait for the
/// whole suspension. To be called before any request that would wait, such as reading a directory.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused): the suspended device, and the command that resumes it.
pub(super) fn check_awake(found: &NamedObject) -> Result<()> {
    let device = device::number_of(&found.stat).or_else(|| device_below(&found.handle));
    device.map_or(Ok(()), |number| check_device(&found.path, number))
}

fn check_device(path: &Path, number: Number) -> Result<()> {
    let sys = Path::new("/sys");
    // A change of a mapping table suspends the device briefly.
    let deadline = Instant::now() + TIMEOUT;
    let name = loop {
        let mut all = std::iter::once(number).chain(Stack::of_device(Some(number)).below);
        match all.find_map(|number| suspended(sys, number)) {
            None => return Ok(()),
            Some(name) if Instant::now() >= deadline => break name,
            Some(_) => std::thread::sleep(PAUSE),
        }
    };
    Err(Error::refused(format!(
        "{} does not answer: the device mapper has suspended {name}, and every request to it waits",
        path.display()
    ))
    .hint(format!(
        "resume it (`dmsetup resume {name}`), or choose another target"
    )))
}

/// Name of a mapped device that is suspended.
fn suspended(sys: &Path, number: Number) -> Option<String> {
    let folder = folder_of(sys, number)?;
    let is_suspended = sysfs::value(&folder.join("dm/suspended")) == Some(1);
    is_suspended.then(|| {
        let name = std::fs::read_to_string(folder.join("dm/name"));
        name.map_or_else(|_| sysfs::name_of(&folder), |name| name.trim().to_owned())
    })
}

/// Checks that a device accepts writes at any offset, as iolab makes them.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) for a zoned disk.
pub(super) fn check_not_zoned(path: &Path, number: Number) -> Result<()> {
    if !is_host_managed(Path::new("/sys"), number) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{} is a zoned device (host-managed): each zone takes writes only at its write pointer, and iolab chooses offsets by itself",
        path.display()
    ))
    .hint("measure reads, or make a file system for zones on it (btrfs, f2fs) and give a directory there"))
}

/// Whether a disk, or a partition's disk, accepts only sequential writes within its zones.
fn is_host_managed(sys: &Path, number: Number) -> bool {
    let zoned = |folder: PathBuf| std::fs::read_to_string(folder.join("queue/zoned")).ok();
    let folder = folder_of(sys, number);
    let model = folder.and_then(|folder| match folder.join("partition").exists() {
        true => zoned(folder.parent()?.to_owned()),
        false => zoned(folder),
    });
    model.is_some_and(|model| model.trim() == "host-managed")
}

fn folder_of(sys: &Path, number: Number) -> Option<PathBuf> {
    std::fs::canonicalize(sys.join(format!("dev/block/{}:{}", number.0, number.1))).ok()
}

#[cfg(test)]
mod tests {
    use needs::Tree;

    use super::*;

    fn device(files: &[(&str, &str)]) -> Tree {
        let sys = Tree::empty();
        sys.files("disk", files);
        sys.link("dev/block/253:0", "disk");
        sys.link("dev/block/253:1", "disk/part");
        sys
    }

    #[test]
    fn states_are_read_as_the_kernel_writes_them() {
        let sys = device(&[
            ("dm/suspended", "1"),
            ("dm/name", "vg-lv"),
            ("queue/zoned", "none"),
        ]);
        assert_eq!(suspended(sys.path(), (253, 0)), Some("vg-lv".to_owned()));
        assert!(!is_host_managed(sys.path(), (253, 0)));
        let sys = device(&[
            ("dm/suspended", "0"),
            ("queue/zoned", "host-managed"),
            ("part/partition", "1"),
        ]);
        assert_eq!(suspended(sys.path(), (253, 0)), None);
        assert!(is_host_managed(sys.path(), (253, 0)));
        assert!(is_host_managed(sys.path(), (253, 1)));
        assert!(!is_host_managed(sys.path(), (253, 2)));
    }
}
