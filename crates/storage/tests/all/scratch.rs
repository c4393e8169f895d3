//! Scratch files: private, filled, within the available room, and finally removed.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use iolab_storage::{ExtraFiles, PrivateFiles, Share, TargetKind};
use rustix::io::{ReadWriteFlags, preadv2};

use super::*;

/// Path of the scratch directory of a target.
fn scratch_dir(target: &Target) -> &Path {
    target.path().parent().unwrap()
}

#[test]
fn scratch_directory_is_private_locked_and_finally_removed() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    assert_eq!(target.kind(), TargetKind::Scratch);
    assert_eq!(target.size(), MIB);
    assert_eq!(target.named(), dir.path());
    let meta = fs::symlink_metadata(target.path()).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.len()), (0o600, MIB));
    let meta = fs::symlink_metadata(scratch_dir(&target)).unwrap();
    assert_eq!(meta.mode() & 0o777, 0o700);
    let other = File::open(scratch_dir(&target).join("lock")).unwrap();
    assert!(matches!(
        other.try_lock(),
        Err(fs::TryLockError::WouldBlock)
    ));
    drop(target);
    assert!(names(dir.path()).is_empty());

    Target::open(dir.path(), &need(MIB))
        .unwrap()
        .remove()
        .unwrap();
    assert!(names(dir.path()).is_empty());
}

#[test]
fn only_scratch_files_of_this_size_are_joined() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    let place = target.shared_path();
    let join = |bytes| {
        let (rank, ranks, private) = (1, 2, Vec::new());
        Target::join(
            place,
            &Share {
                bytes,
                rank,
                ranks,
                private,
            },
        )
    };
    join(MIB).unwrap();
    assert_eq!(join(2 * MIB).unwrap_err().kind(), Kind::Refused);
    fs::write(place.join("lock"), "another's").unwrap();
    assert_eq!(join(MIB).unwrap_err().kind(), Kind::Refused);
}

#[test]
fn files_in_use_can_be_removed() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    let remover = target.scratch_remover().expect("it is a scratch file");
    // Made after the remover, as the files of a trial are.
    let beside = target.beside(MIB).unwrap();
    let place = scratch_dir(&target);
    let moved = dir.path().join("moved");
    fs::rename(place, &moved).unwrap();
    fs::create_dir(place).unwrap();
    fs::write(target.path(), "another's").unwrap();
    assert!(!remover.remove());
    assert_eq!(fs::read(target.path()).unwrap(), b"another's");
    fs::remove_dir_all(place).unwrap();
    fs::rename(&moved, place).unwrap();
    assert!(remover.remove());
    assert!(names(dir.path()).is_empty());
    beside.remove().unwrap();
    target.remove().unwrap();
}

