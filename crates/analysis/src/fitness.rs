//! Whether measurements show that service levels hold, with the evidence against it.

mod judge;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use crate::doubt::{Direction, Doubt, DoubtKind, Doubts};
use crate::io_limit::ReachedLimit;
use crate::trial_values::distinct;
use iolab_record::environment::Environment;
use iolab_record::{Cell, RunRecord, SampleLatency};
use iolab_stats::{CLUSTERS_MIN, CONFIDENCE, share_bounds};
use iolab_workload::service_level::{
    Bound, LevelQuantity, REQUESTS_OF_MAX, ServiceLevel, ServiceLevels,
};
use iolab_workload::settings::{cell_label, level_label};
use iolab_workload::{Result, json, named};

pub(crate) use judge::times_of_samples;
pub use judge::{Evidence, Times, judge, keeps, merge_answers};

/// The limited quantity in a trial, the number of requests that it is based on, and whether it is a lower bound: requests that
/// were due and never issued count as long as the trial.
pub(crate) type TrialValue = (f64, f64, bool);

named! {
    /// The answer to a question.
    pub enum Answer: "answer" {
        /// Shown to hold.
        Yes = "yes",
        /// Shown not to hold.
        No = "no",
        /// Neither is shown.
        CannotTell = "cannot tell",
    }
}

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
        match self.answer {
            Answer::Yes => ReasonedAnswer::Yes,
            Answer::No => ReasonedAnswer::No,
            Answer::CannotTell => {
                ReasonedAnswer::CannotTell(vec![self.open.unwrap_or(DoubtKind::NoTrial)])
            }
        }
    }

    /// Whether the value equals the level, as far as that matters: its whole interval lies within
    /// [`MARGIN`] of the level, so that more trials do not decide it.
    pub fn is_at_level(&self) -> bool {
        self.open == Some(DoubtKind::AtLevel)
    }

    /// Whether a longer load can decide the level: its value differs from the level by more than
    /// [`MARGIN`].
    pub fn can_be_decided(&self) -> bool {
        let limit = self.level.limit();
        let is_near = |value: f64| (value - limit).abs() <= MARGIN * limit;
        !self.estimate.is_some_and(is_near)
    }

    /// The stalls that an answer of yes does not exclude; `None` if stalls that rare cannot make the level fail,
    /// however long they are.
    fn unseen_stalls(&self) -> Option<UnseenStalls> {
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

/// An answer; "cannot tell" has at least one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasonedAnswer {
    /// Shown to hold.
    Yes,
    /// Shown not to hold.
    No,
    /// Neither is shown, for these distinct reasons.
    CannotTell(Vec<DoubtKind>),
}

impl ReasonedAnswer {
    /// The answer without its reasons.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Yes => Answer::Yes,
            Self::No => Answer::No,
            Self::CannotTell(_) => Answer::CannotTell,
        }
    }

    /// The combined answer: no if any is no, otherwise "cannot tell" if any is, with all reasons.
    pub fn merge(answers: impl IntoIterator<Item = Self>) -> Self {
        let nothing = Self::CannotTell(vec![DoubtKind::NoTrial]);
        answers.into_iter().reduce(Self::and).unwrap_or(nothing)
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, other) => other,
            (open, Self::Yes) => open,
            (Self::CannotTell(reasons), Self::CannotTell(others)) => {
                Self::CannotTell(distinct(reasons.into_iter().chain(others)))
            }
        }
    }
}

/// Distance from its bound within which a level is undecided, as a share, since another day may differ as much.
/// Equal to the smallest change that matters in a comparison.
pub const MARGIN: f64 = 0.05;

/// The answer, with the reason if it is unknown.
fn verdict(judged: &Judged) -> (Answer, Option<DoubtKind>) {
    let level = &judged.level;
    let limit = level.limit();
    let (requests, trials) = (judged.requests, judged.trials);
    let unknown = |why: DoubtKind| (Answer::CannotTell, Some(why));
    let (Some(estimate), Some(low)) = (judged.estimate, judged.low) else {
        return unknown(match requests {
            0 => DoubtKind::NoRequest,
            _ if trials < CLUSTERS_MIN => DoubtKind::FewTrials,
            _ => DoubtKind::FewRequests,
        });
    };
    if level.quantity == LevelQuantity::Max {
        return match requests {
            _ if estimate >= limit => (Answer::No, None),
            REQUESTS_OF_MAX.. => (Answer::Yes, None),
            _ => unknown(DoubtKind::FewRequests),
        };
    }
    let (near, far) = (limit * (1.0 - MARGIN), limit * (1.0 + MARGIN));
    let high = judged.high;
    match level.bound {
        Bound::Below(_) if low > far => (Answer::No, None),
        Bound::Below(_) if high.is_some_and(|high| high < near) => (Answer::Yes, None),
        Bound::Above(_) if high.is_some_and(|high| high < near) => (Answer::No, None),
        Bound::Above(_) if low > far => (Answer::Yes, None),
        Bound::Below(_) | Bound::Above(_) => unknown(match high {
            None => DoubtKind::FewRequests,
            Some(high) if low > near && high < far => DoubtKind::AtLevel,
            Some(_) => DoubtKind::NearLevel,
        }),
    }
}

/// The answer for a level in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelAnswer {
    /// The result before doubts.
    pub judged: Judged,
    /// The doubts that turn yes or no into "cannot tell"; empty if the answer stands.
    pub turned_by: Vec<Doubt>,
}

