//! Block devices as targets. Needs root, and loop devices made and removed here; no other device is ever
//! touched.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use iolab_storage::{Consent, Need, OpenMode, Size, Target, TargetKind};
use iolab_workload::Kind;

const MIB: u64 = 1 << 20;

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A loop device on a sparse file, both removed when dropped.
struct Loop {
    dir: tempfile::TempDir,
    device: PathBuf,
    mounted: Option<PathBuf>,
    /// One test at a time: a process being started has a copy of every descriptor, claims included, until it
    /// calls exec.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Loop {
    fn new(bytes: u64, options: &[&str]) -> Option<Self> {
        if !needs::root() {
            return None;
        }
        if let Some(other) = needs::lost_backing_file() {
            needs::skip(needs::Need::Loop, other);
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("backing");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(options);
        arguments.push(path.to_str().unwrap());
        match run("losetup", &arguments) {
            Ok(device) => Some(Self {
                dir,
                device: device.into(),
                mounted: None,
                _alone: alone,
            }),
            Err(why) => {
                needs::skip(needs::Need::Loop, why);
                None
            }
        }
    }

    fn backing(&self) -> PathBuf {
        self.dir.path().join("backing")
    }

    fn name(&self) -> &str {
        self.device.to_str().unwrap()
    }

    /// A message without the number of the device and the folder of the test.
    fn said(&self, text: impl ToString) -> String {
        let text = text.to_string();
        let text = text.replace(self.name().trim_start_matches("/dev/"), "LOOP");
        text.replace(&self.dir.path().display().to_string(), "DIR")
    }

    /// Makes an ext4 on the device. True if that worked.
    fn mkfs(&self) -> bool {
        let made = run("mkfs.ext4", &["-q", "-F", self.name()]);
        made.map_err(|why| needs::skip(needs::Need::Ext4, why))
            .is_ok()
    }

    fn mount(&mut self, options: &str) -> Option<PathBuf> {
        let point = self.dir.path().join("mount point");
        fs::create_dir(&point).unwrap();
        match run(
            "mount",
            &["-o", options, self.name(), point.to_str().unwrap()],
        ) {
            Ok(_) => {
                self.mounted = Some(point.clone());
                Some(point)
            }
            Err(why) => {
                needs::skip(needs::Need::Mount, why);
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Some(point) = &self.mounted {
            let _ = run("umount", &[point.to_str().unwrap()]);
        }
        let _ = run("losetup", &["--detach", self.name()]);
    }
}

fn need(bytes: u64, write: bool, consent: Consent) -> Need {
    Need {
        size: Size::Exactly(bytes),
        write,
        consent,
        beside: Default::default(),
        lends: false,
    }
}

fn destroying(bytes: u64) -> Need {
    need(bytes, true, Consent::Destroy)
}

/// Message of an open that must be refused, without the names that change from run to run.
#[track_caller]
fn refused(device: &Loop, path: &Path, need: &Need) -> String {
    let error = Target::open(path, need).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    device.said(error)
}

#[test]
fn blank_device_is_claimed_and_written_with_consent() {
    let Some(device) = Loop::new(64 * MIB, &[]) else {
        return;
    };
    let path = &device.device;
    insta::assert_snapshot!(refused(&device, path, &need(MIB, true, Consent::No)), @r"
    refusing to write to /dev/LOOP: its data would be destroyed
      give a directory, where iolab makes its own scratch file; or add --destroy-data if the data on this target is no longer needed
    ");
    let target = Target::open(path, &destroying(64 * MIB)).unwrap();
    assert_eq!(target.kind(), TargetKind::BlockDevice);
    assert_eq!(target.size(), 64 * MIB);
    let rdev = fs::metadata(path).unwrap().rdev();
    let number = (libc::major(rdev), libc::minor(rdev));
    assert_eq!(target.device(), Some(number));
    assert!(!target.is_memory());
    let alignment = target.direct_alignment().unwrap();
    assert!(alignment.offset >= 512);
    let mode = OpenMode {
        write: true,
        direct: true,
        ..OpenMode::default()
    };
    target.reopen(mode).unwrap();
    // The claim: no other process may take the device.
    insta::assert_snapshot!(refused(&device, path, &destroying(MIB)), @r"
    refusing to write to /dev/LOOP: it is in use: the kernel holds a claim on it (O_EXCL: EBUSY)
      see `lsblk`; stop that use first, or choose another target
    ");
    drop(target);
    Target::open(path, &destroying(MIB)).unwrap();
    // The backing file of a loop device is in use too.
    insta::assert_snapshot!(refused(&device, &device.backing(), &destroying(MIB)), @r"
    refusing to write to DIR/backing: it is the backing file of /dev/LOOP
      see `losetup -l`; stop that use first (`losetup -d`), or choose another target
    ");

    let error = Target::open(path, &need(65 * MIB, false, Consent::No)).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage, "{error}");
    let link = device.dir.path().join("link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    insta::assert_snapshot!(refused(&device, &link, &destroying(MIB)), @r"
    refusing to write through the symlink DIR/link
      if you mean it, name /dev/LOOP itself
    ");
}

#[test]
fn a_read_only_device_is_read_only() {
    let Some(device) = Loop::new(8 * MIB, &["--read-only"]) else {
        return;
    };
    let error = Target::open(&device.device, &destroying(MIB)).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    insta::assert_snapshot!(device.said(error), @r"
    /dev/LOOP is set read-only
      choose another target, or a workload that only reads
    ");
    Target::open(&device.device, &need(MIB, false, Consent::No)).unwrap();
}

#[test]
fn full_file_system_is_reported_with_a_remedy() {
    let Some(mut device) = Loop::new(256 * MIB, &[]) else {
        return;
    };
    if !device.mkfs() {
        return;
    }
    let Some(point) = device.mount("rw") else {
        return;
    };
    let default = Need {
        size: Size::AtMost {
            most: 1 << 40,
            least: MIB,
        },
        ..need(0, true, Consent::No)
    };
    let target = Target::open(&point, &default).unwrap();
    assert!(target.size() < 192 * MIB, "{}", target.size());
    assert_eq!(target.filesystem().unwrap().kind, "ext4");
    assert_eq!(target.filesystem().unwrap().mount_point, point);
    // Another program takes the space in the meantime.
    let hog = File::create(point.join("hog")).unwrap();
    let chunk = vec![1; MIB as usize];
    let mut offset = 0;
    while hog.write_all_at(&chunk, offset).is_ok() {
        offset += MIB;
    }
    hog.sync_all().unwrap();
    let error = target
        .fill(1, &AtomicBool::new(false), &mut |_| {})
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Failed);
    let told = device
        .said(error)
        .replace(&device.said(target.path().display()), "FILE");
    // The remaining space depends on mkfs.
    let words = told.split(' ').map(|word| match word.parse::<u64>() {
        Ok(1..) => "BYTES",
        _ => word,
    });
    insta::assert_snapshot!(words.collect::<Vec<_>>().join(" "), @r"
    fallocate of BYTES bytes at offset 0 of FILE failed: No space left on device (os error 28)
      free some space there, choose a smaller --size, or another directory
    ");
    drop(target);
    let left = fs::read_dir(&point).unwrap();
    assert!(left.flatten().all(|entry| entry.file_name() != ".iolab"
        && !entry.file_name().to_string_lossy().starts_with(".iolab-")));
}

#[test]
fn read_only_file_system_is_a_clear_error() {
    let Some(mut device) = Loop::new(64 * MIB, &[]) else {
        return;
    };
    if !device.mkfs() {
        return;
    }
    let Some(point) = device.mount("ro") else {
        return;
    };
    // Consent would not help: a plan says so too, which opens nothing.
    for consent in [Consent::No, Consent::Destroy] {
        let need = need(MIB, true, consent);
        let said = refused(&device, &device.device, &need);
        assert!(said.contains("mounted"), "{said}");
        let planned = Target::check(&device.device, &need).unwrap_err();
        assert_eq!(device.said(planned), said);
    }
    let error = Target::open(&point, &need(MIB, true, Consent::No)).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage, "{error}");
    insta::assert_snapshot!(device.said(error), @r"
    cannot create a scratch file in DIR/mount point: Read-only file system (os error 30)
      give a directory that you may write to, for example your home directory
    ");
}

#[test]
fn scratch_files_on_one_file_system_share_space() {
    let Some(mut device) = Loop::new(400 * MIB, &[]) else {
        return;
    };
    if !device.mkfs() {
        return;
    }
    let Some(point) = device.mount("rw") else {
        return;
    };
    let free = iolab_storage::free(&point).unwrap().unwrap();
    let part = |of: u64| free / 10 * of / MIB * MIB;
    let folders = ["a", "b"].map(|name| point.join(name));
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    let open = |need: &Need| {
        let wanted: Vec<_> = folders.iter().map(|path| (path.clone(), need)).collect();
        Target::open_all(&wanted)
    };
    let left = || {
        folders
            .iter()
            .flat_map(|path| fs::read_dir(path).unwrap())
            .count()
    };
    assert_eq!(open(&need(part(4), false, Consent::No)).unwrap().len(), 2);
    // Each of them would fit alone.
    let error = open(&need(part(7), false, Consent::No)).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    assert_eq!(left(), 0);
    let default = Need {
        size: Size::AtMost {
            most: part(7),
            least: MIB,
        },
        ..Need::reading(MIB)
    };
    let cut = open(&default).unwrap();
    let sizes: Vec<u64> = cut.iter().map(Target::size).collect();
    assert!(
        sizes[0] > part(4) && sizes[0] < part(6),
        "{sizes:?} of {free}"
    );
    assert_eq!(sizes[0], sizes[1]);
    for target in &cut {
        assert_eq!(target.notes().len(), 1, "{:?}", target.notes());
        target
            .fill(1, &AtomicBool::new(false), &mut |_| {})
            .unwrap();
    }
    drop(cut);
    assert_eq!(left(), 0);
}
