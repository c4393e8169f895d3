//! Targets: what is accepted, what is refused, and that nothing of anybody's is lost or left behind.

#![allow(clippy::print_stderr)] // a test that skips says so

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use iolab_engine::target::{Consent, Need, OpenMode, Size, Target, TargetKind};
use iolab_engine::{Error, Kind};

const MIB: u64 = 1 << 20;

fn need(bytes: u64) -> Need {
    Need {
        size: Size::Exactly(bytes),
        write: false,
        consent: Consent::No,
        beside: Default::default(),
    }
}

fn writing(bytes: u64, consent: Consent) -> Need {
    Need {
        write: true,
        consent,
        ..need(bytes)
    }
}

fn named(signature: &str) -> Consent {
    Consent::DestroySignature(signature.to_owned())
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn file(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn fill(target: &Target) {
    target
        .fill(7, &AtomicBool::new(false), &mut |_| {})
        .unwrap();
}

/// The error of an open that must fail, with its kind and a remedy.
fn fails(path: &Path, need: &Need, kind: Kind) -> Error {
    let error = Target::open(path, need).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.remedy().is_some(), "no remedy: {error}");
    error
}

/// For tests that start processes, and for those that open again what was just closed: a process
/// being started has a copy of every descriptor, locks included, until it calls exec.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

// ---- scratch files

#[test]
fn a_scratch_file_is_private_locked_and_gone_in_the_end() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    assert_eq!(target.kind(), TargetKind::Scratch);
    assert_eq!(target.size(), MIB);
    let meta = fs::symlink_metadata(target.path()).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o600);
    assert_eq!(meta.len(), MIB + 4096);
    let other = File::open(target.path()).unwrap();
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
fn removal_spares_what_took_its_name() {
    let dir = dir();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    let path = target.path().to_owned();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "precious").unwrap();
    assert!(target.remove().is_err());
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

/// A left-over, made from a live scratch file: same content, mode and owner, but no lock.
fn leftover(dir: &Path, digits: &str) -> PathBuf {
    let target = Target::open(dir, &need(MIB)).unwrap();
    let path = dir.join(format!(".iolab-scratch-{digits}"));
    fs::copy(target.path(), &path).unwrap();
    path
}

#[test]
fn leftovers_of_dead_runs_are_removed_and_live_files_stay() {
    let _alone = alone();
    let dir = dir();
    let live = Target::open(dir.path(), &need(MIB)).unwrap();
    let dead = leftover(dir.path(), "00000000000000aa");
    let empty = file(dir.path(), ".iolab-scratch-00000000000000ab", b"");
    fs::set_permissions(&empty, Permissions::from_mode(0o600)).unwrap();

    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    assert!(!dead.exists() && !empty.exists());
    assert!(live.path().exists());
    let notes = target.notes().join("\n");
    assert!(notes.contains("00000000000000aa") && notes.contains("00000000000000ab"));
    assert!(!notes.contains(live.path().file_name().unwrap().to_str().unwrap()));
}

