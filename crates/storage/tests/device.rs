//! Block devices as targets. Needs root, and loop devices made and removed here; no other device is ever
//! touched.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use iolab_storage::{Consent, Need, OpenMode, Target, TargetKind};
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
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("losetup", &["--detach", self.name()]);
    }
}

fn destroying(bytes: u64) -> Need {
    Need {
        consent: Consent::Destroy,
        ..Need::writing(bytes)
    }
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
    insta::assert_snapshot!(refused(&device, path, &Need::writing(MIB)), @r"
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

    let error = Target::open(path, &Need::reading(65 * MIB)).unwrap_err();
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
    Target::open(&device.device, &Need::reading(MIB)).unwrap();
}
