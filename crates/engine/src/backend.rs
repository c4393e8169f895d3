//! All backends, which of them carries out a trial, and what they share: the files that requests go to, and trimming; the backend
//! `null`, and the mechanisms that not every kernel has.

pub(crate) mod io_uring;
mod libaio;
mod mmap;
mod synchronous;

use std::fs::File;
use std::io::Error as IoError;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use iolab_storage::Target;
use iolab_storage::sysfs::value;
use iolab_workload::trial::{
    Backend as Name, BufferInit, Descriptors, FileSlots, SyncPolicy, TrialSpec,
};
use iolab_workload::{Error, Result};
use rustix::fs::{FallocateFlags, FileType};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::buffer::{self, Buffers, Slot};
use crate::request::{Action, Backend, Completion, Queue, Request, SystemFailure};
use io_uring::Uring;
use libaio::Libaio;
use mmap::MappedCalls;
use synchronous::{Pool, PositionedCalls, SeekCalls, Synchronous, VectoredCalls};

/// The files of a worker and its part of them.
pub(crate) struct WorkerFiles<'a> {
    /// One file, or several of the worker.
    pub(crate) files: Vec<File>,
    /// Maps an offset to a file if the worker has several.
    pub(crate) slots: Option<FileSlots>,
    /// The bytes of the file that are the worker's.
    pub(crate) range: Range<u64>,
    /// Held across `lseek` and the call that follows it, if several workers share the position of the file.
    pub(crate) position: &'a Mutex<()>,
}

/// A computation that is generic over the backend, such as a worker's run.
pub(crate) trait Drive {
    type Outcome;

    /// Runs with the backend, or reports why it could not be set up.
    fn run<B: Backend>(&self, backend: Result<B>, buffers: Buffers) -> Self::Outcome;
}

/// The backend for several requests in flight: io_uring, or libaio if the system gives no ring.
pub fn asynchronous() -> Name {
    match io_uring::try_ring() {
        Ok(()) => Name::IoUring,
        Err(_) => Name::Libaio,
    }
}

/// Opens the backend that a trial asks for and drives a worker with it: each backend has a loop of its own.
pub(crate) fn open<D: Drive>(
    spec: &TrialSpec,
    place: WorkerFiles<'_>,
    buffers: Buffers,
    drive: &D,
) -> D::Outcome {
    let WorkerFiles {
        mut files,
        slots,
        range,
        position,
    } = place;
    if let Some(slots) = slots {
        return open_any(spec, SeveralFiles { files, slots }, buffers, drive);
    }
    let Some(file) = files.pop() else {
        return drive.run::<Null>(Err(Error::failed("a worker without a file")), buffers);
    };
    match spec.backend {
        Name::Sync if spec.descriptors == Descriptors::Shared => {
            let calls = SeekCalls::<true>::new(position);
            drive.run(Ok(Synchronous::new(OneFile::new(file), calls)), buffers)
        }
        Name::Sync => {
            let calls = SeekCalls::<false>::new(position);
            drive.run(Ok(Synchronous::new(OneFile::new(file), calls)), buffers)
        }
        Name::Mmap => {
            let calls = MappedCalls::new(&file, range, spec.writes());
            let backend = calls.map(|calls| Synchronous::new(OneFile::new(file), calls));
            drive.run(backend, buffers)
        }
        _ => open_any(spec, OneFile::new(file), buffers, drive),
    }
}

/// Opens a backend that takes any request at any time, whichever file it goes to.
fn open_any<D: Drive, O: Opened>(
    spec: &TrialSpec,
    opened: O,
    buffers: Buffers,
    drive: &D,
) -> D::Outcome {
    match spec.backend {
        Name::Psync => drive.run(Ok(Synchronous::new(opened, PositionedCalls)), buffers),
        Name::Pvsync2 => {
            let calls = VectoredCalls::new(spec);
            drive.run(Ok(Synchronous::new(opened, calls)), buffers)
        }
        Name::Libaio => drive.run(Libaio::new(opened, spec), buffers),
        Name::IoUring => drive.run(Uring::new(opened, spec, &buffers), buffers),
        Name::Pool => drive.run(Pool::new(opened, spec), buffers),
        Name::Null => drive.run(Ok(Null::new(spec.depth)), buffers),
        Name::Sync | Name::Mmap => {
            let error = format!("backend {} over several files", spec.backend);
            drive.run::<Null>(Err(Error::failed(error)), buffers)
        }
    }
}

/// The flags (`RWF_`) of each write.
fn write_flags(spec: &TrialSpec) -> i32 {
    match spec.sync {
        SyncPolicy::RwfDsync => libc::RWF_DSYNC,
        _ => 0,
    }
}