#[test]
fn what_only_looks_like_a_leftover_is_left_alone() {
    let _alone = alone();
    let dir = dir();
    let outside = tempfile::tempdir().unwrap();
    let at = |digits: &str| dir.path().join(format!(".iolab-scratch-{digits}"));
    let private = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();

    // Made aside: in the directory itself, the next one would clean the former up.
    let genuine = leftover(outside.path(), "00000000000000a0");
    let copy = |path: &Path| fs::copy(&genuine, path).unwrap();

    symlink(&genuine, at("0000000000000001")).unwrap();
    copy(&at("0000000000000002"));
    fs::set_permissions(at("0000000000000002"), Permissions::from_mode(0o644)).unwrap();
    fs::write(at("0000000000000003"), vec![7; 8192]).unwrap();
    private(&at("0000000000000003"));
    copy(&at("0000000000000004"));
    fs::hard_link(at("0000000000000004"), dir.path().join("second name")).unwrap();
    copy(&at("0000000000000005"));
    let held = File::open(at("0000000000000005")).unwrap();
    held.lock().unwrap();
    copy(&dir.path().join(".iolab-scratch-0006"));
    copy(&dir.path().join("iolab-scratch-0000000000000007"));
    fs::create_dir(at("0000000000000008")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("0000000000000009"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    // The footer of another length: somebody appended to it, or cut it.
    copy(&at("000000000000000a"));
    let longer = OpenOptions::new()
        .write(true)
        .open(at("000000000000000a"))
        .unwrap();
    longer.set_len(2 * MIB).unwrap();

    let before = names(dir.path()).len();
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    assert!(target.notes().iter().all(|note| !note.contains("removed")));
    drop(target);
    assert_eq!(names(dir.path()).len(), before);
    assert!(genuine.exists());
    assert!(
        fs::symlink_metadata(at("0000000000000009"))
            .unwrap()
            .file_type()
            .is_fifo()
    );
}

/// Not a test of its own: what a test wants to run in a process of its own.
#[test]
fn child() {
    let Ok(job) = std::env::var("IOLAB_TEST_CHILD") else {
        return;
    };
    let dir = PathBuf::from(std::env::var("IOLAB_TEST_DIR").unwrap());
    match job.as_str() {
        "hold" => {
            let target = Target::open(&dir, &need(MIB)).unwrap();
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
            let error = fails(&dir, &need(MIB), Kind::Usage);
            assert!(error.remedy().unwrap().contains("ulimit -f"), "{error}");
            assert!(names(&dir).is_empty());
        }
        _ => unreachable!("{job}"),
    }
}

fn in_child(job: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--nocapture"])
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
    let mut child = in_child("hold", dir.path()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(
        lines
            .map_while(Result::ok)
            .any(|line| line.contains("holding"))
    );
    // Alive: left alone.
    drop(Target::open(dir.path(), &need(MIB)).unwrap());
    assert_eq!(names(dir.path()).len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(dir.path()).len(), 1);
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    assert!(
        target
            .notes()
            .iter()
            .any(|note| note.contains("was killed"))
    );
    drop(target);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn the_limit_on_file_sizes_is_an_error_and_no_signal() {
    let _alone = alone();
    let dir = dir();
    let output = in_child("limit", dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}

// ---- filling

#[test]
fn a_filled_file_has_no_hole_and_does_not_compress() {
    let dir = dir();
    // No multiple of anything: the tail goes another way than the rest.
    let size = 9 * MIB + 12_345;
    let target = Target::open(dir.path(), &need(size)).unwrap();
    let mut steps = Vec::new();
    target
        .fill(7, &AtomicBool::new(false), &mut |bytes| steps.push(bytes))
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

    // The footer outlived the fill: this is still a file that the next run knows.
    assert_eq!(target.file().metadata().unwrap().len(), size + 4096);
    let mut footer = [0; 5];
    target.file().read_exact_at(&mut footer, size).unwrap();
    assert_eq!(&footer, b"iolab");
}

/// No hole (`SEEK_HOLE`) and no unwritten extent (`FIEMAP`) before `size`.
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
        eprintln!("FIEMAP left out: this file system does not have it");
        return;
    }
    let mapped = (request[2] >> 32) as usize;
    assert!(mapped > 0 && mapped < EXTENTS, "{mapped} extents");
    for extent in request[4..].chunks_exact(7).take(mapped) {
        assert_eq!(extent[5] as u32 & UNWRITTEN, 0, "{extent:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_data_and_another_seed_other_data() {
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
fn more_than_there_is_room_for_is_refused_before_anything_is_made() {
    let dir = dir();
    let error = fails(dir.path(), &need(1 << 60), Kind::Refused);
    assert!(error.message().contains("1 EiB"), "{error}");
    assert!(error.remedy().unwrap().contains("--size"), "{error}");
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

#[test]
fn a_default_size_is_cut_with_a_note() {
    let dir = dir();
    let modest = Need {
        size: Size::AtMost {
            most: 1 << 60,
            least: MIB,
        },
        ..need(0)
    };
    let target = Target::open(dir.path(), &modest).unwrap();
    assert!(target.size() < 1 << 60 && target.size().is_multiple_of(MIB));
    assert!(target.notes().iter().any(|note| note.contains("1 EiB")));
}

// ---- existing files

#[test]
fn a_file_is_opened_read_only_unless_it_is_to_be_written() {
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
    assert!(error.remedy().unwrap().contains("--destroy-data"));

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
    let image = OpenOptions::new().write(true).open(&path).unwrap();
    image.write_all_at(&[0x53, 0xef], 0x438).unwrap();
    image.write_all_at(&[4, 0, 0, 0, 0x40], 0x45c).unwrap();

    let error = fails(&path, &writing(MIB, Consent::Destroy), Kind::Refused);
    assert!(error.message().contains("ext4"), "{error}");
    assert!(error.remedy().unwrap().ends_with("--destroy-data=ext4"));
    fails(&path, &writing(MIB, named("xfs")), Kind::Refused);
    fails(&path, &writing(MIB, named("")), Kind::Refused);
    for name in ["ext4", "EXT4", "xfs, ext4"] {
        Target::open(&path, &writing(MIB, named(name))).unwrap();
    }
    // Reading harms nobody.
    Target::open(&path, &need(MIB)).unwrap();

    image.write_all_at(b"EFI PART", (4 << 20) - 512).unwrap();
    let error = fails(&path, &writing(MIB, named("ext4")), Kind::Refused);
    assert!(error.remedy().unwrap().ends_with("=ext4,gpt"), "{error}");
    Target::open(&path, &writing(MIB, named("gpt,ext4"))).unwrap();
}

#[test]
fn what_mkfs_makes_is_known() {
    let _alone = alone();
    let dir = dir();
    let path = file(dir.path(), "image", b"");
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(512 * MIB)
        .unwrap();
    for (tool, arguments, name) in [
        ("mkfs.ext2", &["-q", "-F"][..], "ext2"),
        ("mkfs.ext3", &["-q", "-F"], "ext3"),
        ("mkfs.ext4", &["-q", "-F"], "ext4"),
        ("mkswap", &[], "swap"),
        ("mkfs.xfs", &["-q", "-f"], "xfs"),
        ("mkfs.vfat", &[], "vfat"),
    ] {
        let made = Command::new(tool).args(arguments).arg(&path).output();
        if !made.is_ok_and(|output| output.status.success()) {
            eprintln!("{name} left out: {tool} is not here or fails");
            continue;
        }
        let error = fails(&path, &writing(MIB, Consent::Destroy), Kind::Refused);
        assert!(
            error.remedy().unwrap().ends_with(&format!("={name}")),
            "{error}"
        );
    }
}

#[test]
fn files_with_two_names_or_in_use_are_not_written() {
    let _alone = alone();
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let consent = writing(8192, Consent::Destroy);
    let other = dir.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    let error = fails(&path, &consent, Kind::Refused);
    assert!(error.message().contains("hard links"), "{error}");
    fs::remove_file(&other).unwrap();

    let held = File::open(&path).unwrap();
    held.lock().unwrap();
    let error = fails(&path, &consent, Kind::Refused);
    assert!(error.message().contains("lock"), "{error}");
    Target::open(&path, &need(8192)).unwrap();
    held.unlock().unwrap();

    let image = File::options().read(true).write(true).open(&path).unwrap();
    record_lock(&image);
    let error = fails(&path, &consent, Kind::Refused);
    assert!(error.message().contains("lock"), "{error}");
    drop(image);

    let first = Target::open(&path, &consent).unwrap();
    fails(&path, &consent, Kind::Refused);
    drop(first);
    Target::open(&path, &consent).unwrap();
}

/// Locks one byte the way a virtual machine locks its image.
fn record_lock(file: &File) {
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
}

#[test]
fn a_file_gives_no_more_than_it_has() {
    let dir = dir();
    let path = file(dir.path(), "data", &[5; 8192]);
    let error = fails(&path, &need(8193), Kind::Usage);
    assert!(error.message().contains("8193") && error.message().contains("8192"));
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

// ---- paths of every kind

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
    assert!(target.notes()[0].contains("symlink"));
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
    assert!(
        target
            .notes()
            .iter()
            .any(|note| note.contains("not storage"))
    );
    assert!(target.is_memory() && target.device().is_none() && target.filesystem().is_none());
    let error = target.direct_alignment().unwrap_err();
    assert!(error.remedy().unwrap().contains("--buffered"));
    assert!(target.reopen(OpenMode::default()).is_ok());
    fails(zero, &writing(MIB, Consent::Destroy), Kind::Refused);
}

#[test]
fn a_directory_that_may_not_be_written_is_a_clear_error() {
    if is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let dir = dir();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("inside"), "x").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();
    let error = fails(&closed, &need(MIB), Kind::Usage);
    assert!(error.message().contains("EACCES"), "{error}");
    fs::set_permissions(&closed, Permissions::from_mode(0o600)).unwrap();
    let error = fails(&closed.join("inside"), &need(1), Kind::Usage);
    assert!(error.message().contains("EACCES"), "{error}");
    // Enough to work in it, though its names cannot be listed.
    fs::set_permissions(&closed, Permissions::from_mode(0o300)).unwrap();
    drop(Target::open(&closed, &need(MIB)).unwrap());
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();

    let path = file(dir.path(), "read-only", &[5; 4096]);
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    Target::open(&path, &need(4096)).unwrap();
    let error = fails(&path, &writing(4096, Consent::Destroy), Kind::Usage);
    assert!(error.message().contains("EACCES"), "{error}");
}

// ---- what it lies on, and how it is opened anew

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
            eprintln!("skipped: {error}");
            return;
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
        eprintln!("skipped: no /dev/shm to write to");
        return;
    };
    let target = Target::open(dir.path(), &need(MIB)).unwrap();
    if target.filesystem().is_none_or(|fs| fs.kind != "tmpfs") {
        eprintln!("skipped: /dev/shm is no tmpfs");
        return;
    }
    assert!(target.is_memory() && target.device().is_none());
    assert!(target.notes().iter().any(|note| note.contains("memory")));
    fill(&target);
}
