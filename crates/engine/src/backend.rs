//! All backends, and which of them carries out a trial.

mod io_uring;
mod libaio;
mod mmap;
pub(crate) mod null;
mod pool;
mod synchronous;
pub(crate) mod trim;

use std::fs::File;
use std::ops::Range;
use std::sync::Mutex;

use crate::buffer::Buffers;
use crate::request::Backend;
use io_uring::Uring;
use iolab_spec::Result;
use iolab_spec::trial::{Backend as Name, Descriptors, TrialSpec};
use libaio::Libaio;
use mmap::Mmap;
use null::Null;
use pool::Pool;
use synchronous::{
    EagerCalls, LockedSeekCalls, PositionedCalls, SeekCalls, Synchronous, VectoredCalls,
};

/// What a worker reads and writes.
pub(crate) struct Place<'a> {
    pub(crate) file: File,
    /// The bytes of the file that are the worker's.
    pub(crate) range: Range<u64>,
    /// Held across `lseek` and the call that follows it, where the position of the file is everybody's.
    pub(crate) position: &'a Mutex<()>,
}

/// What drives a worker with a backend, whichever it is.
pub(crate) trait Drive {
    type Outcome;

    /// Drives a worker with a backend, or tells why there is none.
    fn run<B: Backend>(&self, backend: Result<B>, buffers: Buffers) -> Self::Outcome;
}

/// Opens the backend that a trial asks for and drives a worker with it: each backend has a loop of its own.
pub(crate) fn open<D: Drive>(
    spec: &TrialSpec,
    place: Place<'_>,
    buffers: Buffers,
    drive: &D,
) -> D::Outcome {
    let Place {
        file,
        range,
        position,
    } = place;
    match spec.backend {
        Name::Sync if spec.descriptors == Descriptors::Shared => {
            let calls = LockedSeekCalls::new(position);
            drive.run(Ok(Synchronous::new(file, calls, spec)), buffers)
        }
        Name::Sync => drive.run(Ok(Synchronous::new(file, SeekCalls::new(), spec)), buffers),
        Name::Psync => drive.run(Ok(Synchronous::new(file, PositionedCalls, spec)), buffers),
        Name::Pvsync2 if spec.nowait => {
            let calls = EagerCalls::new(spec);
            drive.run(Ok(Synchronous::new(file, calls, spec)), buffers)
        }
        Name::Pvsync2 => {
            let calls = VectoredCalls::new(spec);
            drive.run(Ok(Synchronous::new(file, calls, spec)), buffers)
        }
        Name::Mmap => drive.run(Mmap::new(file, range, spec.writes()), buffers),
        Name::Libaio => drive.run(Libaio::new(file, spec), buffers),
        Name::IoUring => drive.run(Uring::new(file, spec, &buffers), buffers),
        Name::Pool => drive.run(Pool::new(file, spec), buffers),
        Name::Null => drive.run(Ok(Null::new(spec.depth)), buffers),
    }
}
