//! Tests.

use std::io::Read;
use std::path::PathBuf;

use rustix::fs::{Advice, fadvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::*;

/// A small file of messages is not one of the program's files; a large one is the program's product.
#[test]
fn standard_output_counts_where_it_is_large() {
    let folder =
        tempfile::tempdir_in(needs::folder_on_disk().expect("a folder")).expect("a folder");
    for (bytes, is_kept) in [(1000, false), (REPORT_MOST, true)] {
        let path = folder.path().join(bytes.to_string());
        let file = fs::File::create(&path).expect("a file");
        // A separate process, because other tests in this one may have the file open.
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(file.try_clone().expect("it is open"))
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("cat is everywhere");
        let mut seen = Descriptors {
            report: [id_of(&file.metadata().expect("it is open"))].into(),
            ..Descriptors::default()
        };
        seen.look(&[child.id()]);
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        file.set_len(bytes).expect("it is open for writing");
        let on = |seen: &Descriptors| {
            let found = seen.files.values().find(|seen| seen.path == path);
            found.map(|found| found.report_on.clone())
        };
        let stack = on(&seen).expect("it was seen");
        // Other open files here may lie on the same disk.
        seen.stacks.clear();
        seen.finish();
        assert_eq!(on(&seen).is_some(), is_kept, "{bytes}");
        assert_eq!(seen.stacks, Vec::from_iter(stack.filter(|_| is_kept)));
    }
}

/// Files are not held open here afterwards. A deleted file does not show, nor does its replacement; a
/// renamed one does. The space of a deleted file is freed, and its device is still known.
#[test]
fn files_are_opened_at_the_end_only() {
    let folder =
        tempfile::tempdir_in(needs::folder_on_disk().expect("a folder")).expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let names = ["stays", "deleted", "later", "replaced", "old"];
    let files = names.map(|name| fs::File::create_new(path(name)).expect("a file"));
    let mut seen = Descriptors::new();
    seen.look(&[std::process::id()]);
    let found = |seen: &Descriptors| -> Vec<(PathBuf, bool)> {
        let own = seen.files.values();
        let own = own.filter(|seen| seen.path.starts_with(folder.path()));
        let mut all: Vec<_> = own
            .map(|seen| (seen.path.clone(), seen.opened.is_some()))
            .collect();
        all.sort();
        all
    };
    let closed =
        |names: &[&str]| -> Vec<_> { names.iter().map(|name| (path(name), false)).collect() };
    assert_eq!(
        found(&seen),
        closed(&["deleted", "later", "old", "replaced", "stays"])
    );
    let has_device = seen.files.values().any(|file| file.has_device);
    fs::remove_file(path("deleted")).expect("there");
    seen.look(&[std::process::id()]);
    assert_eq!(found(&seen), closed(&["later", "old", "replaced", "stays"]));
    fs::rename(path("old"), path("new")).expect("renamed");
    fs::write(path("other"), "12").expect("written");
    fs::rename(path("other"), path("replaced")).expect("renamed");
    fs::write(path("stays"), "1234").expect("written");
    drop(files);
    fs::remove_file(path("later")).expect("there");
    seen.finish();
    assert_eq!(found(&seen), [(path("new"), true), (path("stays"), true)]);
    let stays = seen.files.values().find(|seen| seen.path == path("stays"));
    assert_eq!(stays.map(SeenFile::bytes), Some(4));
    assert_eq!(!seen.stacks.is_empty(), has_device);
}

#[test]
fn what_this_process_has_open_is_seen() {
    let file = tempfile::NamedTempFile::new_in(needs::folder_on_disk().expect("a folder"))
        .expect("a file");
    let _zero = fs::File::open("/dev/zero").expect("there");
    let _null = fs::File::open("/dev/null").expect("there");
    let (_from, _to) = std::io::pipe().expect("a pipe");
    let mut seen = Descriptors::new();
    seen.look(&[std::process::id()]);
    let found = seen.files.values().find(|seen| seen.path == file.path());
    assert!(
        found.is_some_and(|found| found.is_written),
        "{:?}",
        seen.files
    );
    let ways = seen.finish();
    assert!(ways.reads.buffered && ways.writes.buffered && ways.inner_pipes);
    assert!(ways.sources.contains(&NoStorage::CharDevice));
}

fn way(line: &str, executed: &[&str], bytes: Option<u64>) -> Option<UncountedWay> {
    let mapping = Mapping::parse(line).expect("a line");
    let executed = executed.iter().copied().collect();
    mapping.way(mapping.is_of_program(&executed), bytes)
}

#[test]
fn mappings_are_read_as_linux_prints_them() {
    use UncountedWay::{Libaio, Mmap};
    let program = "fe:00 81   /usr/bin/my tool";
    for (of_mapping, expected) in [
        ("rw-s 00000000 00:0f 1234   /[aio] (deleted)", Some(Libaio)),
        ("r--s 00000000 fe:00 77   /data/file", Some(Mmap)),
        (
            "r--p 00000000 fe:00 79   /usr/lib/locale/locale-archive",
            None,
        ),
        ("rw-s 00000000 00:01 9   /dev/zero (deleted)", None),
        ("rw-p 00000000 00:00 0 ", None),
        ("rw-p 00000000 00:00 0    [heap]", None),
        ("r--p 00000000 fe:00 80   /repo/pack-1.pack", Some(Mmap)),
        // A part without code of an executed file, a data library, and a data file whose path begins like
        // the program's.
        ("r--p 00000000 fe:00 81   /usr/bin/my tool", None),
        ("r--p 00000000 fe:00 82   /usr/lib/libdata.so.7", None),
        ("r--p 00000000 fe:00 83   /usr/bin/my data", Some(Mmap)),
    ] {
        let line = format!("7f0000000000-7f0008000000 {of_mapping}");
        let mapping = Mapping::parse(&line).expect("a line");
        assert_eq!(mapping.names_file(), line.contains("fe:00"), "{line}");
        assert_eq!(way(&line, &[program], None), expected, "{line}");
    }
    let cache =
        "7f0000000000-7f0000007000 r--s 00000000 fe:00 78   /usr/lib/gconv/gconv-modules.cache";
    assert_eq!(way(cache, &[program], None), None);
    for line in ["", "7f00-7f08 r--p", "x-y r--p 0 fe:00 1   /a"] {
        assert_eq!(Mapping::parse(line), None, "{line}");
    }
}

#[test]
fn window_of_a_large_file_is_mmap_io() {
    let line = "7f0000000000-7f0000010000 r--s 00000000 fe:00 77   /data/large file";
    assert_eq!(way(line, &[], Some(256 << 20)), Some(UncountedWay::Mmap));
    assert_eq!(way(line, &[], Some(64 << 10)), None);
    // A deleted file: only the end of the mapping is known.
    let deleted = "7f0000000000-7f0000010000 r--s 00800000 fe:00 77   /data/file (deleted)";
    assert_eq!(way(deleted, &[], None), Some(UncountedWay::Mmap));
}

#[test]
fn program_being_loaded_is_not_data() {
    let lines = [
        "7f0000000000-7f0008000000 r--p 00000000 fe:00 81   /usr/bin/my tool",
        "7f0008000000-7f0010000000 r--p 00000000 fe:00 83   /usr/bin/my data",
    ];
    let all = lines.map(|line| Mapping::parse(line).expect("a line"));
    let executed = executed(&all, Path::new("/usr/bin/my tool"));
    let data = all.map(|one| one.way(one.is_of_program(&executed), None));
    assert_eq!(data, [None, Some(UncountedWay::Mmap)]);
}

/// A file that is executed and read in order: one fault makes the kernel fetch all of it.
#[test]
fn growth_of_a_program_file_is_seen() {
    const BYTES: usize = 4 << 20;
    let mut file = tempfile::NamedTempFile::new_in(needs::folder_on_disk().expect("a folder"))
        .expect("a file");
    fs::write(file.path(), vec![7; BYTES]).expect("written");
    file.as_file().sync_all().expect("synced");
    fadvise(file.as_file(), 0, None, Advice::DontNeed).expect("advised");
    if resident(file.path()).is_none_or(|left| left > 0) {
        needs::skip(needs::Need::ColdCache, "the pages of a file stay");
        return;
    }
    let rights = ProtFlags::READ | ProtFlags::EXEC;
    // SAFETY: a new mapping, which nothing reads.
    let mapping = unsafe {
        mmap(
            std::ptr::null_mut(),
            BYTES,
            rights,
            MapFlags::PRIVATE,
            file.as_file(),
            0,
        )
    };
    let mapping = mapping.expect("it is mapped");
    let mut seen = Mapped::default();
    let this = std::process::id();
    assert!(!seen.look(this).contains(&UncountedWay::Libaio));
    file.read_to_end(&mut Vec::new()).expect("read");
    seen.look(this);
    let gained = seen.gained();
    // SAFETY: the mapping from above, which is used no more.
    unsafe { munmap(mapping, BYTES) }.expect("it was mapped");
    assert!(gained >= BYTES as u64, "{gained}");
}
