//! Existing files: readable as they are, writable only with consent.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iolab_storage::{OpenMode, TargetKind};

use super::*;

#[test]
fn file_is_opened_read_only_unless_writing() {
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let target = Target::open(&path, &need(8192)).unwrap();
    assert_eq!((target.kind(), target.size()), (TargetKind::File, 8192));
    assert!(target.file().write_at(b"x", 0).is_err());
    let write = OpenMode {
        write: true,
        ..OpenMode::default()
    };
    let error = target.reopen(write).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    fill(&target);
    target.remove().unwrap();
    assert_eq!(fs::read(&path).unwrap(), [5; 8192]);
}

#[test]
fn writing_needs_consent_and_changes_no_length() {
    let _alone = alone();
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let error = fails(&path, &writing(8192, Consent::No), Kind::Refused);
    insta::assert_snapshot!(error.remedy().unwrap(), @"give a directory, where iolab makes its own scratch file; or add --destroy-data if the data on this target is no longer needed");

    let target = Target::open(&path, &writing(4096, Consent::Destroy)).unwrap();
    // Filling is for scratch files only.
    fill(&target);
    let write = OpenMode {
        write: true,
        ..OpenMode::default()
    };
    target
        .reopen(write)
        .unwrap()
        .write_all_at(&[6; 4096], 0)
        .unwrap();
    drop(target);
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len(), 8192);
    assert_eq!(content[..4096], [6; 4096]);
    assert_eq!(content[4096..], [5; 4096]);
}

#[test]
fn a_signature_has_to_be_named() {
    let _alone = alone();
    let dir = dir();
    let path = file(dir.path(), "image", &vec![0; 4 << 20]);
    let put = |bytes: &[u8], offset| {
        let image = File::options().write(true).open(&path).unwrap();
        image.write_all_at(bytes, offset).unwrap();
    };
    put(&[0x53, 0xef], 0x438);
    put(&[4, 0, 0, 0, 0x40], 0x45c);

    let error = fails(&path, &writing(MIB, Consent::Destroy), Kind::Refused);
    insta::assert_snapshot!(said(error, dir.path()), @r"
    refusing to write to DIR/image: it holds ext4
      if that data is no longer needed, add --destroy-data=ext4
    ");
    fails(&path, &writing(MIB, named("xfs")), Kind::Refused);
    fails(&path, &writing(MIB, named("")), Kind::Refused);
    for name in ["ext4", "EXT4", "xfs, ext4"] {
        Target::open(&path, &writing(MIB, named(name))).unwrap();
    }
    // Reading does no harm.
    Target::open(&path, &need(MIB)).unwrap();

    put(b"EFI PART", (4 << 20) - 512);
    let error = fails(&path, &writing(MIB, named("ext4")), Kind::Refused);
    insta::assert_snapshot!(said(error, dir.path()), @r"
    refusing to write to DIR/image: it holds ext4; it holds gpt
      if that data is no longer needed, add --destroy-data=ext4,gpt
    ");
    Target::open(&path, &writing(MIB, named("gpt,ext4"))).unwrap();
}

#[test]
fn files_with_two_names_or_users_are_refused() {
    let _alone = alone();
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let consent = writing(8192, Consent::Destroy);
    let other = dir.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    let error = fails(&path, &consent, Kind::Refused);
    let told = error.to_string();
    let told = told.replace(&path.display().to_string(), "FILE");
    insta::assert_snapshot!(told, @r"
    refusing to write to FILE: this file has 2 names (hard links), and all would lose their data
      make a copy and name that, or choose a directory
    ");
    fs::remove_file(&other).unwrap();

    // iolab waits 1 s for users of a file to end, so all cases run at once.
    let consent = &consent;
    std::thread::scope(|scope| {
        let held = |name: &str, hold: &dyn Fn(&Path) -> File| {
            let path = file(dir.path(), name, &[5; 8192]);
            let held = hold(&path);
            (path, held)
        };
        // A lock is the first reason; without one, the kernel reports that the file is open.
        let refused = [
            held("locked", &locked),
            held("image", &record_locked),
            held("read", &|path| File::open(path).unwrap()),
            held("written", &|path| opened(path)),
        ]
        .map(|(path, held)| {
            scope.spawn(move || {
                let error = fails(&path, consent, Kind::Refused);
                Target::open(&path, &need(8192)).unwrap();
                drop(held);
                Target::open(&path, consent).unwrap();
                error
            })
        });
        scope.spawn(|| {
            let first = Target::open(&path, consent).unwrap();
            fails(&path, consent, Kind::Refused);
            drop(first);
            Target::open(&path, consent).unwrap();
        });
        let told = refused.map(|thread| said(thread.join().unwrap(), dir.path()));
        let [told @ .., written] = &told;
        // A process that is being started, such as blkid, has a copy of the descriptor and is then named.
        assert!(written.contains("open for writing"), "{written}");
        insta::assert_snapshot!(told.join("\n"), @r"
        refusing to write to DIR/locked: another process holds a lock on it
          see `lslocks` and `fuser -v`; stop that process, or choose another target
        refusing to write to DIR/image: another process holds a lock on it
          see `lslocks` and `fuser -v`; stop that process, or choose another target
        refusing to write to DIR/read: it is open elsewhere: in a process that cannot be seen from here, or in the kernel
          see `fuser -v PATH` as root, and `losetup -l`; stop that use, or choose another target
        ");
    });
}

fn opened(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

fn locked(path: &Path) -> File {
    let file = File::open(path).unwrap();
    file.lock().unwrap();
    file
}

/// Locks one byte as a virtual machine locks its image.
fn record_locked(path: &Path) -> File {
    let file = opened(path);
    let mut lock = libc::flock {
        l_type: libc::F_RDLCK as _,
        l_whence: libc::SEEK_SET as _,
        l_start: 100,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: F_OFD_SETLK reads one `flock` structure, which lives on this stack.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
    assert_eq!(answer, 0);
    file
}

#[test]
fn a_file_gives_no_more_than_it_has() {
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let error = fails(&path, &need(8193), Kind::Usage);
    insta::assert_snapshot!(said(error, dir.path()), @r"
    DIR/data has 8 KiB (8192 bytes), 8 KiB (8193 bytes) are wanted
      choose --size 8192 or less (in a new run: one that is resumed keeps its size); iolab never extends a file
    ");
    let default = |most, least| Need {
        size: Size::AtMost { most, least },
        ..need(0)
    };
    let target = Target::open(&path, &default(MIB, 4096)).unwrap();
    assert_eq!(target.size(), 8192);
    assert!(!target.notes().is_empty());
    fails(&path, &default(MIB, 8193), Kind::Usage);
    fails(
        &file(dir.path(), "empty", b""),
        &default(MIB, 1),
        Kind::Usage,
    );
}
