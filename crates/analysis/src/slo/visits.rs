//! The trials of a search by rate.

use std::collections::BTreeMap;

use iolab_record::{RunRecord, Sample, SampleLatency};
use iolab_workload::Result;
use iolab_workload::service_level::ServiceLevels;

use crate::fitness::{Answer, Evidence, Times, judge, keeps, merge_answers, times_of_samples};

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
    /// Without trials, for these levels and the seed of the run.
    pub fn new(levels: &ServiceLevels, seed: u64) -> Self {
        Self {
            levels: levels.clone(),
            seed,
            by_rate: BTreeMap::new(),
        }
    }

    /// From the trials of a run. Calls `visited` for each in the order of time, with its rate and whether it met all levels.
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

    /// Adds a trial; returns whether it met all levels.
    pub fn add(&mut self, rate: u64, sample: Sample, times: Times) -> bool {
        let kept = keeps(self.levels.all(), &sample, times.clone());
        self.by_rate.entry(rate).or_default().push((sample, times));
        kept
    }

    /// The result of the trials at a rate.
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
