//! All backends, and which of them carries out a trial.
//!
//! The files that a worker issues its requests to: one, or several. Code that is generic over this is compiled for one file
//! as if there was no choice.
//!
//! Trimming of blocks of a file or a device.

pub(crate) mod io_uring;
mod libaio;
mod mmap;
pub(crate) mod null;
mod pool;
mod synchronous;

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{FallocateFlags, FileType};
use rustix::io::Errno;

use crate::buffer::Buffers;
use crate::request::{Backend, Request};
use io_uring::Uring;
use iolab_storage::Target;
use iolab_storage::sysfs::value;
use iolab_workload::trial::{Backend as Name, Descriptors, FileSlots, SyncPolicy, TrialSpec};
use iolab_workload::{Error, Result};
use libaio::Libaio;
use mmap::MappedCalls;
use null::Null;
use pool::Pool;
use synchronous::{PositionedCalls, SeekCalls, Synchronous, VectoredCalls};

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

/// Files that are open, and which of them holds an offset of the worker.
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

/// The call that trims.
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
