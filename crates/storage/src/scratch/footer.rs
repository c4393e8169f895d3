//! Footer of a main file: its signature, the process that made it, and the list of files that belong to it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, StatxFlags};
use rustix::path::Arg;

use iolab_workload::{Error, Result};

use super::super::errno;
use super::super::procfs::{self, ProcessStat};

/// Length of the footer, after the usable region, bytes.
pub(in super::super) const FOOTER_LEN: u64 = 64 << 10;
/// Bytes before the list.
const HEAD_LEN: usize = 128;
const ENTRY_LEN: usize = 16;
/// Capacity of the list: more files than a trial with the most threads has, each with a file and a fresh one.
const ENTRIES: usize = (FOOTER_LEN as usize - HEAD_LEN) / ENTRY_LEN;
const MAGIC: &[u8] =
    b"iolab scratch file: holds no data, safe to delete when no iolab is running\n";

/// An entry of the list. The inode alone is not enough: its number is soon reused once the file is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct ListedFile {
    inode: u64,
    /// Creation time, ns; 0 where the file system does not record it.
    born: u64,
}

impl ListedFile {
    const FREE: Self = Self { inode: 0, born: 0 };

    /// Identity of the object at a path below `dir`, looked up with `flags`.
    ///
    /// # Errors
    /// Errors of statx(2).
    pub(in super::super) fn of(
        dir: impl AsFd,
        path: impl Arg,
        flags: AtFlags,
    ) -> rustix::io::Result<Self> {
        let mask = StatxFlags::INO | StatxFlags::BTIME;
        let statx = rustix::fs::statx(dir, path, flags, mask)?;
        let time = statx.stx_btime;
        let known = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
        let born = (time.tv_sec as u64).wrapping_mul(1_000_000_000);
        Ok(Self {
            inode: statx.stx_ino,
            born: if known {
                born.wrapping_add(time.tv_nsec.into())
            } else {
                0
            },
        })
    }

    fn bytes(self) -> [u8; ENTRY_LEN] {
        let all = u128::from(self.inode) | u128::from(self.born) << 64;
        all.to_le_bytes()
    }

    fn read(bytes: [u8; ENTRY_LEN]) -> Self {
        let all = u128::from_le_bytes(bytes);
        Self {
            inode: all as u64,
            born: (all >> 64) as u64,
        }
    }
}

/// Process that made a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Maker {
    /// Id of the boot of its machine.
    boot: u128,
    process: u32,
    /// Start of the process, in ticks since boot.
    started: u64,
}

impl Maker {
    const LEN: usize = 28;

    /// A live process; `None` for a killed one, even if its end was not collected, and where the kernel reports
    /// too little.
    fn of(process: u32) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let stat = ProcessStat::parse(&stat).filter(|stat| !stat.has_ended())?;
        Some(Self {
            boot: u128::from_str_radix(&procfs::boot_id()?.replace('-', ""), 16).ok()?,
            process,
            started: stat.number(22)?,
        })
    }

    /// Whether the maker is another live process on this machine. The maker's lock may not be visible here:
    /// locks do not pass an overlay, or an NFS mount without locks.
    pub(super) fn lives_elsewhere(self) -> bool {
        self.process != std::process::id() && Self::of(self.process) == Some(self)
    }

    fn bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..16].copy_from_slice(&self.boot.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.started.to_le_bytes());
        bytes[24..].copy_from_slice(&self.process.to_le_bytes());
        bytes
    }

    /// Process in the bytes of a head; `None` if it has none.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (boot, rest) = bytes.split_first_chunk()?;
        let (started, rest) = rest.split_first_chunk()?;
        let maker = Self {
            boot: u128::from_le_bytes(*boot),
            process: u32::from_le_bytes(*rest.first_chunk()?),
            started: u64::from_le_bytes(*started),
        };
        (maker.process != 0).then_some(maker)
    }
}

/// Beginning of a footer for a region of this many bytes.
fn signature(region: u64) -> [u8; MAGIC.len() + 8] {
    let mut bytes = [0; MAGIC.len() + 8];
    let (magic, length) = bytes.split_at_mut(MAGIC.len());
    magic.copy_from_slice(MAGIC);
    length.copy_from_slice(&region.to_le_bytes());
    bytes
}

