//! What processes have open and mapped: files and devices of storage, and other things that bytes come from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, read_dir, read_to_string};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::pseudo_files::lossy_text_of;
use iolab_storage::{Opened, Stack};
use iolab_workload::medium::Medium;
use iolab_workload::witness::{IoWays, NoStorage, OpenWays, UncountedWay};
use rustix::fs::{Mode, OFlags, major};

/// Most files whose state is kept; further ones count for the ways of I/O only.
const FILES_MAX: usize = 64;
/// Most descriptors that one look examines, so that a program with thousands of them costs no more.
const DESCRIPTORS_MAX: usize = 512;
/// Least size of a file whose mapping counts as a way of I/O, whatever its length: tables of the C library are shorter. Two windows
/// of the default read-ahead: of a smaller file a fault fetches no more.
pub(super) const MAPPED_LEAST: u64 = 256 << 10;
/// Major numbers of terminals (Documentation/admin-guide/devices.txt of Linux): consoles, and both ends of pseudo-terminals.
const TERMINALS: [u32; 18] = [
    4, 5, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143,
];

/// A file, by device and inode.
type FileId = (u64, u64);

/// Whose files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Owner {
    /// A program that was started for it: its files stay open here until the end, so that they can be looked at then.
    Own,
    /// Somebody else, who may want a lease, or to unmount: what he has open is opened for a moment to look at it, once when it is first
    /// seen and once at the end.
    #[default]
    Foreign,
}

/// A file that was seen open.
#[derive(Debug)]
pub(super) struct SeenFile {
    pub(super) path: PathBuf,
    pub(super) medium: Medium,
    /// Whether the device that it lies on is known.
    pub(super) has_device: bool,
    /// Its size when it was first seen, bytes.
    bytes: u64,
    /// The file, while it is open here.
    pub(super) opened: Option<Opened>,
    /// Whether its path led to it here when it was first seen; not that of a file in another mount namespace.
    is_reachable: bool,
    pub(super) is_read: bool,
    pub(super) is_written: bool,
}

impl SeenFile {
    /// Its size, bytes.
    pub(super) fn bytes(&self) -> u64 {
        let now = self.opened.as_ref().and_then(Opened::bytes);
        now.unwrap_or(self.bytes)
    }
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    owner: Owner,
    pub(super) files: BTreeMap<FileId, SeenFile>,
    /// What all files lie on that were seen, deleted ones included; each once.
    pub(super) stacks: Vec<Stack>,
    pub(super) ways: IoWays,
    /// Files that were seen and are not kept.
    known: BTreeMap<FileId, Kind>,
    /// What this process has as standard output and standard error.
    report: BTreeSet<FileId>,
    pipes_read: BTreeSet<FileId>,
    pipes_written: BTreeSet<FileId>,
    /// Files that were seen mapped, of which the largest has so many bytes; `None` before any was seen.
    mapped: BTreeSet<String>,
    pub(super) largest_mapped: Option<u64>,
}

/// What a regular file is for an account of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its bytes are storage's, or another machine's.
    Stored,
    /// It lies in memory.
    Memory,
    /// The kernel makes its content up, or it is a part of the program.
    Pseudo,
}

impl Descriptors {
    /// Nothing was seen yet.
    pub(super) fn new(owner: Owner) -> Self {
        let own = ["/proc/self/fd/1", "/proc/self/fd/2"].into_iter();
        let own = own.filter_map(|link| fs::metadata(link).ok());
        Self {
            owner,
            report: own.map(|own| id_of(&own)).collect(),
            ..Self::default()
        }
    }

