//! Open files of processes: files and devices of storage, and other sources and sinks of bytes.
//!
//! Mapped files of processes: data files, whose reads no call counts, and program files, which page faults
//! fetch.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, read_dir, read_to_string};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, major};

use super::Number;
use super::seen_file::{FileId, Place, SeenFile, id_of, is_deleted, range_of};
use crate::observed::{IoWays, NoStorage, OpenWays, UncountedWay};
use iolab_host::counters::residency;
use iolab_host::lossy_text_of;
use iolab_storage::{Opened, Stack};
use iolab_workload::region_state::Medium;

/// Most files whose state is kept; further ones only count for the ways of I/O.
const FILES_MAX: usize = 64;

/// Most descriptors examined in one look, so that a program with thousands costs no more.
const DESCRIPTORS_MAX: usize = 512;

/// Major numbers of terminals (Documentation/admin-guide/devices.txt of Linux): consoles, and both ends of
/// pseudo-terminals.
const TERMINALS: [u32; 18] = [
    4, 5, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143,
];

/// Least size, in bytes, from which a file seen only as standard output counts; smaller ones hold messages.
const REPORT_MOST: u64 = 256 << 10;

/// Findings of all looks so far.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    pub(super) files: BTreeMap<FileId, SeenFile>,
    /// Stacks below all files seen, deleted ones included; each once.
    pub(super) stacks: Vec<Stack>,
    pub(super) ways: IoWays,
    /// Devices of files deleted since, with whether the files were read, and written.
    used: BTreeMap<Number, (bool, bool)>,
    /// Files that were seen but are not kept.
    known: BTreeMap<FileId, StoredKind>,
    /// Standard output and standard error of this process.
    report: BTreeSet<FileId>,
    pipes_read: BTreeSet<FileId>,
    pipes_written: BTreeSet<FileId>,
    pub(super) mapped: Mapped,
}

/// Role of a regular file in an account of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredKind {
    /// The bytes are in storage, or on another machine.
    Stored,
    /// The bytes are in memory.
    Memory,
    /// The kernel generates its content, or it is a part of the program.
    Pseudo,
}

impl Descriptors {
    /// A record without any descriptor.
    pub(super) fn new() -> Self {
        let own = ["/proc/self/fd/1", "/proc/self/fd/2"].into_iter();
        let own = own.filter_map(|link| fs::metadata(link).ok());
        Self {
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
            // Ways of this process alone, apart from those seen of all.
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
            let mapped = self.mapped.look(*process);
            let ways = &mut self.ways;
            ways.uncounted.extend(mapped);
            if !ways.uncounted.is_empty() {
                ways.uncounted_reads = ways.uncounted_reads.or(ways.reads);
            }
            ways.reads = ways.reads.or(before);
            ways.uncounted.extend(others);
        }
        if left == 0 {
            // Unexamined descriptors may use the page cache.
            self.ways.reads.buffered = true;
            self.ways.writes.buffered = true;
            self.ways.uncounted_reads.buffered = true;
        }
        self.ways.looks += u64::from(seen);
    }

    /// Forgets a deleted file, which has nothing left to write. Its device stays known.
    fn forget(&mut self, id: FileId) {
        if let Some(mut file) = self.files.remove(&id) {
            note_use(&mut self.used, &file);
            keep_report(&mut self.stacks, &mut file);
            self.known.insert(id, StoredKind::Stored);
        }
    }

    /// Devices of relevant files, with whether these were read, and written. The size of deleted files is
    /// unknown.
    pub(super) fn used(&self) -> BTreeMap<Number, (bool, bool)> {
        let mut used = self.used.clone();
        let large = self.files.values();
        let large = large.filter(|file| file.bytes() >= REPORT_MOST);
        large.for_each(|file| note_use(&mut used, file));
        used
    }

    /// Findings of all looks. Files still within reach are then open; deleted ones are left out.
    pub(super) fn finish(&mut self) -> IoWays {
        let files = self.files.iter_mut();
        let deleted = files.filter_map(|(id, file)| (!file.look_again(*id)).then_some(*id));
        for id in deleted.collect::<Vec<_>>() {
            self.forget(id);
        }
        let stacks = &mut self.stacks;
        self.files.retain(|_, file| keep_report(stacks, file));
        let mut ways = std::mem::take(&mut self.ways);
        ways.inner_pipes = self.pipes_read.intersection(&self.pipes_written).count() > 0;
        if self.pipes_read.difference(&self.pipes_written).count() > 0 {
            ways.sources.insert(NoStorage::Pipe);
        }
        ways
    }