/// Part of a footer before the list.
fn head(region: u64, maker: Option<Maker>) -> [u8; HEAD_LEN] {
    let mut bytes = [0; HEAD_LEN];
    let (signed, rest) = bytes.split_at_mut(MAGIC.len() + 8);
    signed.copy_from_slice(&signature(region));
    if let Some(maker) = maker {
        rest[..Maker::LEN].copy_from_slice(&maker.bytes());
    }
    bytes
}

/// Writes a footer with an empty list, by which the next run recognises the file.
///
/// # Errors
/// The footer cannot be written, or not synced.
pub(super) fn mark(file: &File, path: &Path, region: u64) -> Result<()> {
    let mut footer = head(region, Maker::of(std::process::id())).to_vec();
    footer.resize(FOOTER_LEN as usize, 0);
    file.write_all_at(&footer, region).map_err(|error| {
        errno::on_transfer("pwrite", FOOTER_LEN, region, path, errno::of_std(&error))
    })?;
    // Synced before anything else, so that a crash leaves a file that the next run recognises.
    file.sync_all()
        .map_err(|error| errno::on_sync(path, errno::of_std(&error)))
}

/// Refuses more files than the list can hold at once.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage).
pub(in super::super) fn check_count(files: usize) -> Result<()> {
    match files > ENTRIES {
        true => Err(too_many(files)),
        false => Ok(()),
    }
}

fn too_many(files: usize) -> Error {
    Error::usage(format!(
        "{files} files are needed next to one scratch file; at most {ENTRIES} are possible"
    ))
    .hint("use fewer threads or files with layout=private")
}

/// Content of a footer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Footer {
    /// Process that made the file; `None` for files of earlier versions.
    pub(super) maker: Option<Maker>,
    /// Files that belong to it.
    pub(super) listed: Vec<ListedFile>,
}

/// Footer of a file of this length; `None` if it has none.
pub(super) fn read(file: &File, length: u64) -> Option<Footer> {
    let region = length.checked_sub(FOOTER_LEN)?;
    let mut found = vec![0; FOOTER_LEN as usize];
    file.read_exact_at(&mut found, region).ok()?;
    let (before, list) = found.split_at(HEAD_LEN);
    let maker = before.strip_prefix(&signature(region))?;
    let entries = list.as_chunks::<ENTRY_LEN>().0.iter();
    let entries = entries.map(|bytes| ListedFile::read(*bytes));
    Some(Footer {
        maker: Maker::read(maker),
        listed: entries.filter(|entry| *entry != ListedFile::FREE).collect(),
    })
}

/// List of a main file of this process, as written in its footer.
#[derive(Debug)]
pub(super) struct Register {
    file: File,
    start: u64,
    entries: Mutex<Vec<ListedFile>>,
}

impl Register {
    /// Empty list of a file with `region` usable bytes.
    pub(super) fn new(file: File, region: u64) -> Self {
        Self {
            file,
            start: region + HEAD_LEN as u64,
            entries: Mutex::new(Vec::new()),
        }
    }

    /// Whether the register lists no file.
    pub(super) fn is_empty(&self) -> bool {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().all(|entry| *entry == ListedFile::FREE)
    }

    /// Lists a file and returns its entry's index. After a kill the entry is found; after a power cut it may be
    /// lost, and the file stays.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when the list is full; otherwise it cannot be written.
    pub(super) fn enter(&self, file: ListedFile, path: &Path) -> Result<usize> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let free = entries.iter().position(|entry| *entry == ListedFile::FREE);
        let slot = free.unwrap_or(entries.len());
        if slot == ENTRIES {
            return Err(too_many(ENTRIES + 1));
        }
        self.write(slot, file).map_err(|error| {
            let (length, at) = (ENTRY_LEN as u64, self.place(slot));
            errno::on_transfer("pwrite", length, at, path, errno::of_std(&error))
        })?;
        match entries.get_mut(slot) {
            Some(entry) => *entry = file,
            None => entries.push(file),
        }
        Ok(slot)
    }

    /// Frees the entry of a removed file.
    pub(super) fn leave(&self, slot: usize) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // If this fails, the entry lists a file that no longer exists, which is harmless.
        let _ = self.write(slot, ListedFile::FREE);
        if let Some(entry) = entries.get_mut(slot) {
            *entry = ListedFile::FREE;
        }
    }

    fn place(&self, slot: usize) -> u64 {
        self.start + (slot * ENTRY_LEN) as u64
    }

    fn write(&self, slot: usize, entry: ListedFile) -> std::io::Result<()> {
        self.file.write_all_at(&entry.bytes(), self.place(slot))
    }
}