    /// Looks at processes once.
    pub(super) fn look(&mut self, processes: &[u32]) {
        let mut left = DESCRIPTORS_MAX;
        let mut seen = false;
        for process in processes {
            let Ok(entries) = read_dir(format!("/proc/{process}/fd")) else {
                continue;
            };
            // What this process has, apart from what was seen of all.
            let before = std::mem::take(&mut self.ways.reads);
            let others = std::mem::take(&mut self.ways.uncounted);
            for entry in entries.flatten() {
                if left == 0 {
                    break;
                }
                left -= 1;
                seen = true;
                self.descriptor(*process, &entry.path());
            }
            self.mappings(*process);
            let ways = &mut self.ways;
            if !ways.uncounted.is_empty() {
                ways.uncounted_reads = ways.uncounted_reads.or(ways.reads);
            }
            ways.reads = ways.reads.or(before);
            ways.uncounted.extend(others);
        }
        if left == 0 {
            // What was not looked at may well use the page cache.
            self.ways.reads.buffered = true;
            self.ways.writes.buffered = true;
            self.ways.uncounted_reads.buffered = true;
        }
        self.ways.looks += u64::from(seen);
        self.close_deleted();
    }

    /// Closes files that the program has deleted: their space, and what was not yet written of them, would stay as long as they are
    /// open here.
    fn close_deleted(&mut self) {
        let is_deleted = |file: &SeenFile| {
            let metadata = file.opened.as_ref().map(|file| file.holder().metadata());
            metadata.is_some_and(|metadata| metadata.is_ok_and(|metadata| is_deleted(&metadata)))
        };
        for (id, _) in self.files.extract_if(.., |_, file| is_deleted(file)) {
            self.known.insert(id, Kind::Stored);
        }
    }

    /// Opens the files that are not kept open, for a last look; those that are no longer there are left out.
    fn reopen(&mut self) {
        self.files.retain(|id, file| {
            if file.opened.is_none() && file.is_reachable {
                file.opened = opened_again(&file.path, *id);
                return file.opened.is_some();
            }
            true
        });
    }

    /// What was seen in all looks; files that were deleted since the last one are closed, all others are open.
    pub(super) fn finish(&mut self) -> IoWays {
        self.reopen();
        self.close_deleted();
        let mut ways = std::mem::take(&mut self.ways);
        ways.inner_pipes = self.pipes_read.intersection(&self.pipes_written).count() > 0;
        if self.pipes_read.difference(&self.pipes_written).count() > 0 {
            ways.sources.insert(NoStorage::Pipe);
        }
        ways
    }

    fn descriptor(&mut self, process: u32, link: &Path) {
        // It may have been closed since the folder was read.
        let (Ok(metadata), Some(flags)) = (fs::metadata(link), flags_of(process, link)) else {
            self.ring(link);
            return;
        };
        let access = flags & OFlags::RWMODE;
        let (reads, writes) = (access != OFlags::WRONLY, access != OFlags::RDONLY);
        let id = id_of(&metadata);
        let kind = metadata.file_type();
        // What goes to the standard output that it shares with this process is its report, as a rule.
        let is_report = !reads && self.report.contains(&id);
        if kind.is_fifo() {
            if reads {
                self.pipes_read.insert(id);
            }
            if writes {
                self.pipes_written.insert(id);
            }
            if writes && !is_report {
                self.ways.sinks.insert(NoStorage::Pipe);
            }
        } else if kind.is_socket() {
            self.note(NoStorage::Socket, reads, writes && !is_report);
        } else if kind.is_char_device() {
            let is_null = metadata.rdev() == NULL_DEVICE;
            if !TERMINALS.contains(&major(metadata.rdev())) {
                self.note(
                    NoStorage::CharDevice,
                    reads && !is_null,
                    writes && !is_report,
                );
            }
        } else if kind.is_file() || kind.is_block_device() {
            match self.stored(&metadata, link, (reads, writes)) {
                Some(Kind::Stored) if !is_report => {
                    let is_direct = flags.contains(OFlags::DIRECT);
                    let note = |ways: &mut OpenWays| match is_direct {
                        true => ways.direct = true,
                        false => ways.buffered = true,
                    };
                    if reads {
                        note(&mut self.ways.reads);
                    }
                    if writes {
                        note(&mut self.ways.writes);
                    }
                }
                Some(Kind::Memory) => self.note(NoStorage::Memory, reads, writes && !is_report),
                _ => {}
            }
        } else {
            self.ring(link);
        }
    }

