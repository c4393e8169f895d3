//! Syncs after a number of writes.

use iolab_workload::trial::TrialSpec;

use crate::request::Action;

/// The syncs that follow writes.
pub(crate) struct Following {
    pub(super) call: Action,
    /// Number of writes per sync.
    every: u32,
    /// Writes since the last sync.
    since: u32,
    /// Stamp at which the sync of each slot was issued.
    pub(crate) started: Vec<u64>,
}

impl Following {
    pub(crate) fn new(spec: &TrialSpec) -> Self {
        let call = spec.sync.call();
        Self {
            call: call.map_or(Action::Fsync, Action::from),
            every: spec.sync_every,
            since: 0,
            started: vec![0; call.map_or(0, |_| spec.depth as usize)],
        }
    }

    /// Counts a write; whether a sync follows it.
    pub(crate) fn is_due(&mut self) -> bool {
        self.since += 1;
        if self.since < self.every {
            return false;
        }
        self.since = 0;
        true
    }
}
