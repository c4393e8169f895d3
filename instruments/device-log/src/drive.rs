//! The NVMe drive below a disk.

use std::fs::File;
use std::path::Path;

use iolab_record::DriveLog;
use iolab_storage::{nvme_log_page, sysfs};
use rustix::fs::{fstat, major, minor};

use crate::page::{self, Page};

/// The controller of a drive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Controller {
    /// Name of its device: `nvme0`.
    name: String,
    /// Number of its device: major, minor.
    number: (u32, u32),
}

impl Controller {
    /// The only controller of a disk. `None` for other disks, and for a namespace with several controllers: some drives
    /// count bytes by controller, others all of them in each.
    pub(crate) fn of_disk(sys: &Path, disk: (u32, u32)) -> Option<Self> {
        let disk = sys.join(format!("dev/block/{}:{}", disk.0, disk.1));
        let controllers = sysfs::nvme_controllers(&disk).into_iter();
        let named = controllers.filter_map(|folder| {
            let folder = folder.canonicalize().ok()?;
            let name = sysfs::name_of(&folder);
            // The folder of a subsystem has no number.
            let number = sysfs::device_number(&folder).filter(|_| name.starts_with("nvme"))?;
            Some(Self { name, number })
        });
        match named.collect::<Vec<_>>().as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }
}

/// A drive whose log can be read.
#[derive(Debug)]
pub(crate) struct Drive {
    file: File,
    name: String,
    /// Whether it has the extended page. A page that a drive does not offer is an entry in its error log: it is asked for once.
    is_extended: bool,
}

impl Drive {
    /// Opens the device of a controller; `None` if that or its log cannot be read, as by users other than root.
    pub(crate) fn open(dev: &Path, controller: &Controller) -> Option<Self> {
        let file = File::open(dev.join(&controller.name)).ok()?;
        let own = fstat(&file).ok()?.st_rdev;
        if (major(own), minor(own)) != controller.number {
            return None;
        }
        nvme_log_page(&file, page::HEALTH)?;
        let extended = nvme_log_page(&file, page::EXTENDED);
        Some(Self {
            is_extended: extended.is_some_and(|page| page::is_extended(&page)),
            name: controller.name.clone(),
            file,
        })
    }

    /// Its counts since it was made.
    pub(crate) fn read(&self) -> Option<DriveLog> {
        let health: Page = nvme_log_page(&self.file, page::HEALTH)?;
        let extended = self
            .is_extended
            .then(|| nvme_log_page(&self.file, page::EXTENDED));
        Some(DriveLog {
            drive: self.name.clone(),
            ..page::counts(&health, extended.flatten().as_ref())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A tree of `/sys` with these controllers, and disks (minor number, name, folder of the device below).
    fn controllers(controllers: &[&str], disks: &[(u32, &str, &str)]) -> Vec<Option<String>> {
        let tree = tempfile::tempdir().expect("a folder");
        let sys = tree.path();
        let made = |path: &str| fs::create_dir_all(sys.join(path)).expect("made");
        for folder in ["dev/block", "pci", "subsystem"] {
            made(folder);
        }
        for (number, name) in (0..).zip(controllers) {
            made(&format!("pci/{name}"));
            let text = format!("240:{number}\n");
            fs::write(sys.join(format!("pci/{name}/dev")), text).expect("written");
            symlink(sys.join("pci").join(name), sys.join("subsystem").join(name)).expect("linked");
        }
        for (minor, name, below) in disks {
            made(&format!("{below}/{name}"));
            let disk = sys.join(below).join(name);
            symlink(sys.join(below), disk.join("device")).expect("linked");
            symlink(&disk, sys.join(format!("dev/block/259:{minor}"))).expect("linked");
        }
        let found = disks
            .iter()
            .map(|(minor, ..)| Controller::of_disk(sys, (259, *minor)));
        found.map(|found| Some(found?.name)).collect()
    }

    #[test]
    fn namespaces_of_one_controller_have_one_drive() {
        let own = [(0, "nvme3n1", "pci/nvme3"), (1, "nvme3n2", "pci/nvme3")];
        let drive = Some("nvme3".to_owned());
        assert_eq!(
            controllers(&["nvme3"], &own),
            [drive.clone(), drive.clone()]
        );
        // The kernel's node for several paths, of which there is one.
        let shared = [(0, "nvme0n1", "subsystem")];
        assert_eq!(controllers(&["nvme3"], &shared), [drive]);
        assert_eq!(controllers(&["nvme3", "nvme4"], &shared), [None]);
        assert_eq!(controllers(&[], &[(0, "sda", "pci/target")]), [None]);
    }

    #[test]
    fn device_that_is_no_controller_is_not_opened() {
        let tree = tempfile::tempdir().expect("a folder");
        fs::write(tree.path().join("nvme0"), "").expect("written");
        let controller = Controller {
            name: "nvme0".to_owned(),
            number: (240, 0),
        };
        assert!(Drive::open(tree.path(), &controller).is_none());
    }
}