/// An entry in the list of a footer.
#[derive(Debug)]
pub(in super::super) struct Listed {
    pub(super) register: Arc<Register>,
    pub(super) slot: usize,
}

impl Listed {
    /// Frees the entry of a removed file.
    pub(in super::super) fn leave(&self) {
        self.register.leave(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;

    fn entry((inode, born): (u64, u64)) -> ListedFile {
        ListedFile { inode, born }
    }

    fn marked(region: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        mark(&file, Path::new("scratch"), region).unwrap();
        file
    }

    #[test]
    fn a_footer_lists_what_is_there() {
        let file = marked(8192);
        let register = Register::new(file.try_clone().unwrap(), 8192);
        let listed = || read(&file, 8192 + FOOTER_LEN).unwrap().listed;
        let enter = |entry| register.enter(entry, Path::new("scratch")).unwrap();
        let [a, b, c] = [(17, 0), (u64::MAX, u64::MAX), (18, 1)].map(entry);
        assert_eq!(listed(), []);
        let first = enter(a);
        enter(b);
        assert_eq!(listed(), [a, b]);
        register.leave(first);
        assert_eq!(listed(), [b]);
        assert_eq!(enter(c), first);
        assert_eq!(listed(), [c, b]);
    }

    /// The number of an ended process, or one of another boot, means nothing.
    #[test]
    fn maker_is_known_while_it_lives() {
        let maker = |process| Maker::of(process).expect("it is there");
        let lives = |maker: Maker| {
            let read = Maker::read(&head(8192, Some(maker))[MAGIC.len() + 8..]);
            assert_eq!(read, Some(maker));
            maker.lives_elsewhere()
        };
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep is everywhere");
        let of_child = maker(child.id());
        assert!(lives(of_child));
        let boot = of_child.boot ^ 1;
        assert!(!lives(Maker { boot, ..of_child }));
        let started = of_child.started + 1;
        assert!(!lives(Maker {
            started,
            ..of_child
        }));
        child.kill().expect("it runs");
        // The process stays in the list until its parent collects it.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&child)), ended).expect("it ends");
        assert!(!lives(of_child));
        child.wait().expect("it ends");
        assert!(!lives(of_child));
        // Locks of this process belong to its own files.
        assert!(!lives(maker(std::process::id())));
        let own = read(&marked(8192), 8192 + FOOTER_LEN)
            .expect("a footer")
            .maker;
        assert_eq!(own, Some(maker(std::process::id())));
        assert_eq!(Maker::read(&head(8192, None)[MAGIC.len() + 8..]), None);
    }

    #[test]
    fn a_full_list_is_an_error() {
        let register = Register::new(marked(0), 0);
        for inode in 1..=ENTRIES as u64 {
            register
                .enter(entry((inode, 0)), Path::new("scratch"))
                .unwrap();
        }
        let error = register
            .enter(entry((1, 0)), Path::new("scratch"))
            .unwrap_err();
        assert_eq!(error.kind(), iolab_workload::Kind::Usage);
        assert_eq!(register.file.metadata().unwrap().len(), FOOTER_LEN);
    }

    #[test]
    fn only_a_footer_of_this_length_is_one() {
        let file = marked(8192);
        let length = 8192 + FOOTER_LEN;
        assert!(read(&file, length).is_some());
        file.set_len(length + 4096).unwrap();
        for other in [0, 4096, FOOTER_LEN, length - 1, length + 4096] {
            assert_eq!(read(&file, other), None, "{other}");
        }
        file.write_all_at(b"x", 8192).unwrap();
        assert_eq!(read(&file, length), None);
    }
}