#[test]
fn a_file_from_elsewhere_keeps_the_directory() {
    let dir = dir();
    let mine = file(dir.path(), "mine", b"mine");
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    let moved = scratch_dir(&target).join("moved");
    fs::rename(&mine, &moved).unwrap();
    let error = target.remove().unwrap_err();
    assert_eq!(error.kind(), Kind::Failed);
    let told = said(error, dir.path());
    let name = &names(dir.path())[0];
    insta::assert_snapshot!(told.replace(name, "NAME"), @r"
    DIR/NAME holds what iolab has not made and was left alone
      look into it and delete it by hand; have the program write elsewhere
    ");
    assert_eq!(fs::read(&moved).unwrap(), b"mine");
}

/// A left-over, made from a live scratch directory: same content, modes and owner, but no lock.
fn leftover(dir: &Path, digits: &str) -> PathBuf {
    let target = Target::open(dir, &need(MIB)).unwrap();
    let path = dir.join(format!(".iolab-scratch-{digits}"));
    copy(scratch_dir(&target), &path);
    path
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

#[test]
fn lookalikes_of_leftovers_are_left_alone() {
    let _alone = alone();
    let dir = dir();
    let outside = tempfile::tempdir().unwrap();
    let at = |digits: &str| dir.path().join(format!(".iolab-scratch-{digits}"));

    // Made in another directory, because a run in this one would remove the earlier ones.
    let genuine = leftover(outside.path(), "00000000000000a0");
    let copy_at = |digits: &str| {
        copy(&genuine, &at(digits));
        at(digits).join("lock")
    };

    symlink(&genuine, at("0000000000000001")).unwrap();
    let lock = copy_at("0000000000000002");
    fs::set_permissions(lock, Permissions::from_mode(0o644)).unwrap();
    fs::write(at("0000000000000003"), vec![7; 8192]).unwrap();
    let lock = copy_at("0000000000000004");
    fs::hard_link(lock, dir.path().join("second name")).unwrap();
    let lock = copy_at("0000000000000005");
    let held = File::open(lock).unwrap();
    held.lock().unwrap();
    copy(&genuine, &dir.path().join(".iolab-scratch-0006"));
    copy(&genuine, &dir.path().join("iolab-scratch-0000000000000007"));
    fs::create_dir(at("0000000000000008")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("0000000000000009"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    // A lock file of another program.
    let lock = copy_at("000000000000000a");
    fs::write(&lock, "1234").unwrap();
    let linked = copy_at("000000000000000b");
    fs::remove_file(&linked).unwrap();
    symlink(genuine.join("lock"), &linked).unwrap();

    let before = names(dir.path()).len();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    let mut notes = target.notes().to_vec();
    drop(target);
    notes.sort();
    insta::assert_snapshot!(said(notes.join("\n"), dir.path()), @r"
    left DIR/.iolab-scratch-0000000000000002 alone: named like a scratch directory, but not known to be iolab's; remove it by hand if you do not need it
    left DIR/.iolab-scratch-0000000000000003 alone: named like a scratch directory, but not known to be iolab's; remove it by hand if you do not need it
    left DIR/.iolab-scratch-0000000000000004 alone: named like a scratch directory, but not known to be iolab's; remove it by hand if you do not need it
    left DIR/.iolab-scratch-0000000000000008 alone: named like a scratch directory, but not known to be iolab's; remove it by hand if you do not need it
    left DIR/.iolab-scratch-000000000000000a alone: named like a scratch directory, but not known to be iolab's; remove it by hand if you do not need it
    left DIR/.iolab-scratch-000000000000000b alone: named like a scratch directory, but not known to be iolab's; remove it by hand if you do not need it
    ");
    assert_eq!(names(dir.path()).len(), before);
    assert_eq!(names(&at("000000000000000a")).len(), 2);
    assert!(genuine.join("data").exists());
    assert!(
        fs::symlink_metadata(at("0000000000000009"))
            .unwrap()
            .file_type()
            .is_fifo()
    );
}

/// Body for child processes that other tests start; does nothing otherwise.
#[test]
fn child() {
    let Ok(job) = std::env::var("IOLAB_TEST_CHILD") else {
        return;
    };
    let dir = PathBuf::from(std::env::var("IOLAB_TEST_DIR").unwrap());
    match job.as_str() {
        "hold" => {
            let target = Target::open(&dir, &with_private_files()).unwrap();
            fill(&target);
            eprintln!("holding");
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        "limit" => {
            rustix::process::setrlimit(
                rustix::process::Resource::Fsize,
                rustix::process::Rlimit {
                    current: Some(MIB),
                    maximum: None,
                },
            )
            .unwrap();
            let error = fails(&dir, &need(2 * MIB), Kind::Usage);
            insta::assert_snapshot!(error.remedy().unwrap(), @"raise it with `ulimit -f unlimited`, or choose a smaller --size");
            assert!(names(&dir).is_empty());
        }
        _ => unreachable!("{job}"),
    }
}

/// Need of a scratch file, and a private file for each of two workers.
fn with_private_files() -> Need {
    let private = PrivateFiles {
        threads: 2,
        bs: 4096,
        ranks: 1,
        files: None,
    };
    Need {
        beside: ExtraFiles {
            private: vec![private],
            fresh: 0,
        },
        ..need(MIB)
    }
}

fn in_child(job: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "scratch::child", "--nocapture"])
        .env("IOLAB_TEST_CHILD", job)
        .env("IOLAB_TEST_DIR", dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

#[test]
fn the_next_run_cleans_up_after_sigkill() {
    let _alone = alone();
    let dir = dir();
    let outside = self::dir();
    let older = file(outside.path(), "older", b"mine");
    // By the clock of the file system, which does not tell moments of one tick apart.
    let born = |path: &Path| fs::metadata(path).unwrap().created().ok();
    while born(&file(outside.path(), "younger", b"")) == born(&older) && born(&older).is_some() {
        fs::remove_file(outside.path().join("younger")).unwrap();
    }
    let mut child = in_child("hold", dir.path()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(
        lines
            .map_while(Result::ok)
            .any(|line| line.contains("holding"))
    );
    let place = dir.path().join(&names(dir.path())[0]);
    // Alive, so left alone.
    drop(Target::open(dir.path(), &need(MIB)).unwrap());
    assert_eq!(names(&place).len(), 4);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((names(dir.path()).len(), names(&place).len()), (1, 4));
    // An older file with the name of iolab's own keeps the directory, and the next run tries again.
    let mine = place.join("1");
    fs::rename(&older, &mine).unwrap();
    fs::set_permissions(&mine, Permissions::from_mode(0o600)).unwrap();
    let notes = || {
        let target = Target::open(dir.path(), &need(MIB)).unwrap();
        let told = said(target.notes().join("\n"), &place);
        told.replace("DIR", "PLACE")
    };
    if fs::metadata(&mine).unwrap().created().is_err() {
        return needs::skip(needs::Need::BirthTimes, "they are not recorded");
    }
    insta::assert_snapshot!(notes(), @"left PLACE of a run that was killed: it holds what iolab has not made or cannot remove; look into it and remove it by hand");
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    assert_eq!(names(&place).len(), 2);
    fs::rename(&mine, &older).unwrap();
    // So does a newer one without the properties of iolab's own.
    let own = place.join("0");
    fs::write(&own, vec![0; 1 << 20]).unwrap();
    assert!(notes().starts_with("left PLACE"));
    fs::set_permissions(&own, Permissions::from_mode(0o600)).unwrap();
    insta::assert_snapshot!(notes(), @"removed PLACE, a scratch directory of 1 MiB left by a run that was killed");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn file_size_limit_is_an_error_not_signal() {
    let _alone = alone();
    let dir = dir();
    let output = in_child("limit", dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}

#[test]
fn filled_file_has_no_hole_and_is_incompressible() {
    let dir = dir();
    // Not a multiple of the block size, so that the tail is written separately.
    let size = 9 * MIB + 12_345;
    let target = Target::open(dir.path(), &need(size)).unwrap();
    let is_direct = target.direct_alignment().is_ok() && !target.is_memory();
    let mut steps = Vec::new();
    let mut progress = |bytes| {
        // Once, because the kernel may read the block when this call has not found it in the page cache.
        if is_direct && steps.is_empty() {
            let (mut block, cached) = ([0; 4096], ReadWriteFlags::NOWAIT);
            let read = preadv2(target.file(), &mut [IoSliceMut::new(&mut block)], 0, cached);
            assert!(read.is_err(), "{read:?}");
        }
        steps.push(bytes);
    };
    target
        .fill(7, &AtomicBool::new(false), &mut progress)
        .unwrap();
    assert!(steps.is_sorted() && *steps.last().unwrap() == size);
    assert_complete(target.file(), size);

    let mut data = vec![0; size as usize];
    target.file().read_exact_at(&mut data, 0).unwrap();
    let mut counts = [0u64; 256];
    data.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    // Chi-square with 255 degrees of freedom: 400 is beyond any chance, 120 too good to be true.
    let expected = size as f64 / 256.0;
    let chi: f64 = counts
        .iter()
        .map(|count| (*count as f64 - expected).powi(2) / expected)
        .sum();
    assert!((120.0..400.0).contains(&chi), "chi-square {chi}");
    let mut blocks: Vec<&[u8]> = data.chunks_exact(512).collect();
    blocks.sort_unstable();
    assert!(blocks.windows(2).all(|pair| pair[0] != pair[1]));

    assert_eq!(target.file().metadata().unwrap().len(), size);
}

/// Checks that there is no hole (`SEEK_HOLE`) and no unwritten extent (`FIEMAP`) before `size`.
fn assert_complete(file: &File, size: u64) {
    let hole = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0)).unwrap();
    assert!(hole >= size, "hole at {hole}");

    const EXTENTS: usize = 256;
    const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
    const UNWRITTEN: u32 = 0x800;
    // struct fiemap of linux/fiemap.h: 32 bytes of header, then 56 bytes per extent.
    let mut request = vec![0u64; 4 + 7 * EXTENTS];
    request[1] = size;
    request[3] = EXTENTS as u64;
    // SAFETY: the kernel writes no more extents than the header says there is room for.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, request.as_mut_ptr()) };
    if answer != 0 {
        return needs::skip(needs::Need::Fiemap, std::io::Error::last_os_error());
    }
    let mapped = (request[2] >> 32) as usize;
    assert!(mapped > 0 && mapped < EXTENTS, "{mapped} extents");
    for extent in request[4..].chunks_exact(7).take(mapped) {
        assert_eq!(extent[5] as u32 & UNWRITTEN, 0, "{extent:?}");
    }
}

#[test]
fn only_the_same_seed_gives_the_same_data() {
    let dir = dir();
    let content = |seed| {
        let target = Target::open(dir.path(), &need(MIB)).unwrap();
        target
            .fill(seed, &AtomicBool::new(false), &mut |_| {})
            .unwrap();
        let mut data = vec![0; MIB as usize];
        target.file().read_exact_at(&mut data, 0).unwrap();
        data
    };
    assert_eq!(content(1), content(1));
    assert_ne!(content(1), content(2));
}

#[test]
fn an_interrupt_ends_the_filling_and_leaves_nothing() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(64 * MIB)).unwrap();
    let stop = AtomicBool::new(false);
    let mut last = 0;
    let error = target
        .fill(1, &stop, &mut |bytes| {
            last = bytes;
            stop.store(true, Ordering::Relaxed);
        })
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Interrupted);
    assert!(last < 64 * MIB);
    drop(target);
    assert!(names(dir.path()).is_empty());
}

// ---- free space

#[test]
fn too_large_a_file_is_refused_before_creation() {
    let dir = dir();
    let error = fails(dir.path(), &need(1 << 60), Kind::Refused);
    // The room differs between machines.
    let error = said(error, dir.path());
    insta::assert_snapshot!(error.split(':').next().unwrap_or_default(), @"a scratch file of 1 EiB does not fit into DIR");
    assert!(names(dir.path()).is_empty());

    let greedy = Need {
        size: Size::AtMost {
            most: 1 << 60,
            least: 1 << 59,
        },
        ..need(0)
    };
    fails(dir.path(), &greedy, Kind::Refused);
    for absurd in [0, u64::MAX] {
        fails(dir.path(), &need(absurd), Kind::Usage);
    }
    assert!(names(dir.path()).is_empty());
}
