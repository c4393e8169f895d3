//! iolab-device-log: what NVMe drives count of themselves around each trial: bytes of hosts and of flash memory, throttling,
//! temperature.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use iolab_record::DriveLog;
use iolab_runner::DriveObserver;
use iolab_storage::{nvme_log_page, sysfs};
use rustix::fs::{fstat, major, minor};

/// An observer of NVMe drives, for one run.
pub fn observer() -> Box<dyn DriveObserver> {
    Box::new(Observer::default())
}

/// The drives of a run, each opened at its first trial, and their counts before the trial in flight.
#[derive(Default)]
struct Observer {
    /// Each drive by its controller; `None` if its log cannot be read, which is tried once.
    drives: BTreeMap<Controller, Option<Drive>>,
    before: Vec<(Controller, DriveLog)>,
}

impl DriveObserver for Observer {
    fn before(&mut self, disks: &BTreeSet<(u32, u32)>) {
        let of_disk = |disk: &(u32, u32)| Controller::of_disk(Path::new("/sys"), *disk);
        // Several namespaces may have one controller.
        let controllers: BTreeSet<Controller> = disks.iter().filter_map(of_disk).collect();
        let read = |controller: Controller| {
            let drive = self.drives.entry(controller.clone());
            let drive = drive.or_insert_with(|| Drive::open(Path::new("/dev"), &controller));
            let log = drive.as_ref()?.read()?;
            Some((controller, log))
        };
        self.before = controllers.into_iter().filter_map(read).collect();
    }

    fn after(&mut self) -> Vec<DriveLog> {
        let before = std::mem::take(&mut self.before).into_iter();
        let counted = before.filter_map(|(controller, before)| {
            let drive = self.drives.get(&controller)?.as_ref()?;
            Some(drive.read()?.since(&before))
        });
        counted.collect()
    }
}

/// A log page of an NVMe drive, or its first 512 bytes.
///
/// Sources: NVM Express Base Specification 2.0c, section 5.16.1.3 (SMART / Health Information); Open Compute Project, Datacenter NVMe SSD
/// Specification 2.0, section 4.8.5 (SMART / Health Information Extended).
type Page = [u8; 512];

/// SMART / Health Information.
const HEALTH: u8 = 0x02;
/// SMART / Health Information Extended. Drives without it may have another page of this number.
const EXTENDED: u8 = 0xc0;

/// Number at the end of the extended page that tells it from other pages.
const EXTENDED_GUID: u128 = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5;

/// Zero degrees Celsius, thousandths of a kelvin.
const ZERO_CELSIUS: u64 = 273_150;

/// A number of `N` bytes at this offset, the least significant first.
fn number<const N: usize>(page: &Page, at: usize) -> u128 {
    let bytes = page[at..at + N].iter().rev();
    bytes.fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
}

/// Whether a page is the extended one.
fn is_extended(page: &Page) -> bool {
    number::<16>(page, 496) == EXTENDED_GUID
}

/// The counts of the health page and of the extended page.
fn counts(health: &Page, extended: Option<&Page>) -> DriveLog {
    let fits = |number: u128| u64::try_from(number).ok();
    let units = |at| fits(number::<16>(health, at))?.checked_mul(DriveLog::UNIT);
    let count = |at| fits(number::<4>(health, at));
    let kelvin = fits(number::<2>(health, 1));
    DriveLog {
        host_read_bytes: units(32),
        host_write_bytes: units(48),
        media_write_bytes: extended.and_then(|page| fits(number::<16>(page, 0))),
        warning_min: count(192),
        critical_min: count(196),
        light_throttles: count(216),
        heavy_throttles: count(220),
        light_throttle_s: count(224),
        heavy_throttle_s: count(228),
        throttle_events: extended.map(|page| page[96].into()),
        after_millidegrees: kelvin.and_then(|kelvin| (kelvin * 1000).checked_sub(ZERO_CELSIUS)),
        ..DriveLog::default()
    }
}

/// The controller of the NVMe drive below a disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Controller {
    /// Name of its device: `nvme0`.
    name: String,
    /// Number of its device: major, minor.
    number: (u32, u32),
}

