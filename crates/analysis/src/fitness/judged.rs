//! The result for a level, and why it may be open.

use schemars::JsonSchema;
use serde::Serialize;

use iolab_stats::{CONFIDENCE, share_bounds};
use iolab_workload::json;
use iolab_workload::response::{LevelQuantity, ServiceLevel};

use super::{Answer, ReasonedAnswer};
use crate::doubt::DoubtKind;

/// A lasting change of the limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Time under load before it, ns.
    pub after_ns: u64,
    /// Bytes transferred before it.
    pub after_bytes: u64,
    /// The median over the trials before.
    pub from: f64,
    /// The median over the trials after.
    pub to: f64,
}

/// The result for a level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Judged {
    /// The level.
    #[serde(serialize_with = "json::name")]
    #[schemars(with = "String")]
    pub level: ServiceLevel,
    /// The limited quantity, in ns, requests/s or MB/s; `None` without requests.
    #[serde(rename = "measured")]
    pub estimate: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the interval; also `None` with too few requests for one.
    pub high: Option<f64>,
    /// Number of requests.
    pub requests: u64,
    /// Number of trials.
    pub trials: usize,
    /// Trials that miss the level, each by itself.
    pub missed: usize,
    /// Whether the level holds, before doubts.
    #[serde(rename = "as_measured")]
    pub answer: Answer,
    /// Reason why the answer is unknown; `None` if it is known.
    pub open: Option<DoubtKind>,
    /// The last lasting change over the trials.
    pub change: Option<Change>,
}

/// Stalls that may exist although the measured trials have none, or fewer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnseenStalls {
    /// The greatest share of trials that can miss the level by what the measured ones show, with 95 % confidence.
    pub share: f64,
    /// Number of measured trials that miss it, each by itself.
    pub missed: usize,
    /// Number of measured trials.
    pub trials: usize,
}

impl UnseenStalls {
    /// The bound of several answers that allows the most frequent stalls.
    pub fn most_frequent(all: impl Iterator<Item = Self>) -> Option<Self> {
        all.max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

impl Judged {
    /// Whether the level holds, before doubts.
    pub fn reasoned(&self) -> ReasonedAnswer {
        match (self.answer, self.open) {
            (Answer::Yes, _) => ReasonedAnswer::Yes,
            (Answer::No, _) => ReasonedAnswer::No,
            (Answer::CannotTell, open) => {
                let kind = open.unwrap_or(DoubtKind::NoTrial);
                ReasonedAnswer::CannotTell(vec![kind])
            }
        }
    }

    /// Whether the value equals the level, as far as that matters: its whole interval lies within
    /// [`MARGIN`](super::MARGIN) of the level, so that more trials do not decide it.
    pub fn is_at_level(&self) -> bool {
        self.open == Some(DoubtKind::AtLevel)
    }

    /// Whether a longer load can decide the level: its value differs from the level by more than
    /// [`MARGIN`](super::MARGIN).
    pub fn can_be_decided(&self) -> bool {
        let limit = self.level.limit();
        let is_near = |value: f64| (value - limit).abs() <= super::MARGIN * limit;
        !self.estimate.is_some_and(is_near)
    }

    /// The stalls that an answer of yes does not exclude; `None` if stalls that rare cannot make the level fail,
    /// however long they are.
    pub(super) fn unseen_stalls(&self) -> Option<UnseenStalls> {
        let (missed, trials) = (self.missed, self.trials);
        let (_, share) = share_bounds(missed as f64, trials as f64, 1.0 - CONFIDENCE)?;
        let can_fail = match self.level.quantity {
            LevelQuantity::Quantile(q) => share > 1.0 - q,
            // One time may be of any length.
            LevelQuantity::Mean | LevelQuantity::Max => true,
            // A trial that stalls as a whole counts with a rate of 0.
            LevelQuantity::Iops | LevelQuantity::Throughput => {
                let low = self.low.unwrap_or(0.0);
                low * (1.0 - share) <= self.level.limit()
            }
        };
        can_fail.then_some(UnseenStalls {
            share,
            missed,
            trials,
        })
    }
}
