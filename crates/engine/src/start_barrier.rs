//! The one barrier of a trial: workers wait until all are ready, and again until the counters are
//! read. Unlike a plain barrier it can be abandoned when a worker could not be set up.

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

/// The barrier; workers and coordinator share it by reference.
#[derive(Debug)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    /// Wakes workers. A worker that finishes wakes none of the others: with many workers that would cost the square of
    /// their number.
    phase_changed: Condvar,
    /// Wakes the coordinator.
    worker_finished: Condvar,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Workers that have finished.
    finished: Finished,
}

/// Numbers of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Finished {
    /// All workers.
    pub(crate) all: u32,
    /// Workers that end at their own limits, not together with others.
    pub(crate) leading: u32,
}

/// Counts its worker as finished when dropped, so that a panic cannot leave the coordinator waiting.
pub(crate) struct Running<'a> {
    barrier: &'a StartBarrier,
    leads: bool,
}

impl StartBarrier {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Closed,
                finished: Finished::default(),
            }),
            phase_changed: Condvar::new(),
            worker_finished: Condvar::new(),
        }
    }

    /// Worker: waits for the start; `None` when the trial was abandoned. It `leads` if it ends by itself.
    pub(crate) fn wait_for_start(&self, leads: bool) -> Option<Running<'_>> {
        let phase = self.wait_for_phase(|phase| phase != Phase::Closed);
        (phase == Phase::Open).then_some(Running {
            barrier: self,
            leads,
        })
    }

    /// Worker: reports the end and waits until the counters have been read.
    pub(crate) fn finish(&self, running: Running<'_>) {
        drop(running);
        self.wait_for_phase(|phase| phase == Phase::Released);
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
    pub(crate) fn wait_for_all(&self, workers: u32) {
        self.wait_until(|finished| finished.all >= workers);
    }

    /// Coordinator: waits until this many workers that lead have finished.
    pub(crate) fn wait_for_leading(&self, workers: u32) {
        self.wait_until(|finished| finished.leading >= workers);
    }

    /// Coordinator: lets the workers tear down.
    pub(crate) fn release(&self) {
        self.enter(Phase::Released);
    }

    fn enter(&self, phase: Phase) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .phase = phase;
        self.phase_changed.notify_all();
    }

    /// Worker: waits for a phase.
    fn wait_for_phase(&self, reached: impl Fn(Phase) -> bool) -> Phase {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.phase_changed
            .wait_while(state, |state| !reached(state.phase))
            .unwrap_or_else(PoisonError::into_inner)
            .phase
    }

    /// Coordinator: waits until enough workers have finished.
    fn wait_until(&self, reached: impl Fn(Finished) -> bool) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = |state: &mut State| !reached(state.finished);
        let _finished = self
            .worker_finished
            .wait_while(state, goes_on)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self
            .barrier
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.finished.all += 1;
        state.finished.leading += u32::from(self.leads);
        drop(state);
        self.barrier.worker_finished.notify_one();
    }
}
