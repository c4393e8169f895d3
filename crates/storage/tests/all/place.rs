//! Paths of every kind, and what they lie on.

use std::fs::Permissions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use iolab_storage::{OpenMode, TargetKind};

use super::*;

#[test]
fn symlinks_are_followed_to_read_and_not_to_write() {
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let real = fs::canonicalize(&path).unwrap();
    let link = dir.path().join("link");
    symlink("data", &link).unwrap();
    let target = Target::open(&link, &need(8192)).unwrap();
    assert_eq!(target.path(), real);
    assert!(target.notes()[0].contains(real.to_str().unwrap()));
    let error = fails(&link, &writing(8192, Consent::Destroy), Kind::Refused);
    assert!(error.remedy().unwrap().contains(real.to_str().unwrap()));

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
    let error = fails(&dir.path().join("dangling"), &need(1), Kind::Usage);
    assert!(error.message().contains("nowhere"), "{error}");
    symlink("loop", dir.path().join("loop")).unwrap();
    let error = fails(&dir.path().join("loop"), &need(1), Kind::Usage);
    assert!(error.message().contains("ELOOP"), "{error}");
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
    for (path, word) in [
        (fifo.as_path(), "a FIFO"),
        (&socket, "a socket"),
        (Path::new("/dev/null"), "a character device"),
        (Path::new("/dev/urandom"), "a character device"),
        (&dir.path().join("missing"), "ENOENT"),
        (&dir.path().join("missing/below"), "ENOENT"),
        (&plain.join("below"), "ENOTDIR"),
        (&long, "ENAMETOOLONG"),
        (Path::new(""), "empty"),
        (Path::new("a\0b"), "not a path"),
        (Path::new("/proc/self/status"), "stores nothing"),
        (Path::new("/proc/self"), "stores nothing"),
        (Path::new("/sys/kernel"), "stores nothing"),
    ] {
        for need in [need(1), writing(1, Consent::Destroy)] {
            let error = Target::open(path, &need).unwrap_err();
            // A symlink to write to is refused before it is looked at any further.
            let expected = error.kind() == Kind::Usage && error.message().contains(word);
            assert!(expected, "{}: {error}", path.display());
            assert!(error.remedy().is_some(), "{error}");
        }
    }
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
fn a_directory_that_may_not_be_written_is_a_clear_error() {
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
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
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
    assert!(error.message().contains("append-only"), "{error}");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn reopening_gives_the_same_file_whatever_its_name_means_by_now() {
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
    let quiet = OpenMode {
        noatime: true,
        ..OpenMode::default()
    };
    let file = target.reopen(quiet).unwrap();
    // SAFETY: F_GETFL takes no argument and touches no memory.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    assert_eq!(flags & libc::O_NOATIME, libc::O_NOATIME);
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
            assert!(error.remedy().unwrap().contains("--buffered"));
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
