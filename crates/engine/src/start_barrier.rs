//! The one barrier of a trial: workers wait until all are ready, and linger until the counters are
//! read. Unlike a plain barrier it knows how to give up when a worker could not be set up.

use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Workers are being set up.
    Closed,
    /// The trial runs.
    Open,
    /// The trial will not run.
    Abandoned,
    /// The counters are read; workers may tear down.
    Released,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct StartBarrier {
    state: Mutex<(Phase, u32)>,
    changed: Condvar,
}

/// Counts its worker as finished when dropped, so that a panic cannot leave the coordinator waiting.
pub(crate) struct Running<'a>(&'a StartBarrier);

impl StartBarrier {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new((Phase::Closed, 0)),
            changed: Condvar::new(),
        }
    }

    /// Worker: waits for the start; `None` when the trial was abandoned.
    pub(crate) fn wait_for_start(&self) -> Option<Running<'_>> {
        let phase = self.wait_until(|phase, _| phase != Phase::Closed).0;
        (phase == Phase::Open).then_some(Running(self))
    }

    /// Worker: reports the end and waits until the counters have been read.
    pub(crate) fn finish(&self, running: Running<'_>) {
        drop(running);
        self.wait_until(|phase, _| phase == Phase::Released);
    }

    /// Coordinator: starts all workers at once.
    pub(crate) fn open(&self) {
        self.enter(Phase::Open);
    }

    /// Coordinator: sends all workers home.
    pub(crate) fn abandon(&self) {
        self.enter(Phase::Abandoned);
    }

    /// Coordinator: waits until this many workers have finished.
    pub(crate) fn wait_finished(&self, workers: u32) {
        self.wait_until(|_, finished| finished == workers);
    }

    /// Coordinator: lets the workers tear down.
    pub(crate) fn release(&self) {
        self.enter(Phase::Released);
    }

    fn enter(&self, phase: Phase) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = phase;
        self.changed.notify_all();
    }

    fn wait_until(&self, reached: impl Fn(Phase, u32) -> bool) -> (Phase, u32) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *self
            .changed
            .wait_while(state, |(phase, finished)| !reached(*phase, *finished))
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1 += 1;
        self.0.changed.notify_all();
    }
}