/// The open files that a worker issues its requests to (one, or several), and which of them holds an offset of the worker. Code that
/// is generic over this is compiled for one file as if there was no choice.
pub(crate) trait Opened: Send + Sync + 'static {
    /// Whether they are several.
    const SEVERAL: bool;

    /// All files, in the order of their numbers.
    fn files(&self) -> &[File];

    /// The number of the file that a request goes to, and the request with its offset in that file.
    fn resolve(&self, request: Request) -> (usize, Request);

    /// An offset of the trial in each file.
    fn offset_in_each(&self) -> Vec<u64>;
}

/// One file.
pub(crate) struct OneFile([File; 1]);

impl OneFile {
    pub(crate) fn new(file: File) -> Self {
        Self([file])
    }
}

impl Opened for OneFile {
    const SEVERAL: bool = false;

    #[inline(always)]
    fn files(&self) -> &[File] {
        &self.0
    }

    #[inline(always)]
    fn resolve(&self, request: Request) -> (usize, Request) {
        (0, request)
    }

    fn offset_in_each(&self) -> Vec<u64> {
        vec![0]
    }
}

/// Several files of one worker.
pub(crate) struct SeveralFiles {
    pub(crate) files: Vec<File>,
    pub(crate) slots: FileSlots,
}

impl Opened for SeveralFiles {
    const SEVERAL: bool = true;

    #[inline(always)]
    fn files(&self) -> &[File] {
        &self.files
    }

    #[inline(always)]
    fn resolve(&self, request: Request) -> (usize, Request) {
        let (number, offset) = self.slots.place(request.offset);
        (number, Request { offset, ..request })
    }

    fn offset_in_each(&self) -> Vec<u64> {
        let numbers = 0..self.files.len() as u64;
        numbers.map(|number| self.slots.first(number)).collect()
    }
}

/// `BLKDISCARD` of linux/fs.h: `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// Folder in which the kernel lists block devices by number.
const DEVICES: &str = "/sys/dev/block";

/// Distance beyond the end of a file at which punching a hole is tried, bytes. The file has no data there.
const BEHIND: u64 = 1 << 20;

/// Checks whether a target can be trimmed, as far as that shows without changing it.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the file system or the device cannot do it.
pub fn check_trims(target: &Target) -> Result<()> {
    let file = target.file();
    let call = TrimCall::of(file);
    let refused = |why: &str| {
        Err(Error::usage(format!(
            "{} cannot be trimmed by {}: {why}",
            target.named().display(),
            call.name()
        ))
        .hint("set trim_percent=0"))
    };
    match call {
        TrimCall::PunchHole => {
            let Ok(stat) = rustix::fs::fstat(file) else {
                return Ok(());
            };
            let end = u64::try_from(stat.st_size).unwrap_or(0);
            let behind = end.next_multiple_of(BEHIND) + BEHIND;
            match call.carry_out(file, behind, BEHIND) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    refused("the file system does not support holes")
                }
                // Other faults show when the trial trims.
                _ => Ok(()),
            }
        }
        TrimCall::Discard if discard_max(file) == Some(0) => {
            refused("the device does not support discard")
        }
        _ => Ok(()),
    }
}

/// Most bytes that a device discards at a time; `None` if the kernel does not report it.
fn discard_max(device: &File) -> Option<u64> {
    let number = rustix::fs::fstat(device).ok()?.st_rdev;
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let folder = Path::new(DEVICES).join(format!("{major}:{minor}"));
    // A partition has the queue of its disk.
    ["queue", "../queue"]
        .iter()
        .find_map(|queue| value(folder.join(queue).join("discard_max_bytes")))
}

/// The call that trims blocks of a file or a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrimCall {
    PunchHole,
    Discard,
}

impl TrimCall {
    /// The call for a file or device.
    pub(crate) fn of(file: &File) -> Self {
        let is_device = rustix::fs::fstat(file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice);
        match is_device {
            false => Self::PunchHole,
            true => Self::Discard,
        }
    }

    /// Its name, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PunchHole => "fallocate(FALLOC_FL_PUNCH_HOLE)",
            Self::Discard => "ioctl(BLKDISCARD)",
        }
    }

    /// Trims the `len` bytes from `offset`, all of them or none.
    pub(crate) fn carry_out(
        self,
        file: &File,
        offset: u64,
        len: u64,
    ) -> std::result::Result<(), Errno> {
        match self {
            Self::PunchHole => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(file, flags, offset, len)
            }
            Self::Discard => discard(file, offset, len),
        }
    }
}