    fn note(&mut self, what: NoStorage, reads: bool, writes: bool) {
        if reads {
            self.ways.sources.insert(what);
        }
        if writes {
            self.ways.sinks.insert(what);
        }
    }

    /// Notes a ring of io_uring: it has a descriptor without a file.
    fn ring(&mut self, link: &Path) {
        let is_ring = fs::read_link(link).is_ok_and(|to| to.as_os_str() == "anon_inode:[io_uring]");
        if is_ring {
            self.ways.uncounted.insert(UncountedWay::IoUring);
        }
    }

    /// What a regular file or block device is; one of storage is kept.
    fn stored(
        &mut self,
        metadata: &Metadata,
        link: &Path,
        (reads, writes): (bool, bool),
    ) -> Option<Kind> {
        let id = id_of(metadata);
        if is_deleted(metadata)
            && self
                .files
                .get(&id)
                .is_some_and(|file| file.opened.is_none())
        {
            self.files.remove(&id);
            self.known.insert(id, Kind::Stored);
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.is_read |= reads;
            file.is_written |= writes;
            return Some(Kind::Stored);
        }
        if let Some(kind) = self.known.get(&id) {
            return Some(*kind);
        }
        let path = fs::read_link(link).ok()?;
        let kind = if path.starts_with("/proc") || path.starts_with("/sys") || is_library(&path) {
            Kind::Pseudo
        } else {
            let opened = Opened::open(link).ok()?;
            match opened.medium() {
                Medium::Memory => Kind::Memory,
                medium @ (Medium::Storage | Medium::Elsewhere) if self.files.len() < FILES_MAX => {
                    let stack = opened.stack();
                    if stack.device.is_some() && !self.stacks.contains(&stack) {
                        self.stacks.push(stack.clone());
                    }
                    let file = SeenFile {
                        medium,
                        has_device: stack.device.is_some(),
                        bytes: opened.bytes().unwrap_or(0),
                        is_reachable: fs::metadata(&path).is_ok_and(|found| id_of(&found) == id),
                        path,
                        opened: Some(opened).filter(|_| self.owner == Owner::Own),
                        is_read: reads,
                        is_written: writes,
                    };
                    self.files.insert(id, file);
                    return Some(Kind::Stored);
                }
                Medium::Storage | Medium::Elsewhere => Kind::Stored,
            }
        };
        self.known.insert(id, kind);
        Some(kind)
    }

    /// Notes contexts of libaio and mappings of files: proc_pid_maps(5).
    fn mappings(&mut self, process: u32) {
        let Ok(maps) = lossy_text_of(format!("/proc/{process}/maps")) else {
            return;
        };
        let run: BTreeSet<&str> = maps.lines().filter_map(executed).collect();
        let ways = maps
            .lines()
            .filter_map(|line| mapping(line, &run, file_bytes));
        self.ways.uncounted.extend(ways);
        for path in maps.lines().filter_map(mapped_file) {
            if self.mapped.contains(path) {
                continue;
            }
            // One in another mount namespace may be any, and so may those that there is no room for.
            let found = fs::metadata(path).ok();
            let found = found.filter(|_| self.mapped.len() < MAPPED_MAX);
            if found.is_some() {
                self.mapped.insert(path.to_owned());
            }
            let bytes = found.map_or(u64::MAX, |found| found.len());
            self.largest_mapped = self.largest_mapped.max(Some(bytes));
        }
    }
}

fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

fn is_deleted(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.nlink() == 0
}

/// Opens a path that led to this file, if it still does. Whatever else is there by now is not opened: that alone may do something.
fn opened_again(path: &Path, id: FileId) -> Option<Opened> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let link = PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()));
    let is_same = fs::metadata(&link).is_ok_and(|found| id_of(&found) == id);
    is_same.then(|| Opened::open(&link).ok()).flatten()
}

