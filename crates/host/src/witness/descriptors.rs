//! Open files of processes: files and devices of storage, and other sources and sinks of bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, read_dir, read_to_string};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::Number;
use super::mappings::{Mapped, is_library};
use super::seen_file::{FileId, SeenFile, id_of, is_deleted};
use iolab_storage::{Opened, Stack};
use iolab_workload::medium::Medium;
use iolab_workload::witness::{IoWays, NoStorage, OpenWays, UncountedWay};
use rustix::fs::{OFlags, major};

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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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
}