    fn descriptor(&mut self, process: u32, link: &Path) {
        // The descriptor may have been closed since the folder was read.
        let (Ok(metadata), Some(flags)) = (fs::metadata(link), flags_of(process, link)) else {
            self.ring(link);
            return;
        };
        let access = flags & OFlags::RWMODE;
        let (reads, writes) = (access != OFlags::WRONLY, access != OFlags::RDONLY);
        let id = id_of(&metadata);
        let kind = metadata.file_type();
        // Output to a standard output shared with this process is usually a report.
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
            match self.stored(&metadata, link, (reads, writes), is_report) {
                Some(StoredKind::Stored) if !is_report => {
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
                Some(StoredKind::Memory) => {
                    self.note(NoStorage::Memory, reads, writes && !is_report)
                }
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

    /// Notes an io_uring ring, which has a descriptor without a file.
    fn ring(&mut self, link: &Path) {
        let is_ring = fs::read_link(link).is_ok_and(|to| to.as_os_str() == "anon_inode:[io_uring]");
        if is_ring {
            self.ways.uncounted.insert(UncountedWay::IoUring);
        }
    }

    /// Role of a regular file or block device; a file of storage is kept.
    fn stored(
        &mut self,
        metadata: &Metadata,
        link: &Path,
        (reads, writes): (bool, bool),
        is_report: bool,
    ) -> Option<StoredKind> {
        let id = id_of(metadata);
        if is_deleted(metadata) {
            self.forget(id);
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.seen_again(metadata, link);
            file.is_read |= reads;
            file.is_written |= writes;
            if !is_report {
                count(&mut self.stacks, file.report_on.take());
            }
            return Some(StoredKind::Stored);
        }
        if let Some(kind) = self.known.get(&id) {
            return Some(*kind);
        }
        let path = fs::read_link(link).ok()?;
        let kind = if path.starts_with("/proc") || path.starts_with("/sys") || is_library(&path) {
            StoredKind::Pseudo
        } else {
            let named = Opened::named(link).ok()?;
            match named.medium() {
                Medium::Memory => StoredKind::Memory,
                medium @ (Medium::Storage | Medium::Elsewhere) if self.files.len() < FILES_MAX => {
                    let stack = named.stack();
                    let has_device = stack.device.is_some();
                    let is_known = has_device || stack.nfs.is_some();
                    let mut report_on = is_known.then(|| stack.clone());
                    if !is_report {
                        count(&mut self.stacks, report_on.take());
                    }
                    let file = SeenFile {
                        medium,
                        has_device,
                        device: stack.device,
                        bytes: named.bytes().unwrap_or(0),
                        is_reachable: fs::metadata(&path).is_ok_and(|found| id_of(&found) == id),
                        path,
                        opened: None,
                        is_read: reads,
                        is_written: writes,
                        report_on,
                    };
                    self.files.insert(id, file);
                    return Some(StoredKind::Stored);
                }
                Medium::Storage | Medium::Elsewhere => StoredKind::Stored,
            }
        };
        self.known.insert(id, kind);
        Some(kind)
    }
}

/// Notes the use of a file's device.
fn note_use(used: &mut BTreeMap<Number, (bool, bool)>, file: &SeenFile) {
    if let Some(device) = file.device {
        let (is_read, is_written) = used.entry(device).or_default();
        *is_read |= file.is_read;
        *is_written |= file.is_written;
    }
}

/// Adds the stack below a file.
fn count(stacks: &mut Vec<Stack>, stack: Option<Stack>) {
    for one in stack.iter().flat_map(Stack::each) {
        if !stacks.contains(one) {
            stacks.push(one.clone());
        }
    }
}

/// Whether a file counts: a file seen only as standard output counts, with its device, if it is large.
fn keep_report(stacks: &mut Vec<Stack>, file: &mut SeenFile) -> bool {
    let is_kept = file.report_on.is_none() || file.bytes() >= REPORT_MOST;
    count(stacks, file.report_on.take().filter(|_| is_kept));
    is_kept
}

/// Device number of `/dev/null`.
const NULL_DEVICE: u64 = 0x0103;

/// Flags that a descriptor was opened with: proc_pid_fdinfo(5), in octal.
fn flags_of(process: u32, link: &Path) -> Option<OFlags> {
    let number = link.file_name()?.to_str()?;
    let text = read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    Some(OFlags::from_bits_retain(flags))
}

/// Least size of a file, in bytes, whose mapping counts as a way of I/O, whatever the mapping's length. Tables
/// of the C library are smaller. Two windows of the default read-ahead: a fault fetches no more of a smaller
/// file.
pub(super) const MAPPED_LEAST: u64 = 256 << 10;

/// Most files noted because they are mapped.
const MAPPED_FILES_MAX: usize = 4096;

/// Most program files whose growth in the page cache is followed.
const PROGRAMS_MAX: usize = 256;

/// Prefixes of mappings that are not backed by a file of storage.
const NO_FILES: [&str; 5] = ["/dev/", "/SYSV", "/memfd:", "/[aio]", "anon_inode:"];

/// Folder of locale files that the C library maps into every program with a language.
const LOCALES: &str = "/usr/lib/locale/";

/// Findings of all looks so far.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// Size of each file, by device, inode and path; `None` if the path does not lead to the file here.
    sizes: BTreeMap<String, Option<u64>>,
    /// Largest size among them, `u64::MAX` if one is unknown; `None` before any was seen.
    pub(super) largest: Option<u64>,
    /// Program files, each with its bytes in the page cache when first seen.
    programs: Vec<(PathBuf, u64)>,
}

impl Mapped {
    /// Looks at a process (proc_pid_maps(5)) and returns its ways of I/O that no call counts.
    pub(super) fn look(&mut self, process: u32) -> BTreeSet<UncountedWay> {
        let text = lossy_text_of(format!("/proc/{process}/maps")).unwrap_or_default();
        // A program that is still being loaded has no code part yet.
        let program = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        let all: Vec<Mapping<'_>> = text.lines().filter_map(Mapping::parse).collect();
        let executed = executed(&all, &program);
        let mut ways = BTreeSet::new();
        for mapping in all {
            let is_of_program = mapping.is_of_program(&executed);
            let bytes = mapping
                .names_file()
                .then(|| self.size(&mapping, is_of_program));
            ways.extend(mapping.way(is_of_program, bytes.flatten()));
        }
        ways
    }

    /// Size of the file of a mapping, read once.
    fn size(&mut self, mapping: &Mapping<'_>, is_of_program: bool) -> Option<u64> {
        if let Some(known) = self.sizes.get(mapping.file) {
            return *known;
        }
        let has_room = self.sizes.len() < MAPPED_FILES_MAX;
        let path = Path::new(mapping.path);
        let found = fs::metadata(path).ok();
        let bytes = found.as_ref().map(|found| found.len());
        if has_room {
            self.sizes.insert(mapping.file.to_owned(), bytes);
        }
        // A file in another mount namespace, or one beyond the limit, may be any file.
        let is_same = |found: &Metadata| mapping.inode.parse() == Ok(found.ino());
        let own = found.filter(|found| has_room && is_same(found));
        let own = own.map(|found| found.len());
        self.largest = self.largest.max(Some(own.unwrap_or(u64::MAX)));
        if is_of_program
            && own.is_some_and(|bytes| bytes >= MAPPED_LEAST)
            && self.programs.len() < PROGRAMS_MAX
            && let Some(resident) = resident(path)
        {
            self.programs.push((path.to_owned(), resident));
        }
        bytes
    }

    /// Growth of program files in the page cache since they were first seen, by whatever process, bytes.
    pub(super) fn gained(&self) -> u64 {
        let gained = self.programs.iter().map(|(path, before)| {
            let now = resident(path).unwrap_or(0);
            now.saturating_sub(*before)
        });
        gained.fold(0, u64::saturating_add)
    }
}

/// Files of these mappings that are executed: those with code, and the program itself.
fn executed<'a>(all: &[Mapping<'a>], program: &Path) -> BTreeSet<&'a str> {
    let is_run = |one: &&Mapping<'_>| one.rights.contains('x') || Path::new(one.path) == program;
    all.iter().filter(is_run).map(|one| one.file).collect()
}

