//! The trials of a search, by their rate.

use std::collections::BTreeMap;

use iolab_record::{RunRecord, Sample, SampleLatency};
use iolab_workload::Result;
use iolab_workload::service_level::ServiceLevels;

use crate::fitness::{Answer, Evidence, Times, judge, keeps, merge_answers, times_of_samples};

/// The measured trials of a search in the order of time, by the rate of each.
#[derive(Debug, Clone)]
pub struct Visits {
    levels: ServiceLevels,
    seed: u64,
    by_rate: BTreeMap<u64, Vec<(Sample, Times)>>,
}

/// What the trials at a rate show, judged together as at a rate that a user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Whether all levels hold, before any doubt.
    pub answer: Answer,
    /// Trials.
    pub trials: usize,
}

impl Visits {
    /// None yet, in a search about levels with the seed of its run.
    pub fn new(levels: &ServiceLevels, seed: u64) -> Self {
        Self {
            levels: levels.clone(),
            seed,
            by_rate: BTreeMap::new(),
        }
    }

    /// Those of a run. `visited` is called for each in the order of time: with its rate, and whether it kept all levels.
    ///
    /// # Errors
    /// The first of `latencies`.
    pub fn of_run(
        levels: &ServiceLevels,
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
        mut visited: impl FnMut(u64, bool),
    ) -> Result<Self> {
        let rates: BTreeMap<i64, u64> = record
            .cells
            .iter()
            .filter_map(|cell| Some((cell.id, cell.trial().rate?.requests()?)))
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

    /// Adds a trial; whether it kept all levels.
    pub fn add(&mut self, rate: u64, sample: Sample, times: Times) -> bool {
        let kept = keeps(self.levels.all(), &sample, times.clone());
        self.by_rate.entry(rate).or_default().push((sample, times));
        kept
    }

    /// What the trials at a rate show.
    pub fn shown(&self, rate: u64) -> Shown {
        let trials = self.by_rate.get(&rate).map_or(&[][..], Vec::as_slice);
        let evidence = Evidence::of_trials(trials, self.seed);
        let judged = self
            .levels
            .all()
            .iter()
            .map(|level| judge(level, &evidence));
        Shown {
            answer: merge_answers(judged.map(|judged| judged.answer)),
            trials: trials.len(),
        }
    }
}
