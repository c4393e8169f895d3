//! What waits for the heads.

use super::layout::SectorPosition;
use crate::model::Ns;

/// What the heads are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A read that the host waits for.
    Read,
    /// A write that the host waits for.
    Write,
    /// A write that the buffer has accepted.
    Destage,
}

/// A request on its way to the heads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) kind: Task,
    pub(super) tag: u64,
    /// First block and one past the last.
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) arrived: Ns,
    /// The command has been worked off; the heads may start.
    pub(super) ready: Ns,
    pub(super) place: SectorPosition,
}
