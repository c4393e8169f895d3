//! Why an inquiry leaves a suspect alone, as data; `iolab-report` has the words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The obstacle that keeps a suspect from being tried; a name in the definition of a run, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Obstacle {
    /// The two sides differ in its mechanism and in nothing else.
    IsTheDifference,
    /// A side changes its level by itself, and each variant starts from the state that the previous one leaves.
    KeepsState,
    /// Taking it away changes settings of the kernel, which is not allowed.
    NeedsChangeSystem,
    /// Taking it away needs a priority that only root may give.
    NeedsRoot,
    /// The budget does not pay for it.
    NoTime {
        /// The budget that pays for all suspects, s.
        budget_s: u64,
        /// Idle time before each trial, ns, which is part of that budget; 0 if none is needed.
        #[serde(default, skip_serializing_if = "is_zero")]
        idle_ns: u64,
    },
    /// Others were asked for.
    NotAskedFor,
    /// A side without it has settings that cannot be together.
    Conflict {
        /// The error of the check of these settings.
        error: String,
    },
}

/// Whether a number needs no mention.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Obstacle {
    /// Its text, which in a definition of unknown origin may be anything.
    pub(crate) fn text(&self) -> Option<&String> {
        match self {
            Self::Conflict { error } => Some(error),
            Self::IsTheDifference
            | Self::KeepsState
            | Self::NeedsChangeSystem
            | Self::NeedsRoot
            | Self::NotAskedFor
            | Self::NoTime { .. } => None,
        }
    }
}
