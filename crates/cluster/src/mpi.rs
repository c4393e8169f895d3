//! The transport that ships: MPI. Only messages between two ranks are used: MPI's own collectives wait on the CPU, and know
//! no end of waiting.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};

use crate::link::{Link, Lost, Why};

/// How long an answer is waited for on the CPU, which others are let to meanwhile.
const AWAKE: Duration = Duration::from_micros(200);
/// Longest sleep between two looks.
const NAP: Duration = Duration::from_millis(1);

/// How long MPI may take to start: thousands of processes begin at different times, and read the program from shared storage.
pub const START: Duration = Duration::from_secs(300);

/// This process among those that mpirun or srun started.
pub struct Mpi<C> {
    world: SimpleCommunicator,
    clock: C,
    // MPI is finalised when it is dropped, which has to come last.
    _universe: Universe,
}

impl<C: Fn() -> i64> Mpi<C> {
    /// Joins the others; `clock` reads this rank's clock, ns. To be called once, by the thread that uses it.
    ///
    /// MPI waits without end for a process that hangs or was never started. `late` is called after `limit`, by another thread,
    /// and has to end this process.
    ///
    /// `None` where MPI was started before.
    pub fn join(clock: C, limit: Duration, late: impl FnOnce() + Send + 'static) -> Option<Self> {
        let (started, is_started) = mpsc::channel::<()>();
        // Without a thread for it there is no limit.
        let _ = thread::Builder::new().spawn(move || {
            if is_started.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                late();
            }
        });
        // Other threads than this one measure meanwhile, but do not call MPI.
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)?;
        drop(started);
        Some(Self {
            world: universe.world(),
            clock,
            _universe: universe,
        })
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

    fn send(&mut self, to: usize, message: &[u8]) -> Result<(), Lost> {
        self.world.process_at_rank(to as i32).send(message);
        Ok(())
    }

    fn receive(&mut self, from: usize, patience: Duration) -> Result<Vec<u8>, Lost> {
        let sender = self.world.process_at_rank(from as i32);
        let began = Instant::now();
        let mut nap = NAP / 16;
        while sender.immediate_probe().is_none() {
            let waited = began.elapsed();
            if waited > patience {
                return Err(Lost {
                    rank: from,
                    why: Why::Silent(waited),
                });
            }
            if waited < AWAKE {
                thread::yield_now();
            } else {
                thread::sleep(nap);
                nap = (nap * 2).min(NAP);
            }
        }
        Ok(sender.receive_vec().0)
    }

    fn abort(&self, code: i32) {
        self.world.abort(code)
    }
}
