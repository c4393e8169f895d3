//! The highest rate at which service levels hold: a search that accounts for noise.
//!
//! The search is pure: it gives the next rate, receives the result of a trial at it, and finally gives the
//! bounds of the limit. Other code carries out the trials; the tests simulate them. `answer.rs` judges the
//! trials of a run as if a user had named the rates. It finds a rate at which the levels are shown to hold, and
//! one at which they fail.

mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::doubt::{Direction, Doubt, DoubtKind};
use crate::fitness::{
    Answer, CellAnswer, Evidence, LevelAnswer, ReasonedAnswer, Times, TrialValue, UnseenStalls,
    judge, keeps, merge_answers, times_of_samples,
};
use crate::io_limit::ReachedLimit;
use iolab_record::{Cell, RunRecord, Sample, SampleLatency};
use iolab_workload::Result;
use iolab_workload::service_level::{ServiceLevel, ServiceLevels};
use iolab_workload::trial::RATE_MAX;

pub use search::{RateLimit, RatePoint, Search};

/// Factor down to which trials at lower rates count as evidence: storage that meets levels at a rate meets them
/// at lower ones. Further down, times may be longer, for instance because a CPU has to wake up.
const BELOW: u64 = 2;

/// The measured trials of a search in the order of time, by rate.
#[derive(Debug, Clone)]
pub struct Visits {
    levels: ServiceLevels,
    seed: u64,
    by_rate: BTreeMap<u64, Vec<(Sample, Times)>>,
}

/// The result of the trials at a rate, judged together like those at a rate that a user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Whether all levels hold, before doubts.
    pub answer: Answer,
    /// Number of trials.
    pub trials: usize,
}

impl Visits {
    /// No trials yet; for these levels and the seed of the run.
    pub fn new(levels: &ServiceLevels, seed: u64) -> Self {
        Self {
            levels: levels.clone(),
            seed,
            by_rate: BTreeMap::new(),
        }
    }

    /// The trials of a run. Calls `visited` for each in the order of time, with its rate and whether it met all
    /// levels.
    ///
    /// # Errors
    ///
    /// The first error of `latencies`.
    pub fn of_run(
        levels: &ServiceLevels,
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
        mut visited: impl FnMut(u64, bool),
    ) -> Result<Self> {
        let of_cell = |cell: &Cell| Some((cell.id, cell.trial().rate()?.requests()?));
        let rates: BTreeMap<i64, u64> = record.cells.iter().filter_map(of_cell).collect();
        let mut times = times_of_samples(latencies)?;
        let mut found = Self::new(levels, record.run.seed);
        for sample in record.samples.iter().filter(|sample| sample.is_measured()) {
            if let Some(rate) = rates.get(&sample.cell) {
                let times = times.remove(&sample.id).unwrap_or_default();
                visited(*rate, found.add(*rate, sample.clone(), times));
            }
        }
        Ok(found)
    }

    /// Adds a trial; returns whether it met all levels.
    pub fn add(&mut self, rate: u64, sample: Sample, times: Times) -> bool {
        let kept = keeps(self.levels.all(), &sample, times.clone());
        self.by_rate.entry(rate).or_default().push((sample, times));
        kept
    }

    /// The result of the trials at a rate. Levels hold only if the trials at rates not far below agree: among
    /// many rates, one keeps by chance a level that is missed at times at any rate.
    pub fn shown(&self, rate: u64) -> Shown {
        let own = answer_of(&self.levels, &self.evidence(rate));
        Shown {
            answer: with_lower_rates(own, || self.with_lower(rate)),
            trials: self.trials(rate).len(),
        }
    }

    fn trials(&self, rate: u64) -> &[(Sample, Times)] {
        self.by_rate.get(&rate).map_or(&[], Vec::as_slice)
    }

    /// The trials at a rate.
    fn evidence(&self, rate: u64) -> Evidence<'_> {
        Evidence::of_trials(self.trials(rate), self.seed)
    }

    /// Whether all levels hold, before doubts, by the trials at a rate and at rates not far below together.
    fn with_lower(&self, rate: u64) -> Answer {
        let near = self.by_rate.range(rate / BELOW + 1..=rate);
        let near = near.flat_map(|(_, trials)| trials);
        answer_of(&self.levels, &Evidence::of_trials(near, self.seed))
    }

    /// Number of trials that miss a level.
    fn missed(&self, level: &ServiceLevel) -> usize {
        let all = self.by_rate.values().flatten();
        let missed = all.filter(|(sample, times)| !keeps(&[*level], sample, times.clone()));
        missed.count()
    }
}

/// The answer of the trials at a rate. A yes also needs a yes of these and the trials at lower rates together.
fn with_lower_rates(own: Answer, together: impl FnOnce() -> Answer) -> Answer {
    match own {
        Answer::Yes if together() != Answer::Yes => Answer::CannotTell,
        answer => answer,
    }
}

/// Whether all levels hold, before doubts.
fn answer_of(levels: &ServiceLevels, evidence: &Evidence<'_>) -> Answer {
    let judged = levels.all().iter().map(|level| judge(level, evidence));
    merge_answers(judged.map(|judged| judged.answer))
}

/// The limited quantity of a level in the measured trials of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelValues {
    /// The level.
    pub level: ServiceLevel,
    /// Value of the quantity in each trial of a cell in the order of time, by cell id: ns, requests/s or MB/s.
    /// Without trials with fewer requests than [`ServiceLevel::requests_min`].
    pub by_cell: BTreeMap<i64, Vec<f64>>,
    /// Cells whose median is a lower bound, since requests that were due and never issued count as long as their trial.
    pub bounds: BTreeSet<i64>,
    /// Number of cells in which a trial has fewer requests than [`ServiceLevel::requests_enough`], so that its value is
    /// uncertain.
    pub uncertain: usize,
    /// Number of cells without a trial that has enough requests for a value.
    pub without: usize,
}

