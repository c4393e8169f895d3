//! The highest rate at which service levels hold: a search that accounts for noise.
//!
//! The search is pure: it gives the next rate, receives the result of a trial at it, and finally gives the
//! bounds of the limit. Other code carries out the trials; the tests simulate them. `answer.rs` judges the
//! trials of a run as if a user had named the rates. It finds a rate at which the levels are shown to hold, and
//! one at which they fail.

mod answer;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::fitness::{
    Answer, Evidence, Times, TrialValue, judge, keeps, merge_answers, times_of_samples,
};
use iolab_record::{RunRecord, Sample, SampleLatency};
use iolab_workload::Result;
use iolab_workload::response::{ServiceLevel, ServiceLevels};

pub use answer::{RateAnswer, SearchAnswer};
pub use search::{RateLimit, RatePoint, Search, Step};

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
        let rates: BTreeMap<i64, u64> = record
            .cells
            .iter()
            .filter_map(|cell| Some((cell.id, cell.trial().rate()?.requests()?)))
            .collect();
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
        let near: Vec<Evidence<'_>> = near
            .map(|(_, trials)| Evidence::of_trials(trials, self.seed))
            .collect();
        answer_of(&self.levels, &Evidence::joined(&near))
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
        let trials: Vec<TrialValue> = evidence
            .values(level)
            .into_iter()
            .filter(|trial| trial.requests >= level.requests_min())
            .collect();
        if trials.is_empty() {
            found.without += usize::from(evidence.samples().next().is_some());
            continue;
        }
        let enough = level.requests_enough();
        found.uncertain += usize::from(trials.iter().any(|trial| trial.requests < enough));
        // Bounds are longer than all other times of a trial.
        let bounds = trials.iter().filter(|trial| trial.is_bound).count();
        if 2 * bounds >= trials.len() {
            found.bounds.insert(cell);
        }
        let values = trials.into_iter().map(|trial| trial.value);
        found.by_cell.insert(cell, values.collect());
    }
    Ok(found)
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