/// Whether a file is one that the loader opens for a moment: `libc.so.6`.
fn is_library(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.ends_with(".so") || name.contains(".so."))
}

/// Device number of `/dev/null`.
const NULL_DEVICE: u64 = 0x0103;

/// The flags that a descriptor was opened with: proc_pid_fdinfo(5), in octal.
fn flags_of(process: u32, link: &Path) -> Option<OFlags> {
    let number = link.file_name()?.to_str()?;
    let text = read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    Some(OFlags::from_bits_retain(flags))
}

/// The file that a line of maps shows.
fn mapped_file(line: &str) -> Option<&str> {
    let path = line.splitn(6, ' ').nth(5)?.trim_start();
    let is_file = path.starts_with('/') && !path.ends_with(" (deleted)");
    let is_memory = NO_FILES.iter().any(|start| path.starts_with(start));
    (is_file && !is_memory).then_some(path)
}

/// The file that a line of maps shows to be run: a program or a library.
fn executed(line: &str) -> Option<&str> {
    let mut fields = line.split_whitespace().skip(1);
    let is_run = fields.next()?.contains('x');
    fields.nth(3).filter(|_| is_run)
}

/// The way of I/O that a line of maps shows: `FROM-TO rw-s OFFSET MAJOR:MINOR INODE PATH`. Files that are run have parts without code.
/// A program can map a large file a window at a time, so its size decides; of one that cannot be found, the end of the mapping.
fn mapping(line: &str, run: &BTreeSet<&str>, size: impl Fn(&str) -> u64) -> Option<UncountedWay> {
    let mut fields = line.split_whitespace();
    let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let inode = fields.nth(1)?;
    let path = fields.next()?;
    if path.starts_with("/[aio]") {
        return Some(UncountedWay::Libaio);
    }
    let (from, to) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let length = address(to)?.checked_sub(address(from)?)?;
    let end = address(offset)?.saturating_add(length);
    let is_memory = NO_FILES.iter().any(|start| path.starts_with(start));
    let is_of_system = rights.ends_with('p')
        && (run.contains(path) || is_library(Path::new(path)) || path.starts_with(LOCALES));
    let is_data = inode != "0" && !is_memory && !is_of_system;
    let is_large =
        || end >= MAPPED_LEAST || mapped_file(line).is_some_and(|path| size(path) >= MAPPED_LEAST);
    (is_data && is_large()).then_some(UncountedWay::Mmap)
}