impl Controller {
    /// The only controller of a disk. `None` for other disks, and for a namespace with several controllers: some drives
    /// count bytes by controller, others all of them in each.
    fn of_disk(sys: &Path, disk: (u32, u32)) -> Option<Self> {
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
struct Drive {
    file: File,
    name: String,
    /// Whether it has the extended page. A page that a drive does not offer is an entry in its error log: it is asked for once.
    is_extended: bool,
}

impl Drive {
    /// Opens the device of a controller; `None` if that or its log cannot be read, as by users other than root.
    fn open(dev: &Path, controller: &Controller) -> Option<Self> {
        let file = File::open(dev.join(&controller.name)).ok()?;
        let own = fstat(&file).ok()?.st_rdev;
        if (major(own), minor(own)) != controller.number {
            return None;
        }
        nvme_log_page(&file, HEALTH)?;
        let extended = nvme_log_page(&file, EXTENDED);
        Some(Self {
            is_extended: extended.is_some_and(|page| is_extended(&page)),
            name: controller.name.clone(),
            file,
        })
    }

    /// Its counts since it was made.
    fn read(&self) -> Option<DriveLog> {
        let health: Page = nvme_log_page(&self.file, HEALTH)?;
        let extended = self
            .is_extended
            .then(|| nvme_log_page(&self.file, EXTENDED));
        Some(DriveLog {
            drive: self.name.clone(),
            ..counts(&health, extended.flatten().as_ref())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with these numbers at these offsets.
    fn page(numbers: &[(usize, &[u8])]) -> Page {
        let mut page = [0; 512];
        for (at, bytes) in numbers {
            page[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        page
    }

    /// A drive at 43 degrees Celsius that has throttled itself.
    fn health(written: u128, light_s: u32) -> Page {
        page(&[
            (1, &316_u16.to_le_bytes()),
            (32, &7_u128.to_le_bytes()),
            (48, &written.to_le_bytes()),
            (192, &11_u32.to_le_bytes()),
            (196, &12_u32.to_le_bytes()),
            (216, &13_u32.to_le_bytes()),
            (220, &14_u32.to_le_bytes()),
            (224, &light_s.to_le_bytes()),
            (228, &16_u32.to_le_bytes()),
        ])
    }

    /// The extended page of a drive, with the bytes of its number in the order of the specification.
    fn extended(written: u128, events: u8) -> Page {
        page(&[
            (0, &written.to_le_bytes()),
            (96, &[events, 1]),
            (
                496,
                &[
                    0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9,
                    0x14, 0xd5, 0xaf,
                ],
            ),
        ])
    }

    #[test]
    fn counts_lie_where_the_specifications_say() {
        let counts = counts(&health(1000, 15), Some(&extended(1 << 40, 17)));
        let expected = DriveLog {
            host_read_bytes: Some(7 * 512_000),
            host_write_bytes: Some(512_000_000),
            media_write_bytes: Some(1 << 40),
            warning_min: Some(11),
            critical_min: Some(12),
            light_throttles: Some(13),
            heavy_throttles: Some(14),
            light_throttle_s: Some(15),
            heavy_throttle_s: Some(16),
            throttle_events: Some(17),
            after_millidegrees: Some(42_850),
            ..DriveLog::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_trial_counts_from_before_to_after() {
        let before = counts(&health(1000, 15), Some(&extended(5000, 17)));
        let after = counts(&health(1200, 46), Some(&extended(9000, 17)));
        let trial = after.since(&before);
        assert_eq!(trial.host_write_bytes, Some(200 * DriveLog::UNIT));
        assert_eq!(trial.media_write_bytes, Some(4000));
        assert_eq!(
            (trial.throttled_ns(), trial.throttles()),
            (31_000_000_000, 0)
        );
        assert_eq!(trial.before_millidegrees, Some(42_850));
        // A drive that was formatted, or a count that wrapped.
        let shrunk = before.since(&after);
        assert_eq!(
            (shrunk.host_write_bytes, shrunk.media_write_bytes),
            (None, None)
        );
        assert_eq!(shrunk.host_read_bytes, Some(0));
    }

    #[test]
    fn numbers_beyond_any_drive_are_unknown() {
        let broken = [0xff; 512];
        let counts = counts(&broken, Some(&broken));
        assert_eq!(
            (counts.host_write_bytes, counts.media_write_bytes),
            (None, None)
        );
        assert!(!is_extended(&broken));
        assert!(is_extended(&extended(0, 0)));
        let cold = page(&[(1, &[0, 0])]);
        assert_eq!(super::counts(&cold, None).after_millidegrees, None);
    }
}

#[cfg(test)]
mod controller_tests {
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
