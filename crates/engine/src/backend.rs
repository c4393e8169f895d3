//! All backends, and which of them carries out a trial.

pub(crate) mod io_uring;
mod libaio;
mod mmap;
pub(crate) mod null;
mod pool;
mod synchronous;
mod target_files;
pub(crate) mod trim;

use std::fs::File;
use std::ops::Range;
use std::sync::Mutex;

use crate::buffer::Buffers;
use crate::request::Backend;
use io_uring::Uring;
use iolab_workload::trial::{Backend as Name, Descriptors, FileSlots, SyncPolicy, TrialSpec};
use iolab_workload::{Error, Result};
use libaio::Libaio;
use mmap::Mmap;
use null::Null;
use pool::Pool;
use synchronous::{LockedSeekCalls, PositionedCalls, SeekCalls, Synchronous, VectoredCalls};
use target_files::{OneFile, Opened, SeveralFiles};

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
            let calls = LockedSeekCalls::new(position);
            let backend = Synchronous::new(OneFile::new(file), calls);
            drive.run(Ok(backend), buffers)
        }
        Name::Sync => {
            let backend = Synchronous::new(OneFile::new(file), SeekCalls::new());
            drive.run(Ok(backend), buffers)
        }
        Name::Mmap => drive.run(Mmap::new(file, range, spec.writes()), buffers),
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
