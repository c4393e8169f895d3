//! Paths of every kind, and the objects they lie on.

use std::fs::Permissions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use iolab_storage::{OpenMode, TargetKind};

use super::*;

#[test]
fn symlinks_are_followed_only_for_reading() {
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let real = fs::canonicalize(&path).unwrap();
    let link = dir.path().join("link");
    symlink("data", &link).unwrap();
    let target = Target::open(&link, &need(8192)).unwrap();
    assert_eq!(target.path(), real);
    insta::assert_snapshot!(said(&target.notes()[0], dir.path()), @"DIR/link is a symlink; the target is DIR/data");
    let error = fails(&link, &writing(8192, Consent::Destroy), Kind::Refused);
    insta::assert_snapshot!(said(error, dir.path()), @r"
    refusing to write through the symlink DIR/link
      if you mean it, name DIR/data itself
    ");

    let sub = dir.path().join("sub");
    fs::create_dir(&sub).unwrap();
    let dir_link = dir.path().join("dir-link");
    symlink("sub", &dir_link).unwrap();
    let target = Target::open(&dir_link, &writing(MIB, Consent::No)).unwrap();
    insta::assert_snapshot!(said(&target.notes()[0], dir.path()), @"DIR/dir-link is a symlink; the target is DIR/sub");
    assert_eq!(names(&sub).len(), 1);
    drop(target);
    assert!(names(&sub).is_empty());

    symlink("nowhere", dir.path().join("dangling")).unwrap();
    symlink("loop", dir.path().join("loop")).unwrap();
    let told = ["dangling", "loop"].map(|name| {
        let error = fails(&dir.path().join(name), &need(1), Kind::Usage);
        said(error, dir.path())
    });
    insta::assert_snapshot!(told.join("\n"), @r"
    DIR/dangling is a symlink to nowhere, which does not exist
      correct the link or give the real path
    cannot follow DIR/loop: Too many levels of symbolic links (os error 40)
      the link leads back to itself; give the real path
    ");
}

#[test]
fn what_is_no_storage_is_told_apart() {
    let dir = dir();
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let plain = file(dir.path(), "data", b"x");
    let long = dir.path().join("n".repeat(300));
    let refused = [
        fifo.as_path(),
        &socket,
        Path::new("/dev/null"),
        Path::new("/dev/urandom"),
        &dir.path().join("missing"),
        &dir.path().join("missing/below"),
        &plain.join("below"),
        &long,
        Path::new(""),
        Path::new("a\0b"),
        Path::new("/proc/self/status"),
        Path::new("/proc/self"),
        Path::new("/sys/kernel"),
    ];
    let told = refused.map(|path| {
        let read = fails(path, &need(1), Kind::Usage).to_string();
        let written = fails(path, &writing(1, Consent::Destroy), Kind::Usage).to_string();
        let planned = Target::check(path, &need(1)).unwrap_err().to_string();
        assert_eq!(planned, read);
        let both = match read == written {
            true => read,
            false => format!("{read}\nto write: {written}"),
        };
        let both = both.replace(&"n".repeat(300), "LONG").replace('\0', "\\0");
        let process = format!("/proc/{}", std::process::id());
        said(both.replace(&process, "/proc/self"), dir.path())
    });
    insta::assert_snapshot!(told.join("\n"), @r"
    DIR/fifo is a FIFO, not storage
      give a directory, a file or a block device
    DIR/socket is a socket, not storage
      give a directory, a file or a block device
    /dev/null is a character device, not storage
      give a directory, a file or a block device
    /dev/urandom is a character device, not storage
      give a directory, a file or a block device
    cannot find DIR/missing: No such file or directory (os error 2)
      give an existing directory, file or block device; in a directory iolab makes its own scratch file
    cannot find DIR/missing/below: No such file or directory (os error 2)
      give an existing directory, file or block device; in a directory iolab makes its own scratch file
    cannot find DIR/data/below: Not a directory (os error 20)
      correct the path
    cannot find DIR/LONG: File name too long (os error 36)
      give a shorter path, for example relative to its directory
    the target's path is empty
      give a directory, a file or a block device; `.` is the current directory
    a\0b is not a path
      a path cannot contain a NUL byte
    /proc/self/status is in proc, which stores nothing
      give a directory, a file or a block device of real storage
    /proc/self is in proc, which stores nothing
      give a directory, a file or a block device of real storage
    /sys/kernel is in sysfs, which stores nothing
      give a directory, a file or a block device of real storage
    ");
}

#[test]
fn dev_zero_is_read_but_called_no_storage() {
    let zero = Path::new("/dev/zero");
    let target = Target::open(zero, &need(MIB)).unwrap();
    assert_eq!(
        (target.kind(), target.size()),
        (TargetKind::CharDevice, MIB)
    );
    assert_eq!(target.notes().len(), 1, "{:?}", target.notes());
    assert!(target.is_memory() && target.device().is_none() && target.filesystem().is_none());
    let error = target.direct_alignment().unwrap_err();
    insta::assert_snapshot!(error.remedy().unwrap(), @"measure through the page cache with --buffered, or choose another target");
    assert!(target.reopen(OpenMode::default()).is_ok());
    fails(zero, &writing(MIB, Consent::Destroy), Kind::Refused);
}

#[test]
fn unwritable_directory_is_a_clear_error() {
    needs::ordinary_user(may_not_be_written);
}

fn may_not_be_written(folder: &Path) {
    let closed = folder.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("inside"), "x").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();
    fails(&closed, &need(MIB), Kind::Usage);
    fs::set_permissions(&closed, Permissions::from_mode(0o600)).unwrap();
    fails(&closed.join("inside"), &need(1), Kind::Usage);
    // Enough to work in it, though its names cannot be listed.
    fs::set_permissions(&closed, Permissions::from_mode(0o300)).unwrap();
    drop(Target::open(&closed, &need(MIB)).unwrap());
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();

    let path = file(folder, "read-only", &[5; 4096]);
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    Target::open(&path, &need(4096)).unwrap();
    fails(&path, &writing(4096, Consent::Destroy), Kind::Usage);
}

#[test]
fn a_directory_that_keeps_every_file_gets_none() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let set = |attribute: &str| {
        let mut chattr = std::process::Command::new("chattr");
        let done = chattr.arg(attribute).arg(dir.path()).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !set("+a") {
        return needs::skip(needs::Need::AppendOnly, "chattr +a fails");
    }
    let opened = Target::open(dir.path(), &need(MIB));
    let left = names(dir.path());
    assert!(set("-a"));
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), Kind::Failed);
    insta::assert_snapshot!(said(error, dir.path()), @r"
    DIR is append-only: a scratch file could be made there, but not removed
      give another directory, or take the attribute away (`chattr -a DIR`)
    ");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn reopening_gives_the_same_file_after_renaming() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    fill(&target);
    let path = target.path().to_owned();
    let moved = dir.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    fs::write(&path, "another file").unwrap();
    let again = target.reopen(OpenMode::default()).unwrap();
    assert_eq!(
        again.metadata().unwrap().ino(),
        target.file().metadata().unwrap().ino()
    );
    for mode in [
        OpenMode {
            osync: true,
            write: true,
            ..OpenMode::default()
        },
        OpenMode {
            odsync: true,
            write: true,
            ..OpenMode::default()
        },
    ] {
        let file = target.reopen(mode).unwrap();
        // SAFETY: F_GETFL takes no argument and touches no memory.
        let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
        assert_eq!(flags & libc::O_DSYNC, libc::O_DSYNC);
        assert_eq!(flags & libc::O_SYNC == libc::O_SYNC, mode.osync);
    }
    // The name stands for another file now, which stays.
    assert_eq!(target.remove().unwrap_err().kind(), Kind::Failed);
    assert_eq!(fs::read_to_string(&path).unwrap(), "another file");
}

#[test]
fn direct_alignment_is_what_direct_io_takes() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    fill(&target);
    let alignment = match target.direct_alignment() {
        Ok(alignment) => alignment,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Usage);
            insta::assert_snapshot!(error.remedy().unwrap(), @"measure through the page cache with --buffered, or choose another target");
            return needs::skip(needs::Need::DirectIo, error);
        }
    };
    assert!(alignment.memory.is_power_of_two() && alignment.offset.is_power_of_two());
    let direct = OpenMode {
        direct: true,
        ..OpenMode::default()
    };
    let file = target.reopen(direct).unwrap();
    let length = alignment.offset as usize;
    let mut memory = vec![0; length + alignment.memory as usize];
    let shift = memory.as_ptr().align_offset(alignment.memory as usize);
    file.read_exact_at(&mut memory[shift..shift + length], alignment.offset)
        .unwrap();
}

#[test]
fn the_ground_below_is_known() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    let fs = target.filesystem().expect("every directory is on a mount");
    assert!(!fs.kind.is_empty() && !fs.mount_options.is_empty());
    let real = fs::canonicalize(dir.path()).unwrap();
    assert!(real.starts_with(&fs.mount_point), "{fs:?}");
    if let Some((major, minor)) = target.device() {
        assert!(Path::new(&format!("/sys/dev/block/{major}:{minor}/stat")).exists());
        assert!(!target.is_memory());
    }
}

#[test]
fn tmpfs_is_memory() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return needs::skip(needs::Need::Shm, "it cannot be written");
    };
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    if target.filesystem().is_none_or(|fs| fs.kind != "tmpfs") {
        return needs::skip(needs::Need::Shm, "it is no tmpfs");
    }
    assert!(target.is_memory() && target.device().is_none());
    insta::assert_snapshot!(said(&target.notes()[0], dir.path()), @"DIR is in memory (tmpfs or similar), not on storage");
    fill(&target);
}