/// The limited quantity in each measured trial.
///
/// # Errors
///
/// The first error of `latencies`.
pub fn level_values(
    level: &ServiceLevel,
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<LevelValues> {
    let mut found = LevelValues {
        level: *level,
        by_cell: BTreeMap::new(),
        bounds: BTreeSet::new(),
        uncertain: 0,
        without: 0,
    };
    for (cell, evidence) in Evidence::of_cells(record, latencies)? {
        let mut trials: Vec<TrialValue> = evidence.values(level);
        trials.retain(|(_, requests, _)| *requests >= level.requests_min());
        if trials.is_empty() {
            found.without += usize::from(evidence.samples().next().is_some());
            continue;
        }
        let enough = level.requests_enough();
        let is_uncertain = trials.iter().any(|(_, requests, _)| *requests < enough);
        found.uncertain += usize::from(is_uncertain);
        // Bounds are longer than all other times of a trial.
        let bounds = trials.iter().filter(|(.., is_bound)| *is_bound).count();
        if 2 * bounds >= trials.len() {
            found.bounds.insert(cell);
        }
        let values = trials.into_iter().map(|(value, ..)| value);
        found.by_cell.insert(cell, values.collect());
    }
    Ok(found)
}

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
        let mut levels = self.found.levels.iter();
        levels.find_map(|level| self.found.cause(level))
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
        let with_rate = cells.filter_map(|cell| Some((cell.trial().rate()?.requests()?, cell)));
        let mut cells: Vec<(u64, &Cell)> = with_rate.collect();
        cells.sort_by_key(|(rate, _)| *rate);
        let times = || cells.iter().filter_map(|(_, cell)| cell.trial().limit.time);
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
        let of = |answer: Answer| rates.iter().filter(move |rate| rate.measured() == answer);
        let first_fails = of(Answer::No).next().map(|rate| rate.rate);
        // A single trial shows this for a maximum, and no later trial can revoke it.
        let is_above = |rate: &RateAnswer| first_fails.is_some_and(|fails| fails < rate.rate);
        let is_out_of_order = of(Answer::Yes).any(is_above);
        limit.contradicts |= is_out_of_order || rates.iter().any(RateAnswer::is_contradicted);
        // The highest rate that holds below all that fail, and the lowest that fails.
        let below =
            of(Answer::Yes).filter(|rate| first_fails.is_none_or(|fails| rate.rate < fails));
        let holds = first_sure(below.rev()).cloned();
        let fails = first_sure(of(Answer::No)).cloned();
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
            binding: most_missed(levels, &visits),
            times: times().min().zip(times().max()),
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
        let doubts = self.doubts.iter().map(|doubt| open(doubt.what));
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
    let against = rates.iter();
    let against = against.flat_map(|rate| rate.found.doubts.against(Direction::Equal));
    for doubt in against {
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

fn most_missed(levels: &ServiceLevels, visits: &Visits) -> Vec<ServiceLevel> {
    let all = levels.all().iter();
    let missed = all.map(|level| (*level, visits.missed(level)));
    let missed: Vec<(ServiceLevel, usize)> = missed.filter(|(_, n)| *n > 0).collect();
    let most = missed.iter().map(|(_, n)| *n).max();
    let binding = missed.into_iter().filter(|(_, n)| Some(*n) == most);
    binding.map(|(level, _)| level).collect()
}

/// The first of these rates without a doubt, else the first.
fn first_sure<'a>(
    mut rates: impl Iterator<Item = &'a RateAnswer> + Clone,
) -> Option<&'a RateAnswer> {
    let sure = rates.clone().find(|rate| rate.stands());
    sure.or_else(|| rates.next())
}

#[cfg(test)]
mod visits_tests {
    use super::*;
    use iolab_record::{LatencyOf, Operation};

    /// Trials of 1000 requests at a rate; in those that stall 5 % of them take 50 ms.
    fn add(visits: &mut Visits, rate: u64, trials: usize, stalled: usize) {
        for trial in 0..trials {
            let mut sample = Sample {
                id: (visits.by_rate.len() * 100 + trial) as i64,
                elapsed_ns: 1_000_000_000,
                ..Sample::default()
            };
            sample.operations.read.requests = 1000;
            let late = if trial < stalled { 50 } else { 0 };
            let times = vec![(100_000, 1000 - late), (50_000_000, late)];
            visits.add(
                rate,
                sample,
                vec![(LatencyOf::service(Operation::Read), times)],
            );
        }
    }

    #[test]
    fn rate_is_open_if_lower_rates_miss() {
        let answer = |at: u64, trials: usize, stalled: usize| {
            let mut visits = Visits::new(&"p99<1ms".parse().expect("a level"), 1);
            add(&mut visits, at, trials, stalled);
            add(&mut visits, 1000, 8, 0);
            visits.shown(1000).answer
        };
        assert_eq!(answer(800, 20, 0), Answer::Yes);
        assert_eq!(answer(800, 20, 8), Answer::CannotTell);
        assert_eq!(answer(1200, 20, 8), Answer::Yes, "a higher rate may stall");
        assert_eq!(
            answer(400, 20, 8),
            Answer::Yes,
            "far below, a CPU may sleep"
        );
    }
}
