//! Mapped files of processes: data files, whose reads no call counts, and program files, which page faults
//! fetch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iolab_storage::Opened;
use iolab_workload::witness::UncountedWay;
use rustix::fs::{FileType, Mode, OFlags, fstat};

use crate::counters::{FileRange, residency};
use crate::pseudo_files::lossy_text_of;

/// Least size of a file, in bytes, whose mapping counts as a way of I/O, whatever the mapping's length. Tables
/// of the C library are smaller. Two windows of the default read-ahead: a fault fetches no more of a smaller
/// file.
pub(super) const MAPPED_LEAST: u64 = 256 << 10;
/// Most files noted because they are mapped.
const FILES_MAX: usize = 4096;
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
        let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
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
        let has_room = self.sizes.len() < FILES_MAX;
        let path = Path::new(mapping.path);
        let found = std::fs::metadata(path).ok();
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
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let kind = FileType::from_raw_mode(fstat(&place).ok()?.st_mode);
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let opened = Opened::open(Path::new(&link)).ok();
    let opened = opened.filter(|_| kind == FileType::RegularFile)?;
    let range = FileRange {
        file: opened.holder(),
        offset: 0,
        length: opened.bytes().filter(|bytes| *bytes > 0)?,
    };
    Some(residency(&[range])?.resident_bytes)
}

/// Whether a file is one that the loader or the C library opens briefly: `libc.so.6`, `LC_CTYPE`.
pub(super) fn is_library(path: &Path) -> bool {
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::fs::{Advice, fadvise};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    use super::*;

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
        std::fs::write(file.path(), vec![7; BYTES]).expect("written");
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
}
