//! Enums as run files write them.

use crate::analysis;
use crate::record::{RunStatus, ServedBy};

const STATUSES: [RunStatus; 4] = [
    RunStatus::Running,
    RunStatus::Done,
    RunStatus::Interrupted,
    RunStatus::Failed,
];

const SERVED_BY: [ServedBy; 6] = [
    ServedBy::Device,
    ServedBy::PageCache,
    ServedBy::Mixed,
    ServedBy::Hole,
    ServedBy::NotStorage,
    ServedBy::Unknown,
];

pub(super) fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Done => "done",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Failed => "failed",
    }
}

pub(super) fn parse_status(text: &str) -> Option<RunStatus> {
    STATUSES.into_iter().find(|value| status(*value) == text)
}

pub(super) fn parse_served_by(text: &str) -> Option<ServedBy> {
    SERVED_BY
        .into_iter()
        .find(|value| analysis::name(*value) == text)
}