/// The answers for levels in a cell, with their basis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellAnswer {
    /// The label of the cell, or its rate where that is the only factor.
    pub cell: String,
    /// Each level, in the order asked.
    pub levels: Vec<LevelAnswer>,
    /// All doubts about the trials, including those that do not change an answer.
    pub doubts: Doubts,
    /// Time under load, ns.
    pub load_ns: u64,
}

impl LevelAnswer {
    /// The answer, with the reasons of an open one.
    pub fn reasoned(&self) -> ReasonedAnswer {
        if self.turned_by.is_empty() {
            return self.judged.reasoned();
        }
        let doubts = self.turned_by.iter();
        let reasons = doubts.map(|doubt| ReasonedAnswer::CannotTell(vec![doubt.what]));
        ReasonedAnswer::merge(reasons)
    }

    /// The answer.
    pub fn answer(&self) -> Answer {
        self.reasoned().answer()
    }

    /// Stalls that an answer of yes does not exclude; `None` for other answers.
    pub fn unseen_stalls(&self) -> Option<UnseenStalls> {
        let stalls = self.judged.unseen_stalls();
        stalls.filter(|_| self.answer() == Answer::Yes)
    }
}

impl CellAnswer {
    /// The answers from the trials of a cell.
    pub fn of(
        name: String,
        cell: &Cell,
        evidence: &Evidence<'_>,
        environment: &Environment,
        levels: &[ServiceLevel],
    ) -> Self {
        let mut doubts = Doubts::of_cell(cell, evidence.samples(), environment);
        if levels.iter().all(|level| level.quantity.is_rate()) {
            // The time of a rate includes the sync at the end.
            let all = &mut doubts.all;
            all.retain(|doubt| doubt.what != DoubtKind::SyncedAtEnd);
        }
        let levels = levels.iter().map(|level| {
            let judged = judge(level, evidence);
            // The bound on the storage that the answer implies.
            let direction = match judged.answer {
                Answer::Yes => Some(Direction::AtLeast),
                Answer::No => Some(Direction::AtMost),
                Answer::CannotTell => None,
            };
            let turned_by = direction.map_or(Vec::new(), |direction| {
                doubts.turning(direction, |concerned| {
                    judge(level, &evidence.without(concerned)).answer == judged.answer
                })
            });
            LevelAnswer {
                turned_by: turned_by.into_iter().cloned().collect(),
                judged,
            }
        });
        Self {
            cell: name,
            levels: levels.collect(),
            load_ns: evidence.load_ns(),
            doubts,
        }
    }

    /// The limit of control groups that explains a failing level, so that no other disk would help.
    pub fn cause(&self, level: &LevelAnswer) -> Option<ReachedLimit> {
        (level.answer() == Answer::No).then_some(self.doubts.limit)?
    }

    /// The doubts to report: those that change an answer, and those that could if a level is open anyway.
    pub fn reasons(&self) -> Vec<&Doubt> {
        let mut open = self.levels.iter().map(|level| level.judged.answer);
        let of_open = match open.any(|answer| answer == Answer::CannotTell) {
            true => self.doubts.against(Direction::Equal),
            false => Vec::new(),
        };
        let told = |doubt: &&Doubt| {
            let mut turned = self.levels.iter().flat_map(|level| &level.turned_by);
            of_open.contains(doubt) || turned.any(|by| by == *doubt)
        };
        self.doubts.all.iter().filter(told).collect()
    }

    /// The most frequent stalls that its answers of yes do not exclude.
    pub fn unseen_stalls(&self) -> Option<UnseenStalls> {
        let levels = self.levels.iter();
        UnseenStalls::most_frequent(levels.filter_map(LevelAnswer::unseen_stalls))
    }

    /// The answer for all levels together, before doubts.
    pub fn measured(&self) -> Answer {
        merge_answers(self.levels.iter().map(|level| level.judged.answer))
    }

    /// The answer for all levels together, with the reasons of an open one.
    pub fn reasoned(&self) -> ReasonedAnswer {
        ReasonedAnswer::merge(self.levels.iter().map(LevelAnswer::reasoned))
    }

    /// The answer for all levels together.
    pub fn answer(&self) -> Answer {
        self.reasoned().answer()
    }
}

/// The answers for every level in every measured cell of a run, in the order of the cells.
///
/// # Errors
///
/// The first error of `latencies`.
pub fn answers_of_cells(
    levels: &ServiceLevels,
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<Vec<CellAnswer>> {
    let evidence = Evidence::of_cells(record, latencies)?;
    let cells = record.cells.iter().filter_map(|cell| {
        let evidence = evidence.get(&cell.id)?;
        let rate = cell.trial().rate();
        let rate = rate.map(|rate| level_label("rate", &rate.to_string()));
        let name = match record.experiment.factors.as_slice() {
            [] => rate.unwrap_or_default(),
            factors => cell_label(factors, &cell.levels),
        };
        let environment = record.environment_of(cell);
        Some(CellAnswer::of(
            name,
            cell,
            evidence,
            &environment,
            levels.all(),
        ))
    });
    Ok(cells.collect())
}

/// The answer for all cells together, with the reasons of an open one.
pub fn reasoned(cells: &[CellAnswer]) -> ReasonedAnswer {
    ReasonedAnswer::merge(cells.iter().map(CellAnswer::reasoned))
}
