//! Doubts of a comparison, as machines read them.

use iolab_analysis::doubt::{self, Reason, SideDoubt};
use schemars::JsonSchema;
use serde::Serialize;

use crate::doubt::{of_side, remedy};

/// Something in the evidence that could turn a comparison round.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SideDoubt")]
pub(crate) struct Against {
    /// `other_traffic`, `cpu_stall`, `worker_wait`, `steal`, `cpu_quota_wait`, `memory_stall`, `device_ios_per_request`,
    /// `buffer_pieces_per_request`, `preempted`, `suspended`, `served_by`, `dependent`, `rate_not_held`, `clock_resolution`,
    /// `contradicted`, `not_synced`, `never_flushed`, `two_groups`, `reads_after_writes` or `ended_by_time`.
    doubt: &'static str,
    /// The side that it concerns: `base` or `new`, of a claim the other one; `null` where it is both together.
    side: Option<&'static str>,
    /// Its value: of `preempted` times per second that a worker was, of `dependent` how many independent trials one is worth, of
    /// `clock_resolution` the step of the clock over the side's value, of others what the column of that name has; `null` where there is none.
    value: Option<f64>,
    /// The doubt as a sentence.
    text: String,
    /// What to do about it; `null` where nothing is known to help.
    remedy: Option<String>,
}

impl Against {
    pub(crate) fn of(found: &SideDoubt) -> Self {
        Self {
            doubt: found.reason.name(),
            side: found.side.map(|side| match side {
                doubt::ComparedSide::Base => "base",
                doubt::ComparedSide::New => "new",
            }),
            value: match &found.reason {
                Reason::Disturbed { worst, .. } => Some(*worst),
                Reason::Unsynced { share } => Some(*share),
                Reason::Preempted { per_second } => Some(*per_second),
                Reason::Dependent { independence } => Some(*independence),
                Reason::ClockResolution { share, .. } => Some(*share),
                Reason::Imbalance(_)
                | Reason::NeverFlushed { .. }
                | Reason::NotSynced { .. }
                | Reason::ServedBy { .. }
                | Reason::ReadsAfterWrites
                | Reason::RateNotHeld
                | Reason::EndedByTime
                | Reason::Contradicted
                | Reason::TwoGroups { .. }
                | Reason::Suspended => None,
            },
            text: of_side(&found.reason),
            remedy: remedy(&found.reason),
        }
    }
}