/// Bytes of a regular file in the page cache. Other kinds of files are not opened: that alone may have an
/// effect.
fn resident(path: &Path) -> Option<u64> {
    let place = Place::at(path)?;
    let is_file = place.metadata()?.is_file();
    let opened = is_file.then(|| place.open())??;
    Some(residency(&[range_of(&opened)?])?.resident_bytes)
}

/// Whether a file is one that the loader or the C library opens briefly: `libc.so.6`, `LC_CTYPE`.
fn is_library(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    path.starts_with(LOCALES)
        || name.is_some_and(|name| name.ends_with(".so") || name.contains(".so."))
}

/// A line of maps: `FROM-TO rw-s OFFSET MAJOR:MINOR INODE   PATH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping<'a> {
    /// End of the mapping in its file, bytes.
    end: u64,
    rights: &'a str,
    /// Device, inode and path.
    file: &'a str,
    inode: &'a str,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(4, ' ');
        let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let file = fields.next()?;
        let mut fields = file.splitn(3, ' ');
        let inode = fields.nth(1)?;
        let (from, to) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let length = number(to)?.checked_sub(number(from)?)?;
        Some(Self {
            end: number(offset)?.saturating_add(length),
            rights,
            file,
            inode,
            path: fields.next().unwrap_or_default().trim_start(),
        })
    }

    /// Whether the mapping is of a named file that is not in memory.
    fn names_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.ends_with(" (deleted)") && !self.is_memory()
    }

    fn is_memory(&self) -> bool {
        NO_FILES.iter().any(|start| self.path.starts_with(start))
    }

    /// Whether the mapping is part of a program: of an executed file (also parts without code), of a library,
    /// or a table of the C library.
    fn is_of_program(&self, executed: &BTreeSet<&str>) -> bool {
        self.rights.ends_with('p')
            && (executed.contains(self.file) || is_library(Path::new(self.path)))
    }

    /// Way of I/O of the mapping. A program can map a large file one window at a time, so the file's size
    /// decides, or the end of the mapping where the size is unknown.
    fn way(&self, is_of_program: bool, bytes: Option<u64>) -> Option<UncountedWay> {
        if self.path.starts_with("/[aio]") {
            return Some(UncountedWay::Libaio);
        }
        let is_data =
            self.inode != "0" && !self.path.is_empty() && !self.is_memory() && !is_of_program;
        let is_large = self.end.max(bytes.unwrap_or(0)) >= MAPPED_LEAST;
        (is_data && is_large).then_some(UncountedWay::Mmap)
    }
}
