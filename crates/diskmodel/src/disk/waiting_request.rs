//! Requests that wait for the heads.

use super::layout::SectorPosition;
use crate::model::Ns;

/// The task of the heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A read that the host waits for.
    Read,
    /// A write that the host waits for.
    Write,
    /// A write that the buffer has accepted.
    Destage,
}

/// A request for the heads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) kind: Task,
    pub(super) tag: u64,
    /// First block and one past the last.
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) arrived: Ns,
    /// The time at which the command has been processed and the heads may start.
    pub(super) ready: Ns,
    pub(super) place: SectorPosition,
}
