//! The answer of a rate search.

use std::time::Duration;

use iolab_record::{Cell, RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::response::{ServiceLevel, ServiceLevels};
use iolab_workload::trial::RATE_MAX;

use super::with_lower_rates;
use super::{RateLimit, Search, Visits};
use crate::doubt::{Direction, Doubt, DoubtKind};
use crate::fitness::{Answer, CellAnswer, LevelAnswer, ReasonedAnswer, UnseenStalls};
use crate::io_limit::ReachedLimit;

/// The result at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct RateAnswer {
    /// Requests per second.
    pub rate: u64,
    /// The answers for the levels.
    pub found: CellAnswer,
    /// Whether all levels hold, before doubts, by the trials at this rate and at rates not far below together.
    pub with_lower: Answer,
}

/// The limits between which levels begin to fail.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchAnswer {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the target.
    pub target: String,
    /// The levels.
    pub levels: ServiceLevels,
    /// The limit from all trials: the rate at which half of the trials meet the levels.
    pub limit: RateLimit,
    /// The highest rate at which all levels are shown to hold, judged like a rate that a user names. Prefers
    /// rates without a doubt that changes the answer.
    pub holds: Option<RateAnswer>,
    /// The lowest higher rate at which a level is shown to fail.
    pub fails: Option<RateAnswer>,
    /// The levels that most trials missed, which determine the limit; several on a tie.
    pub binding: Vec<ServiceLevel>,
    /// Shortest and longest trial; `None` without trials.
    pub times: Option<(Duration, Duration)>,
    /// Doubts that could have kept an end from being shown, in the trials of any rate, each kind once. Empty if
    /// both ends are shown.
    pub doubts: Vec<Doubt>,
    /// The rate that is most likely to show a missing end, if its value is at the level; more trials at it do
    /// not help then. Of the rates with enough trials, this is the lowest for the end that holds, and the
    /// highest for the end that fails.
    pub at_level: Option<RateAnswer>,
}

impl RateAnswer {
    /// Whether the answer holds despite all doubts.
    pub fn stands(&self) -> bool {
        self.found.answer() != Answer::CannotTell
    }

    /// The answer before doubts. A yes needs the trials at lower rates too.
    fn measured(&self) -> Answer {
        with_lower_rates(self.found.measured(), || self.with_lower)
    }

    /// Whether the trials at this rate keep the levels, and those at rates not far below miss them.
    fn is_contradicted(&self) -> bool {
        self.found.measured() == Answer::Yes && self.with_lower == Answer::No
    }

    /// Whether the answer is open only because the value of a level equals the level.
    fn is_at_level(&self) -> bool {
        let levels = &self.found.levels;
        let settled = |level: &LevelAnswer| level.judged.answer == Answer::Yes;
        let is_at = |level: &LevelAnswer| level.judged.is_at_level();
        levels.iter().any(is_at) && levels.iter().all(|level| is_at(level) || settled(level))
    }

    /// The limit of control groups that explains the failing level.
    pub fn cause(&self) -> Option<ReachedLimit> {
        self.found
            .levels
            .iter()
            .find_map(|level| self.found.cause(level))
    }
}