/// The size of a file, bytes; 0 of one that is not found.
fn file_bytes(path: &str) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// How what is mapped begins that lies in no file of storage.
const NO_FILES: [&str; 5] = ["/dev/", "/SYSV", "/memfd:", "/[aio]", "anon_inode:"];
/// Most files whose size is noted because they are mapped.
const MAPPED_MAX: usize = 4096;
/// What the C library maps of every program that has a language.
const LOCALES: &str = "/usr/lib/locale/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_as_linux_prints_them() {
        for (line, way) in [
            (
                "7f0000000000-7f0000003000 rw-s 00000000 00:0f 1234   /[aio] (deleted)",
                Some(UncountedWay::Libaio),
            ),
            (
                "7f0000000000-7f0008000000 r--s 00000000 fe:00 77   /data/file",
                Some(UncountedWay::Mmap),
            ),
            (
                "7f0000000000-7f0000007000 r--s 00000000 fe:00 78   /usr/lib/gconv/gconv-modules.cache",
                None,
            ),
            (
                "7f0000000000-7f0008000000 r--p 00000000 fe:00 79   /usr/lib/locale/locale-archive",
                None,
            ),
            (
                "7f0000000000-7f0008000000 rw-s 00000000 00:01 9   /dev/zero (deleted)",
                None,
            ),
            ("7f0000000000-7f0008000000 rw-p 00000000 00:00 0", None),
            (
                "7f0000000000-7f0008000000 r--p 00000000 fe:00 80   /repo/objects/pack-1.pack",
                Some(UncountedWay::Mmap),
            ),
            // Parts without code of what is run, and a library that is not.
            (
                "7f0000000000-7f0008000000 r--p 00000000 fe:00 81   /usr/bin/tool",
                None,
            ),
            (
                "7f0000000000-7f0008000000 r--p 00000000 fe:00 82   /usr/lib/libdata.so.7",
                None,
            ),
        ] {
            let has_file = line.contains("   /") && !line.contains("(deleted)");
            assert_eq!(mapped_file(line).is_some(), has_file, "{line}");
            let program = "7f0000000000-7f0008000000 r-xp 00000000 fe:00 81   /usr/bin/tool";
            let run = executed(program)
                .into_iter()
                .chain(executed(line))
                .collect();
            assert_eq!(mapping(line, &run, |_| 0), way, "{line}");
        }
    }

    #[test]
    fn a_window_of_a_large_file_is_a_way_of_io() {
        let line = "7f0000000000-7f0000010000 r--s 00000000 fe:00 77   /data/large file";
        let of = |bytes| {
            mapping(line, &BTreeSet::new(), |path| {
                assert_eq!(path, "/data/large file");
                bytes
            })
        };
        assert_eq!(of(256 << 20), Some(UncountedWay::Mmap));
        assert_eq!(of(64 << 10), None);
        // It was deleted: all that is known is where the mapping ends.
        let deleted = "7f0000000000-7f0000010000 r--s 00800000 fe:00 77   /data/file (deleted)";
        assert_eq!(
            mapping(deleted, &BTreeSet::new(), |_| 0),
            Some(UncountedWay::Mmap)
        );
    }

    /// Its space returns, and nothing of it waits to be written back.
    #[test]
    fn a_deleted_file_is_not_kept_open() {
        let this = std::process::id();
        let close: [fn(&mut Descriptors); 2] = [|seen| seen.look(&[]), |seen| drop(seen.finish())];
        for close in close {
            let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
            let path = file.path().to_owned();
            let mut seen = Descriptors::new(Owner::Own);
            seen.look(&[this]);
            assert!(seen.files.values().any(|seen| seen.path == path));
            drop(file);
            let own = seen.files.values().find(|seen| seen.path == path);
            let has_device = own.is_some_and(|seen| seen.has_device);
            close(&mut seen);
            assert!(seen.files.values().all(|seen| seen.path != path));
            // What it lay on is still known.
            assert!(!has_device || !seen.stacks.is_empty());
        }
    }

    /// It can be leased and its file system be unmounted; a file that is deleted does not show, nor does what took its place.
    #[test]
    fn what_others_have_open_is_opened_for_looks_only() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let names = ["stays", "deleted", "replaced"];
        let files = names.map(|name| fs::File::create_new(path(name)).expect("a file"));
        let mut seen = Descriptors::new(Owner::Foreign);
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
        let expected = ["deleted", "replaced", "stays"].map(|name| (path(name), false));
        assert_eq!(found(&seen), expected);
        fs::remove_file(path("deleted")).expect("there");
        seen.look(&[std::process::id()]);
        let expected = ["replaced", "stays"].map(|name| (path(name), false));
        assert_eq!(found(&seen), expected);
        fs::write(path("new"), "12").expect("written");
        fs::rename(path("new"), path("replaced")).expect("renamed");
        fs::write(path("stays"), "1234").expect("written");
        drop(files);
        seen.finish();
        assert_eq!(found(&seen), [(path("stays"), true)]);
        let stays = seen.files.values().find(|seen| seen.path == path("stays"));
        assert_eq!(stays.map(SeenFile::bytes), Some(4));
    }

    #[test]
    fn what_this_process_has_open_is_seen() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let _zero = fs::File::open("/dev/zero").expect("there");
        let _null = fs::File::open("/dev/null").expect("there");
        let (_from, _to) = std::io::pipe().expect("a pipe");
        let mut seen = Descriptors::new(Owner::Own);
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
}
