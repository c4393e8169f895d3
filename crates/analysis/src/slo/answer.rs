//! What the trials of a search come to.

use std::time::Duration;

use iolab_record::{RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::service_level::{ServiceLevel, ServiceLevels};
use iolab_workload::trial::{RATE_MAX, Rate};

use super::{RateLimit, Search};
use crate::doubt::ReachedLimit;
use crate::fitness::{Answer, CellAnswer, keeps};

/// What was found at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct RateAnswer {
    /// Requests per second.
    pub rate: u64,
    /// The levels there.
    pub found: CellAnswer,
}

/// Between which rates levels begin to fail.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchAnswer {
    /// The experiment.
    pub experiment: String,
    /// What it was measured on.
    pub target: String,
    /// The levels.
    pub levels: ServiceLevels,
    /// The limit by all trials: the rate at which half of the trials keep the levels.
    pub limit: RateLimit,
    /// The greatest rate at which all levels are shown to hold, as at a rate that a user names; without a doubt that turns
    /// that where there is one.
    pub holds: Option<RateAnswer>,
    /// The least greater rate at which a level is shown to fail.
    pub fails: Option<RateAnswer>,
    /// The levels that most trials missed, which set the limit: all of them where each was missed as often.
    pub binding: Vec<ServiceLevel>,
    /// How long the trials lasted, the shortest and the longest; `None` without trials.
    pub times: Option<(Duration, Duration)>,
}

impl RateAnswer {
    /// Whether the answer stands despite all doubts.
    pub fn stands(&self) -> bool {
        self.found.answer() != Answer::CannotTell
    }

    /// Whether all levels hold, before any doubt.
    fn measured(&self) -> Answer {
        self.found.measured()
    }

    /// The limit that explains that a level fails.
    pub fn cause(&self) -> Option<ReachedLimit> {
        self.found
            .levels
            .iter()
            .find_map(|level| self.found.cause(level))
    }
}

impl SearchAnswer {
    /// What the trials of a run come to.
    ///
    /// # Errors
    /// The first of `latencies`.
    pub fn of(
        levels: &ServiceLevels,
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Self> {
        let evidence = crate::fitness::Evidence::of_cells(record, latencies)?;
        let mut search = Search::new(1, 1, RATE_MAX, record.run.seed);
        let mut rates = Vec::new();
        let mut times = Vec::new();
        let mut missed = vec![0_u32; levels.all().len()];
        for cell in &record.cells {
            let rate = cell.trial().rate.and_then(Rate::requests);
            let (Some(rate), Some(evidence)) = (rate, evidence.get(&cell.id)) else {
                continue;
            };
            for (sample, times) in evidence.trials() {
                let mut kept = true;
                for (level, missed) in levels.all().iter().zip(&mut missed) {
                    let keeps = keeps(&[*level], sample, times.to_vec());
                    *missed += u32::from(!keeps);
                    kept &= keeps;
                }
                search.recall(rate, kept);
            }
            times.extend(cell.trial().limit.time);
            let environment = record.environment_of(cell);
            rates.push(RateAnswer {
                rate,
                found: CellAnswer::of(rate.to_string(), cell, evidence, &environment, levels.all()),
            });
        }
        rates.sort_by_key(|rate| rate.rate);
        let limit = search.limit();
        let holds = last_that_holds(&rates).cloned();
        let least = holds.as_ref().map_or(0, |holds| holds.rate);
        let fails = first_that_fails(&rates, least).cloned();
        Ok(Self {
            experiment: record.experiment.name.clone(),
            target: record.target_text(),
            levels: levels.clone(),
            limit,
            holds,
            fails,
            binding: most_missed(levels, &missed),
            times: times.iter().min().copied().zip(times.iter().max().copied()),
        })
    }

    /// Whether both ends are shown.
    pub fn answer(&self) -> Answer {
        let stands = |end: &Option<RateAnswer>| end.as_ref().is_some_and(RateAnswer::stands);
        match stands(&self.holds) && stands(&self.fails) && !self.limit.contradicts {
            true => Answer::Yes,
            false => Answer::CannotTell,
        }
    }
}

fn most_missed(levels: &ServiceLevels, missed: &[u32]) -> Vec<ServiceLevel> {
    let most = missed.iter().copied().max().unwrap_or(0);
    let missed = levels.all().iter().zip(missed);
    missed
        .filter(|(_, n)| **n == most && most > 0)
        .map(|(level, _)| *level)
        .collect()
}

/// The greatest rate that holds below all that fail; of those without a doubt where there are any.
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

/// The least greater rate that fails; of those without a doubt where there are any.
fn first_that_fails(rates: &[RateAnswer], least: u64) -> Option<&RateAnswer> {
    let fails = |rate: &&RateAnswer| rate.rate > least && rate.measured() == Answer::No;
    let mut fails = rates.iter().filter(fails);
    fails
        .clone()
        .find(|rate| rate.stands())
        .or_else(|| fails.next())
}