impl SearchAnswer {
    /// The answer from the trials of a run.
    ///
    /// # Errors
    ///
    /// The first error of `latencies`.
    pub fn of(
        levels: &ServiceLevels,
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Self> {
        let mut search = Search::new(1, 1, RATE_MAX, record.run.seed);
        let recall = |rate, kept| search.recall(rate, kept);
        let visits = Visits::of_run(levels, record, latencies, recall)?;
        let cells = record.cells.iter();
        let mut cells: Vec<(u64, &Cell)> = cells
            .filter_map(|cell| Some((cell.trial().rate()?.requests()?, cell)))
            .collect();
        cells.sort_by_key(|(rate, _)| *rate);
        let times = cells.iter().filter_map(|(_, cell)| cell.trial().limit.time);
        let times: Vec<Duration> = times.collect();
        let missed = levels.all().iter().map(|level| visits.missed(level));
        let missed: Vec<usize> = missed.collect();
        let answered = cells.iter().map(|(rate, cell)| {
            let environment = record.environment_of(cell);
            let evidence = visits.evidence(*rate);
            RateAnswer {
                rate: *rate,
                with_lower: visits.with_lower(*rate),
                found: CellAnswer::of(
                    rate.to_string(),
                    cell,
                    &evidence,
                    &environment,
                    levels.all(),
                ),
            }
        });
        let rates: Vec<RateAnswer> = answered.collect();
        let mut limit = search.limit();
        limit.contradicts |=
            is_out_of_order(&rates) || rates.iter().any(RateAnswer::is_contradicted);
        let holds = last_that_holds(&rates).cloned();
        let fails = first_that_fails(&rates).cloned();
        let doubts = match holds.is_some() && fails.is_some() {
            true => Vec::new(),
            false => doubts_of(&rates),
        };
        Ok(Self {
            experiment: record.experiment.name.clone(),
            target: record.target_text(),
            levels: levels.clone(),
            at_level: at_level(&rates, holds.as_ref(), fails.as_ref()).cloned(),
            limit,
            holds,
            fails,
            binding: most_missed(levels, &missed),
            times: times.iter().min().copied().zip(times.iter().max().copied()),
            doubts,
        })
    }

    /// The answer: yes if both ends are shown; otherwise with the reasons.
    pub fn reasoned(&self) -> ReasonedAnswer {
        let open = |why| ReasonedAnswer::CannotTell(vec![why]);
        let of_end = |end: &Option<RateAnswer>, none| match end {
            None => open(none),
            Some(rate) if rate.stands() => ReasonedAnswer::Yes,
            Some(rate) => rate.found.reasoned(),
        };
        let ends = [
            of_end(&self.holds, DoubtKind::NoRateHolds),
            of_end(&self.fails, DoubtKind::NoRateFails),
        ];
        let doubts = self.doubts.iter();
        let doubts = doubts.map(|doubt| open(doubt.what));
        let contradicts = self.limit.contradicts;
        let contradicts = contradicts.then(|| open(DoubtKind::RatesContradict));
        ReasonedAnswer::merge(ends.into_iter().chain(contradicts).chain(doubts))
    }

    /// The answer: yes if both ends are shown.
    pub fn answer(&self) -> Answer {
        self.reasoned().answer()
    }

    /// The stalls that a yes does not exclude at the rate that holds.
    pub fn unseen_stalls(&self) -> Option<UnseenStalls> {
        let holds = self.holds.as_ref().filter(|_| self.answer() == Answer::Yes);
        holds.and_then(|holds| holds.found.unseen_stalls())
    }
}

/// Doubts that could reverse an answer at any rate, each kind once.
fn doubts_of(rates: &[RateAnswer]) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
    let doubts = rates
        .iter()
        .flat_map(|rate| rate.found.doubts.against(Direction::Equal));
    for doubt in doubts {
        if !found.iter().any(|one| one.what == doubt.what) {
            found.push(doubt.clone());
        }
    }
    found
}

/// The rate whose value at the level keeps an end from being shown; see [`SearchAnswer::at_level`].
fn at_level<'a>(
    rates: &'a [RateAnswer],
    holds: Option<&RateAnswer>,
    fails: Option<&RateAnswer>,
) -> Option<&'a RateAnswer> {
    let has_intervals = |rate: &&RateAnswer| {
        let mut levels = rate.found.levels.iter();
        levels.all(|level| level.judged.low.is_some())
    };
    let mut judged = rates.iter().filter(has_intervals);
    let furthest = match (holds, fails) {
        (Some(_), Some(_)) => None,
        (Some(holds), None) => judged.rfind(|rate| rate.rate > holds.rate),
        (None, Some(fails)) => judged.find(|rate| rate.rate < fails.rate),
        (None, None) => {
            let are_all = judged.clone().all(RateAnswer::is_at_level);
            judged.next().filter(|_| are_all)
        }
    };
    furthest.filter(|rate| rate.is_at_level())
}

fn most_missed(levels: &ServiceLevels, missed: &[usize]) -> Vec<ServiceLevel> {
    let most = missed.iter().copied().max().unwrap_or(0);
    let missed = levels.all().iter().zip(missed);
    missed
        .filter(|(_, n)| **n == most && most > 0)
        .map(|(level, _)| *level)
        .collect()
}

/// Whether a rate fails below one that holds. A single trial shows this for a maximum, and no later trial can
/// revoke it.
fn is_out_of_order(rates: &[RateAnswer]) -> bool {
    let is = |answer: Answer| move |rate: &&RateAnswer| rate.measured() == answer;
    let fails = rates.iter().find(is(Answer::No));
    let holds = rates.iter().rfind(is(Answer::Yes));
    fails
        .zip(holds)
        .is_some_and(|(fails, holds)| fails.rate < holds.rate)
}

/// The highest rate that holds below all that fail; prefers rates without a doubt.
fn last_that_holds(rates: &[RateAnswer]) -> Option<&RateAnswer> {
    let is = |answer: Answer| move |rate: &&RateAnswer| rate.measured() == answer;
    let fails = rates.iter().find(is(Answer::No)).map(|rate| rate.rate);
    let below = |rate: &&RateAnswer| fails.is_none_or(|fails| rate.rate < fails);
    let mut holds = rates.iter().filter(is(Answer::Yes)).filter(below);
    holds
        .clone()
        .rfind(|rate| rate.stands())
        .or_else(|| holds.next_back())
}

/// The lowest rate that fails, above [`last_that_holds`]; prefers rates without a doubt.
fn first_that_fails(rates: &[RateAnswer]) -> Option<&RateAnswer> {
    let fails = rates.iter();
    let mut fails = fails.filter(|rate| rate.measured() == Answer::No);
    fails
        .clone()
        .find(|rate| rate.stands())
        .or_else(|| fails.next())
}
