//! Production transport: MPI. Only messages between two ranks are used: MPI's own collectives busy-wait on the
//! CPU, without a time limit. Errors of MPI, such as a host that is gone, do not end the process: iolab's own
//! limits name rank and host.

#![allow(unsafe_code)] // calls of MPI that its safe crate does not have, or whose errors it drops

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Communicator, Destination, Source};
use mpi::{Tag, Threading, ffi};
use rustix::io::ioctl_fionread;

use crate::link::{Link, LossReason, LostRank};

/// Time of busy-waiting for an answer, with the CPU offered to others meanwhile.
const AWAKE: Duration = Duration::from_micros(200);
/// Longest sleep between two checks.
const NAP: Duration = Duration::from_millis(1);

/// Time that a process waits for the launcher to read its last message.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Bytes that any MPI sends without waiting for the receiver (2 KiB and more by default). A longer message is
/// sent in pieces: MPI's own send would block until the receiver takes it, without a limit, and cannot be
/// cancelled safely.
const PIECE: usize = 2 << 10;
/// Most pieces in flight before the receiver has to acknowledge them.
const WINDOW: u32 = 16;
/// Content of an acknowledgement.
const TAKEN: u8 = 0;

/// Event that MPI awaits without end if a process hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Start of all processes.
    Start,
    /// End of all processes.
    End,
}

/// Time limits for MPI's waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiTimeouts {
    /// Limit until all processes have started.
    pub start: Duration,
    /// Limit until all processes have ended, counted from the end of this one.
    pub end: Duration,
}

/// Tags of MPI messages.
mod tag {
    use mpi::Tag;

    /// End of a message of iolab, or all of it.
    pub(super) const END: Tag = 0;
    /// A piece with others following.
    pub(super) const PIECE: Tag = 1;
    /// Acknowledgement of the pieces in flight.
    pub(super) const TAKEN: Tag = 2;
}

/// This process among those that mpirun or srun started.
pub struct Mpi<C> {
    world: SimpleCommunicator,
    clock: C,
    limits: MpiTimeouts,
    late: fn(Wait),
    // MPI is finalised when it is dropped, which has to come after all other calls.
    _universe: Universe,
    /// Ends the watch over the finalisation.
    ended: Option<Sender<()>>,
}

impl<C: Fn() -> i64> Mpi<C> {
    /// Joins the others; `clock` reads this rank's clock, ns. To be called once, by the thread that uses it.
    ///
    /// If MPI waits longer than a limit, another thread calls `late`, which reports that, and ends this
    /// process. The launcher then ends all of them.
    ///
    /// `None` if MPI was already started.
    pub fn join(clock: C, limits: MpiTimeouts, late: fn(Wait)) -> Option<Self> {
        let started = watch(Wait::Start, limits.start, late);
        // Other threads measure meanwhile, but do not call MPI.
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)?;
        drop(started);
        let world = universe.world();
        return_errors(&world);
        Some(Self {
            world,
            clock,
            limits,
            late,
            _universe: universe,
            ended: None,
        })
    }
}

impl<C> Drop for Mpi<C> {
    fn drop(&mut self) {
        self.ended = Some(watch(Wait::End, self.limits.end, self.late));
    }
}

/// Makes MPI return its errors. By default it ends all processes with a message that names neither rank nor
/// host.
fn return_errors(world: &SimpleCommunicator) {
    // SAFETY: MPI is initialised, the communicator is its own, and the handler is one of its constants.
    unsafe { ffi::MPI_Comm_set_errhandler(world.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
}

/// Whether a message of a rank has arrived, with this tag if one is given. False if MPI fails, as for a rank
/// that is gone: then the time limit names it.
fn is_there(world: &SimpleCommunicator, from: usize, tag: Option<Tag>) -> bool {
    let mut found = 0;
    let mut status = MaybeUninit::uninit();
    // SAFETY: MPI is initialised, and `found` and `status` live in this call. `found` has a value where the call fails without
    // setting it; `status` is not read.
    let code = unsafe {
        ffi::MPI_Iprobe(
            from as i32,
            tag.unwrap_or(ffi::RSMPI_ANY_TAG),
            world.as_raw(),
            &mut found,
            status.as_mut_ptr(),
        )
    };
    code == ffi::MPI_SUCCESS as i32 && found != 0
}

/// Ends this process after a time, unless the result is dropped before.
fn watch(wait: Wait, limit: Duration, late: fn(Wait)) -> Sender<()> {
    let (over, is_over) = mpsc::channel();
    // Without the thread there is no time limit.
    let _ = thread::Builder::new().spawn(move || {
        if is_over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            late(wait);
            await_launcher();
            process::exit(1);
        }
    });
    over
}

/// Waits until the launcher has read this process's output: MPICH's launcher drops the rest when all processes
/// are ended.
fn await_launcher() {
    let is_unread = |output: BorrowedFd<'_>| ioctl_fionread(output).is_ok_and(|bytes| bytes > 0);
    let began = Instant::now();
    while began.elapsed() < LAST_WORDS
        && (is_unread(io::stdout().as_fd()) || is_unread(io::stderr().as_fd()))
    {
        thread::sleep(NAP);
    }
}

impl<C> Mpi<C> {
    /// Waits for a message of a rank, with this tag if one is given.
    fn wait(&self, from: usize, tag: Option<Tag>, timeout: Duration) -> Result<(), LostRank> {
        let began = Instant::now();
        let mut nap = NAP / 16;
        while !is_there(&self.world, from, tag) {
            let waited = began.elapsed();
            if waited > timeout {
                return Err(LostRank {
                    rank: from,
                    why: LossReason::Silent(waited),
                });
            }
            if waited < AWAKE {
                thread::yield_now();
            } else {
                thread::sleep(nap);
                nap = (nap * 2).min(NAP);
            }
        }
        Ok(())
    }
}

impl<C: Fn() -> i64> Link for Mpi<C> {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn now_ns(&self) -> i64 {
        (self.clock)()
    }

    fn send(&mut self, to: usize, message: &[u8], timeout: Duration) -> Result<(), LostRank> {
        let receiver = self.world.process_at_rank(to as i32);
        let mut rest = message;
        let mut under_way = 0;
        while rest.len() > PIECE {
            let (piece, after) = rest.split_at(PIECE);
            rest = after;
            receiver.send_with_tag(piece, tag::PIECE);
            under_way += 1;
            if under_way == WINDOW {
                self.wait(to, Some(tag::TAKEN), timeout)?;
                receiver.receive_vec_with_tag::<u8>(tag::TAKEN);
                under_way = 0;
            }
        }
        receiver.send_with_tag(rest, tag::END);
        Ok(())
    }

    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank> {
        let sender = self.world.process_at_rank(from as i32);
        let mut message = Vec::new();
        let mut under_way = 0;
        loop {
            self.wait(from, None, timeout)?;
            let (piece, status) = sender.receive_vec::<u8>();
            match status.tag() {
                tag::PIECE => under_way += 1,
                // Late acknowledgement of a message that this rank had given up.
                tag::TAKEN => continue,
                _ if message.is_empty() => return Ok(piece),
                _ => {
                    message.extend(piece);
                    return Ok(message);
                }
            }
            message.extend(piece);
            if under_way == WINDOW {
                sender.send_with_tag(&TAKEN, tag::TAKEN);
                under_way = 0;
            }
        }
    }

    fn abort(&self, code: i32) {
        await_launcher();
        self.world.abort(code)
    }
}
