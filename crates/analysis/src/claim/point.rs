//! Points: the numbers of a claim, with their meaning, interval and doubts.

use iolab_workload::region_state::FaultKind;
use iolab_workload::response::Response;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::effect::{CellId, Estimate};
use crate::doubt::Doubt;
use crate::timeline::Access;

/// A number of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Meaning of the number.
    pub standing: Standing,
    /// Cell of the number; `null` for a number of several cells.
    pub cell: Option<CellId>,
    /// Beginning of a level; `null` for the first level and for other numbers.
    pub since: Option<Since>,
    /// Requests per second that were asked for; `null` without a given load.
    pub rate: Option<f64>,
    /// `throughput`, `IOPS`, `trials`, `times`, or another quantity: times are in ns, throughput in MB/s, sizes in bytes, shares from 0 to 1.
    #[schemars(with = "String")]
    pub quantity: Quantity,
    /// Value of the point.
    pub value: f64,
    /// Its simultaneous 95 % interval, if it has one.
    pub interval: Option<(f64, f64)>,
    /// Number that the value is a part of, or the limit that it is compared with.
    pub of: Option<f64>,
    /// Its ratio to the best point; `null` for that point, for other kinds, and without an interval.
    pub ratio: Option<Estimate>,
    /// Doubts that could reverse the comparison with the best point.
    pub doubts: Vec<Doubt>,
}

/// Beginning of a level of throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Since {
    /// Timed time since the beginning of the run or of the trial, ns.
    pub ns: u64,
    /// Bytes moved by then.
    pub bytes: f64,
    /// Kind of the bytes: written, or read where only reads changed.
    pub access: Access,
}

/// Quantity of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Response of a cell.
    Of(Response),
    /// Number of things, by the word for one of them.
    Count(&'static str),
    /// Size, bytes.
    Bytes,
    /// Requests per second that are asked for, or made.
    Rate,
    /// Blocks with this fault.
    Fault(FaultKind),
    /// Ratio of two values.
    Times,
    /// Share from 0 to 1.
    Share,
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Of(response) => to.collect_str(response),
            Self::Count(one) => to.serialize_str(&[one, "s"].concat()),
            Self::Fault(kind) => to.serialize_str(kind.name()),
            Self::Bytes => to.serialize_str("bytes"),
            Self::Rate => to.serialize_str("requests/s"),
            Self::Times => to.serialize_str("times"),
            Self::Share => to.serialize_str("share"),
        }
    }
}

/// Meaning of a point in its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Statement of the claim.
    Main,
    /// The best median of all.
    Best,
    /// Within [`MARGIN`](super::MARGIN) of every size that may be the best, even if shown to be worse.
    Near,
    /// Possibly the best: not shown to be worse than the size with the best median.
    Open,
    /// Shown to be worse than that size.
    Worse,
    /// Not shown to be worse, although it is worse in each shared block: these are too few for an interval.
    WorseInEach,
    /// Shared blocks, of those that an interval takes.
    Measured,
    /// Apparently worse, but its evidence holds doubts that could reverse the result.
    Doubtful,
    /// Too few trials.
    Unknown,
    /// A level of throughput.
    Level,
    /// Length of a level.
    Seen,
    /// Number of trials over which levels are medians.
    MedianOf,
    /// The first tenth of a trial.
    First,
    /// The last tenth of a trial.
    Last,
    /// The lowest tenth of a trial.
    Lowest,
    /// The highest tenth of a trial.
    Highest,
    /// Cells, or settings, of which the same is true.
    Alike,
    /// Trials that were disturbed from outside.
    Disturbed,
    /// Trials that were disturbed, or during some of which the machine was suspended.
    Suspended,
    /// The least step that would have been found.
    Step,
    /// The least drift that would have been found.
    Drift,
    /// Cells that are not judged.
    NotJudged,
    /// Page faults of a trial.
    Faults,
    /// Cost of one page fault.
    Cost,
    /// The size at which half of a rate is reached.
    Half,
    /// Response times at the highest requested rate, which was held.
    HighestAsked,
    /// Response times at the highest rate that was held.
    HighestHeld,
    /// Response times at the highest rate that is not shown to be too high.
    NotTooHigh,
    /// Bytes that the page cache may have served.
    Cached,
    /// Trials in which these are not known.
    CacheUnknown,
    /// Wrong data.
    Wrong,
    /// Overload that trials are too short to show, and their length.
    Hidden,
    /// Part that the trial itself wrote.
    Own,
    /// Time that the storage needed after a trial for writes in its cache, as a share of the timed span.
    Stored,
}

impl Point {
    /// A number without an interval.
    pub(super) fn new(standing: Standing, quantity: Quantity, value: f64) -> Self {
        Self {
            standing,
            cell: None,
            since: None,
            rate: None,
            quantity,
            value,
            interval: None,
            of: None,
            ratio: None,
            doubts: Vec::new(),
        }
    }

    /// A number that the claim states first.
    pub(super) fn main(quantity: Quantity, value: f64) -> Self {
        Self::new(Standing::Main, quantity, value)
    }

    /// A number of things.
    pub(super) fn count(standing: Standing, one: &'static str, value: usize) -> Self {
        Self::new(standing, Quantity::Count(one), value as f64)
    }

    /// The value as a part of a whole, or compared with a limit.
    pub(super) fn of(self, whole: f64) -> Self {
        Self {
            of: Some(whole),
            ..self
        }
    }
}