fn discard(file: &File, offset: u64, len: u64) -> std::result::Result<(), Errno> {
    let range: [u64; 2] = [offset, len];
    // SAFETY: the request reads two numbers of 64 bits from the address, and nothing else of this process's memory.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    match status {
        0 => Ok(()),
        _ => Err(Errno::from_raw_os_error(
            std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        )),
    }
}

/// The backend `null`: every request completes at once and in full. It shows what iolab itself costs.
pub(crate) struct Null {
    /// Each request's memory and its result. A completion as a whole would be copied by one wide load, which has to wait
    /// for the two stores before it: that is a sixth of all that a request costs here.
    queued: Vec<(Slot, u32)>,
}

impl Null {
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            queued: Vec::with_capacity(depth as usize),
        }
    }
}

impl Queue for Null {
    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        let result = match request.action {
            Action::Read | Action::Write | Action::Trim => request.len,
            Action::Fsync | Action::Fdatasync => 0,
        };
        self.queued.push((slot, result));
    }

    fn syscall(&self, _action: Action) -> &'static str {
        "none"
    }
}

impl Backend for Null {
    #[inline(always)]
    fn complete(
        &mut self,
        _wait: u32,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        let queued = self.queued.drain(..);
        done.extend(queued.map(|(slot, result)| Completion {
            slot,
            result: i64::from(result),
        }));
        Ok(())
    }

    #[inline(always)]
    fn transfer(&mut self, _slot: &mut Slot, request: Request) -> Option<i64> {
        Some(i64::from(request.len))
    }
}

/// A level of a setting that trials cannot have on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLevel {
    /// The setting (`backend`).
    pub setting: &'static str,
    /// Its level (`io_uring`).
    pub level: &'static str,
    /// A level that does the same by another mechanism, if there is one (`libaio`).
    pub instead: Option<&'static str>,
    /// Why it cannot be had, in a few words.
    pub why: String,
}

/// The levels that this system refuses to every trial of this process.
pub fn missing_levels() -> Vec<MissingLevel> {
    let ring = io_uring_refused().map(|errno| MissingLevel {
        setting: "backend",
        level: Name::IoUring.name(),
        instead: Some(Name::Libaio.name()),
        why: format!("the system refuses io_uring: {}", IoError::from(errno)),
    });
    let populated = populating_refused().map(|errno| MissingLevel {
        setting: "buffer_init",
        level: BufferInit::Populated.name(),
        instead: None,
        why: format!(
            "the kernel refuses MADV_POPULATE_WRITE, which Linux has since 5.14: {}",
            IoError::from(errno)
        ),
    });
    ring.into_iter().chain(populated).collect()
}

/// Checks that this process may use the mechanisms of a trial that not every kernel has; each is tried once.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the first that is not, and what to use instead.
pub(crate) fn check_mechanisms(spec: &TrialSpec) -> Result<()> {
    if spec.backend == Name::IoUring
        && let Some(errno) = io_uring_refused()
    {
        return Err(io_uring::refused(&errno.into()));
    }
    if spec.buffer_init == BufferInit::Populated
        && let Some(errno) = populating_refused()
    {
        return Err(buffer::advice_refused("MADV_POPULATE_WRITE", errno));
    }
    Ok(())
}

/// The error with which the system refuses rings altogether. Conditions that may change later, such as memory, are left to
/// the trial.
fn io_uring_refused() -> Option<Errno> {
    static REFUSED: OnceLock<Option<Errno>> = OnceLock::new();
    *REFUSED.get_or_init(|| {
        let errno = Errno::from_io_error(&io_uring::try_ring().err()?)?;
        [Errno::NOSYS, Errno::PERM, Errno::ACCESS]
            .contains(&errno)
            .then_some(errno)
    })
}

/// The error with which the kernel refuses to populate memory: it does not know the advice.
fn populating_refused() -> Option<Errno> {
    static REFUSED: OnceLock<Option<Errno>> = OnceLock::new();
    *REFUSED.get_or_init(|| {
        let length = iolab_storage::procfs::page_size();
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping of our own, which nothing refers to.
        let page = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, kind) }.ok()?;
        // SAFETY: the mapping made above; the advice discards nothing.
        let advised = unsafe { madvise(page, length, Advice::LinuxPopulateWrite) };
        // SAFETY: the same mapping, used nowhere else. If it fails, one page stays mapped.
        let _ = unsafe { munmap(page, length) };
        advised.err().filter(|errno| *errno == Errno::INVAL)
    })
}
