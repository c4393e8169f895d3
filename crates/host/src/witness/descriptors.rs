//! What processes have open: files and devices of storage, and other things that bytes come from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, read_dir, read_to_string};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Number;
use super::mappings::{Mapped, is_library};
use iolab_storage::{Opened, Stack};
use iolab_workload::medium::Medium;
use iolab_workload::witness::{IoWays, NoStorage, OpenWays, UncountedWay};
use rustix::fs::{Mode, OFlags, major};

/// Most files whose state is kept; further ones count for the ways of I/O only.
const FILES_MAX: usize = 64;
/// Most descriptors that one look examines, so that a program with thousands of them costs no more.
const DESCRIPTORS_MAX: usize = 512;
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
    /// That device.
    device: Option<Number>,
    /// Its size when it was first seen, bytes.
    bytes: u64,
    /// The file, while it is open here.
    pub(super) opened: Option<Opened>,
    /// Whether its path led to it here when it was first seen; not that of a file in another mount namespace.
    is_reachable: bool,
    pub(super) is_read: bool,
    pub(super) is_written: bool,
    /// What it lies on, while it was seen as the standard output or standard error of this process alone.
    report_on: Option<Stack>,
}

impl SeenFile {
    /// Its size, bytes.
    pub(super) fn bytes(&self) -> u64 {
        let now = self.opened.as_ref().and_then(Opened::bytes);
        now.unwrap_or(self.bytes)
    }
}

/// Least size of a file that counts although it was seen as standard output alone: of less, it is messages.
const REPORT_MOST: u64 = 256 << 10;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    owner: Owner,
    pub(super) files: BTreeMap<FileId, SeenFile>,
    /// What all files lie on that were seen, deleted ones included; each once.
    pub(super) stacks: Vec<Stack>,
    pub(super) ways: IoWays,
    /// Devices of files that were deleted since, with whether these were read, and written.
    used: BTreeMap<Number, (bool, bool)>,
    /// Files that were seen and are not kept.
    known: BTreeMap<FileId, StoredKind>,
    /// What this process has as standard output and standard error.
    report: BTreeSet<FileId>,
    pipes_read: BTreeSet<FileId>,
    pipes_written: BTreeSet<FileId>,
    pub(super) mapped: Mapped,
}

/// What a regular file is for an account of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredKind {
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
        for (id, mut file) in self.files.extract_if(.., |_, file| is_deleted(file)) {
            note_use(&mut self.used, &file);
            keep_report(&mut self.stacks, &mut file);
            self.known.insert(id, StoredKind::Stored);
        }
    }

    /// Devices that files of note lie on, with whether these were read, and written. Of deleted files no size is known.
    pub(super) fn used(&self) -> BTreeMap<Number, (bool, bool)> {
        let mut used = self.used.clone();
        let large = self.files.values();
        let large = large.filter(|file| file.bytes() >= REPORT_MOST);
        large.for_each(|file| note_use(&mut used, file));
        used
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
        is_report: bool,
    ) -> Option<StoredKind> {
        let id = id_of(metadata);
        if is_deleted(metadata)
            && self
                .files
                .get(&id)
                .is_some_and(|file| file.opened.is_none())
        {
            if let Some(file) = self.files.remove(&id) {
                note_use(&mut self.used, &file);
            }
            self.known.insert(id, StoredKind::Stored);
        }
        if let Some(file) = self.files.get_mut(&id) {
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
            let opened = Opened::open(link).ok()?;
            match opened.medium() {
                Medium::Memory => StoredKind::Memory,
                medium @ (Medium::Storage | Medium::Elsewhere) if self.files.len() < FILES_MAX => {
                    let stack = opened.stack();
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
                        bytes: opened.bytes().unwrap_or(0),
                        is_reachable: fs::metadata(&path).is_ok_and(|found| id_of(&found) == id),
                        path,
                        opened: Some(opened).filter(|_| self.owner == Owner::Own),
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

/// Notes how the device of a file was used.
fn note_use(used: &mut BTreeMap<Number, (bool, bool)>, file: &SeenFile) {
    if let Some(device) = file.device {
        let (is_read, is_written) = used.entry(device).or_default();
        *is_read |= file.is_read;
        *is_written |= file.is_written;
    }
}

/// Adds what a file lies on.
fn count(stacks: &mut Vec<Stack>, stack: Option<Stack>) {
    stacks.extend(stack.filter(|stack| !stacks.contains(stack)));
}

/// Whether a file counts: one that was seen as standard output alone does with its device where it is large.
fn keep_report(stacks: &mut Vec<Stack>, file: &mut SeenFile) -> bool {
    let is_kept = file.report_on.is_none() || file.bytes() >= REPORT_MOST;
    count(stacks, file.report_on.take().filter(|_| is_kept));
    is_kept
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

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Messages are few: a file of them is none of the program's files, and one that holds more is what the program made.
    #[test]
    fn standard_output_counts_where_it_is_large() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        for (bytes, is_kept) in [(1000, false), (REPORT_MOST, true)] {
            let path = folder.path().join(bytes.to_string());
            let file = fs::File::create(&path).expect("a file");
            // Another process: this one may have it open for looks of other tests too.
            let mut child = std::process::Command::new("cat")
                .stdin(std::process::Stdio::piped())
                .stdout(file.try_clone().expect("it is open"))
                .spawn()
                .expect("cat is everywhere");
            let mut seen = Descriptors::new(Owner::Own);
            seen.report
                .insert(id_of(&file.metadata().expect("it is open")));
            seen.look(&[child.id()]);
            drop(child.stdin.take());
            child.wait().expect("it ends with its input");
            file.set_len(bytes).expect("it is open for writing");
            let on = |seen: &Descriptors| {
                let found = seen.files.values().find(|seen| seen.path == path);
                found.map(|found| found.report_on.clone())
            };
            let stack = on(&seen).expect("it was seen");
            // What else is open here lies on the same disk, perhaps.
            seen.stacks.clear();
            seen.finish();
            assert_eq!(on(&seen).is_some(), is_kept, "{bytes}");
            assert_eq!(seen.stacks, Vec::from_iter(stack.filter(|_| is_kept)));
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
