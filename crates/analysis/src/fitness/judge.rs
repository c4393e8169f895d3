//! Whether a service level holds, from the times of a cell's trials.

use std::collections::{BTreeMap, BTreeSet};

use iolab_record::{LatencyOf, Operation, RequestTime, RunRecord, Sample, SampleLatency};
use iolab_stats::{
    CONFIDENCE, Lasting, Pooled, lasting_shifts, mean_interval, median, pooled_mean,
    pooled_quantile,
};
use iolab_workload::Result;
use iolab_workload::histogram::counts;
use iolab_workload::service_level::{Bound, LevelQuantity, Requests, ServiceLevel};

use super::{Answer, Change, Judged, TrialValue, verdict};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;
/// Criteria for a change of the times over the trials, the same as for changes of throughput over a run.
const CHANGE: Lasting = Lasting {
    length: 4,
    shift: 0.223,
    alpha: 0.01,
};

/// Number of trials that always suffice for a level of their own. A cache or a credit that lasted for a minute
/// is used up, however long the load continues.
const LEVEL_MAX: usize = 60;

/// The measured trials of a cell in the order of time, with their times.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    trials: Vec<Trial<'a>>,
    seed: u64,
}

#[derive(Debug, Clone)]
struct Trial<'a> {
    sample: &'a Sample,
    times: Times,
}

/// The frequency of each time in a trial, by operation and kind of time; ns ascending. Takes much less memory
/// than histograms.
pub type Times = Vec<(LatencyOf, Vec<(u64, u64)>)>;

impl<'a> Evidence<'a> {
    /// The measured trials of every cell, with their times.
    ///
    /// # Errors
    ///
    /// The first error of `latencies`.
    pub fn of_cells(
        record: &'a RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<BTreeMap<i64, Self>> {
        let mut times = times_of_samples(latencies)?;
        let cells = record.measured().map(|(cell, samples)| {
            let trials = samples.into_iter().map(|sample| Trial {
                sample,
                times: times.remove(&sample.id).unwrap_or_default(),
            });
            let evidence = Self {
                trials: trials.collect(),
                seed: record.run.seed,
            };
            (cell.id, evidence)
        });
        Ok(cells.collect())
    }

    /// Evidence of these trials; `seed` is for resampling.
    pub(crate) fn of_trials(
        trials: impl IntoIterator<Item = &'a (Sample, Times)>,
        seed: u64,
    ) -> Self {
        let trials = trials.into_iter().map(|(sample, times)| Trial {
            sample,
            times: times.clone(),
        });
        let mut trials: Vec<Trial<'_>> = trials.collect();
        trials.sort_by_key(|trial| trial.sample.id);
        Self { trials, seed }
    }

    /// The evidence without some trials, given by the ids of their samples.
    #[must_use]
    pub fn without(&self, samples: &BTreeSet<i64>) -> Self {
        let trials = self.trials.iter();
        let trials = trials.filter(|trial| !samples.contains(&trial.sample.id));
        Self {
            trials: trials.cloned().collect(),
            seed: self.seed,
        }
    }

    /// The trials.
    pub fn samples(&self) -> impl Iterator<Item = &'a Sample> {
        self.trials.iter().map(|trial| trial.sample)
    }

    /// The limited quantity in each trial.
    pub(crate) fn values(&self, level: &ServiceLevel) -> Vec<TrialValue> {
        let trials = self.trials.iter().map(|trial| {
            let counts = trial.counts(level.of);
            let value = of_trial(level, trial, &counts);
            let has_waited = match level.quantity {
                LevelQuantity::Mean => true,
                _ => value >= trial.sample.elapsed_ns as f64,
            };
            let is_bound = level.is_of_time() && has_waited && trial.left_out(level.of) > 0;
            (value, all_of(&counts) as f64, is_bound)
        });
        trials.collect()
    }

    /// Sum of the time under load of all trials, ns.
    pub fn load_ns(&self) -> u64 {
        let loads = self.samples().map(|sample| sample.elapsed_ns);
        loads.fold(0, u64::saturating_add)
    }
}

/// The times of each sample by its id.
pub(crate) fn times_of_samples(
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<BTreeMap<i64, Times>> {
    let mut times: BTreeMap<i64, Times> = BTreeMap::new();
    for latency in latencies {
        let latency = latency?;
        let of_sample = times.entry(latency.sample).or_default();
        of_sample.push((latency.of, counts(&latency.histogram)));
    }
    Ok(times)
}

impl Trial<'_> {
    /// The limited times in ascending order, with their frequencies: response times where requests had intended starts, otherwise
    /// service times. Syncs have no intended starts.
    fn counts(&self, of: Requests) -> Vec<(f64, u64)> {
        let quantity = self.quantity(of);
        let wanted = |latency: &LatencyOf| {
            let is_of = match of {
                Requests::All => latency.operation != Operation::Sync,
                Requests::Reads => latency.operation == Operation::Read,
                Requests::Writes => latency.operation == Operation::Write,
                Requests::Syncs => latency.operation == Operation::Sync,
            };
            latency.quantity == quantity && is_of
        };
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (_, times) in self.times.iter().filter(|(of, _)| wanted(of)) {
            for (ns, count) in times {
                let all = counts.entry(*ns).or_default();
                *all = all.saturating_add(*count);
            }
        }
        // Requests that were due and never issued have waited longer than all others.
        let left_out = self.left_out(of);
        if left_out > 0 {
            let longest = self.sample.elapsed_ns.max(1);
            let all = counts.entry(longest).or_default();
            *all = all.saturating_add(left_out);
        }
        let counts = counts.into_iter();
        counts.map(|(ns, count)| (ns as f64, count)).collect()
    }

    /// Kind of time that the level limits: service or response.
    fn quantity(&self, of: Requests) -> RequestTime {
        match (of, self.sample.rate_report) {
            (Requests::Syncs, _) | (_, None) => RequestTime::Service,
            _ => RequestTime::Response,
        }
    }

    /// Number of requests that were due and never issued, where they count.
    fn left_out(&self, of: Requests) -> u64 {
        let counts = self.quantity(of) == RequestTime::Response;
        let report = self.sample.rate_report.filter(|_| counts);
        report.map_or(0, |report| report.abandoned(self.sample.requests()))
    }

    /// Number of requests of a kind, and of their bytes.
    fn done(&self, of: Requests) -> (u64, u64) {
        let operations = &self.sample.operations;
        let own = match of {
            Requests::All => return (self.sample.requests(), self.sample.bytes()),
            Requests::Reads => &operations.read,
            Requests::Writes => &operations.write,
            Requests::Syncs => return (operations.sync.requests, 0),
        };
        (own.requests, own.bytes)
    }

    /// The rate of a kind of requests, per second or in MB/s.
    fn rate(&self, level: &ServiceLevel) -> f64 {
        let amount = match (level.quantity, self.done(level.of)) {
            (LevelQuantity::Throughput, (_, bytes)) => bytes as f64 / 1e6,
            (_, (requests, _)) => requests as f64,
        };
        amount * 1e9 / self.sample.elapsed_ns.max(1) as f64
    }
}

/// Whether a single trial meets all levels, before doubts. A trial without requests meets none.
pub fn keeps(levels: &[ServiceLevel], sample: &Sample, times: Times) -> bool {
    let trial = Trial { sample, times };
    let value = |level: &ServiceLevel| of_trial(level, &trial, &trial.counts(level.of));
    levels.iter().all(|level| is_within(level, value(level)))
}

/// Whether the limited quantity of a trial meets the level.
fn is_within(level: &ServiceLevel, value: f64) -> bool {
    match level.bound {
        Bound::Below(_) => value < level.limit(),
        Bound::Above(_) => value > level.limit(),
    }
}

/// Judges a level by the trials of a cell. If the limited quantity changes permanently, the level must hold
/// before and after.
pub fn judge(level: &ServiceLevel, evidence: &Evidence<'_>) -> Judged {
    let trials = evidence.trials.iter();
    let trials: Vec<Counted<'_>> = trials
        .map(|trial| {
            let counts = trial.counts(level.of);
            let value = of_trial(level, trial, &counts);
            (trial, counts, value)
        })
        .collect();
    let values: Vec<f64> = trials.iter().map(|(.., value)| *value).collect();
    let changes = changes(&values);
    let bounds = [&[0], &*changes, &[trials.len()]].concat();
    let of = |part: &[Counted<'_>]| of_part(level, part, evidence.seed);
    let parts = bounds.windows(2).map(|ends| of(&trials[ends[0]..ends[1]]));
    let worst = parts.max_by_key(|part| severity(part.answer));
    // Reports all trials together if every part holds, otherwise the part that does not.
    let worst = worst.filter(|part| part.answer != Answer::Yes && !changes.is_empty());
    let mut judged = worst.unwrap_or_else(|| of(&trials));
    judged.change = changes.last().and_then(|at| {
        let before = &evidence.trials[..*at];
        Some(Change {
            after_ns: sum(before.iter().map(|t| t.sample.elapsed_ns)),
            after_bytes: sum(before.iter().map(|t| t.sample.bytes())),
            from: median(&values[..*at])?,
            to: median(&values[*at..])?,
        })
    });
    judged
}

/// The combined answer: no if any is no, otherwise "cannot tell" if any is.
pub fn merge_answers(answers: impl IntoIterator<Item = Answer>) -> Answer {
    let worst = answers.into_iter().max_by_key(|answer| severity(*answer));
    worst.unwrap_or(Answer::CannotTell)
}

fn severity(answer: Answer) -> u8 {
    match answer {
        Answer::Yes => 0,
        Answer::CannotTell => 1,
        Answer::No => 2,
    }
}

/// Saturates, since a damaged file may have any numbers.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn all_of(counts: &[(f64, u64)]) -> u64 {
    sum(counts.iter().map(|(_, n)| *n))
}

/// The limited quantity in one trial; NaN without requests.
fn of_trial(level: &ServiceLevel, trial: &Trial<'_>, counts: &[(f64, u64)]) -> f64 {
    let total = all_of(counts);
    let at = |q: f64| {
        let rank = ((total as f64 * q).ceil() as u64).max(1);
        let mut seen = 0_u64;
        let found = counts.iter().find(|(_, n)| {
            seen = seen.saturating_add(*n);
            seen >= rank
        });
        found.map_or(f64::NAN, |(ns, _)| *ns)
    };
    match level.quantity {
        LevelQuantity::Quantile(q) => at(q),
        LevelQuantity::Max => at(1.0),
        LevelQuantity::Mean => {
            counts.iter().map(|(ns, n)| ns * *n as f64).sum::<f64>() / total.max(1) as f64
        }
        LevelQuantity::Iops | LevelQuantity::Throughput => trial.rate(level),
    }
}

/// The positions at which the values change permanently.
fn changes(values: &[f64]) -> Vec<usize> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    if logs.iter().any(|log| !log.is_finite()) {
        return Vec::new();
    }
    let length = CHANGE.length.max((values.len() / 20).min(LEVEL_MAX));
    lasting_shifts(&logs, &Lasting { length, ..CHANGE }).unwrap_or_default()
}

/// A trial with its limited times, and its limited quantity.
type Counted<'a> = (&'a Trial<'a>, Vec<(f64, u64)>, f64);
/// Judges a level by trials without a change among them.
fn of_part(level: &ServiceLevel, trials: &[Counted<'_>], seed: u64) -> Judged {
    let clusters: Vec<&[(f64, u64)]> = trials.iter().map(|(_, counts, _)| &**counts).collect();
    let values: Vec<f64> = trials.iter().map(|(.., value)| *value).collect();
    let requests = sum(trials.iter().map(|(trial, ..)| trial.done(level.of).0));
    let found = match level.quantity {
        LevelQuantity::Quantile(q) => pooled_quantile(&clusters, q, CONFIDENCE, RESAMPLES, seed),
        LevelQuantity::Mean => pooled_mean(&clusters, CONFIDENCE, RESAMPLES, seed),
        LevelQuantity::Max => greatest(&clusters),
        LevelQuantity::Iops | LevelQuantity::Throughput => rate(&values),
    };
    let missed = values.iter().filter(|value| !is_within(level, **value));
    let mut judged = Judged {
        level: *level,
        estimate: found.map(|found| found.estimate),
        low: found.map(|found| found.low),
        high: found.and_then(|found| found.high),
        requests,
        trials: trials.len(),
        missed: missed.count(),
        answer: Answer::CannotTell,
        open: None,
        change: None,
    };
    (judged.answer, judged.open) = verdict(&judged);
    judged
}

/// The longest time: proves a violation, but is not an upper bound.
fn greatest(clusters: &[&[(f64, u64)]]) -> Option<Pooled> {
    let lasts = clusters.iter().filter_map(|cluster| cluster.last());
    let estimate = lasts.map(|(ns, _)| *ns).reduce(f64::max)?;
    Some(Pooled {
        estimate,
        low: estimate,
        high: None,
    })
}

fn rate(rates: &[f64]) -> Option<Pooled> {
    let interval = mean_interval(rates, CONFIDENCE)?;
    Some(Pooled {
        estimate: iolab_stats::mean(rates)?,
        low: interval.low.max(0.0),
        high: Some(interval.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::DoubtKind;
    use iolab_workload::histogram::new_latency_histogram;

    /// A trial of syncs with these times, ms, and frequencies.
    fn trial(sample: &Sample, times: &[(f64, u64)]) -> Trial<'static> {
        let mut histogram = new_latency_histogram();
        for (ms, count) in times {
            histogram.saturating_record_n((ms * 1e6) as u64, *count);
        }
        let mut sample = Sample {
            elapsed_ns: 1_000_000_000,
            ..sample.clone()
        };
        sample.operations.sync.requests = times.iter().map(|(_, count)| count).sum();
        Trial {
            sample: Box::leak(Box::new(sample)),
            times: vec![(LatencyOf::service(Operation::Sync), counts(&histogram))],
        }
    }

    fn judged(level: &str, trials: &[Vec<(f64, u64)>]) -> Judged {
        let sample = Sample::default();
        let evidence = Evidence {
            trials: trials.iter().map(|times| trial(&sample, times)).collect(),
            seed: 1,
        };
        judge(&level.parse().expect("a level"), &evidence)
    }

    #[test]
    fn values_clearly_on_one_side_decide() {
        let constant = |ms: f64| vec![vec![(ms, 100)]; 12];
        for (ms, answer) in [
            (8.0, Answer::Yes),
            (9.4, Answer::Yes),
            (10.0, Answer::CannotTell),
            (10.4, Answer::CannotTell),
            (12.0, Answer::No),
        ] {
            let found = judged("syncs.p99<10ms", &constant(ms));
            assert_eq!(found.answer, answer, "{found:?}");
            assert_eq!(found.open.is_some(), answer == Answer::CannotTell);
            assert_eq!((found.requests, found.trials), (1200, 12));
        }
        // 83 syncs/s of 12 ms each: far from 500, and from 50.
        assert_eq!(judged("syncs.iops>500", &constant(12.0)).answer, Answer::No);
        assert_eq!(judged("syncs.iops>50", &constant(12.0)).answer, Answer::Yes);
        assert_eq!(
            judged("syncs.max<13ms", &constant(12.0)).answer,
            Answer::Yes
        );
        assert_eq!(judged("syncs.max<11ms", &constant(12.0)).answer, Answer::No);
        assert_eq!(
            judged("syncs.mean<13ms", &constant(12.0)).answer,
            Answer::Yes
        );
    }

    #[test]
    fn tail_of_one_percent_leaves_p99_open() {
        let trials = vec![vec![(2.0, 495), (50.0, 5)]; 20];
        assert_eq!(judged("syncs.p99<10ms", &trials).answer, Answer::CannotTell);
        assert_eq!(judged("syncs.p50<10ms", &trials).answer, Answer::Yes);
        assert_eq!(judged("syncs.p99.9<10ms", &trials).answer, Answer::No);
    }

    #[test]
    fn level_must_hold_before_and_after_a_change() {
        let mut trials = vec![vec![(2.0, 400)]; 30];
        trials.extend(vec![vec![(15.0, 60)]; 10]);
        let found = judged("syncs.p99<10ms", &trials);
        assert_eq!(found.answer, Answer::No, "{found:?}");
        let change = found.change.expect("a change");
        assert_eq!(change.after_ns, 30_000_000_000);
        assert!(change.from < 2.1e6 && change.to > 14.9e6, "{change:?}");
        // The pooled median would hide it.
        let found = judged("syncs.p50<10ms", &trials);
        assert_eq!(found.answer, Answer::No, "{found:?}");
        // A change within the level is reported and harmless.
        let found = judged("syncs.p99<20ms", &trials);
        assert_eq!((found.answer, found.change.is_some()), (Answer::Yes, true));
    }

    /// A cache that lasts for a minute of half an hour: the rest is the sustained level.
    #[test]
    fn short_first_level_is_found_in_long_run() {
        let mut trials = vec![vec![(2.0, 40)]; 75];
        trials.extend(vec![vec![(15.0, 60)]; 1725]);
        let found = judged("syncs.p50<10ms", &trials);
        assert_eq!(
            found.change.map(|change| change.after_ns),
            Some(75_000_000_000)
        );
        trials.reverse();
        assert!(judged("syncs.p50<10ms", &trials).change.is_some());
    }

    #[test]
    fn little_evidence_is_reported_as_such() {
        let found = judged("syncs.p99<10ms", &vec![vec![(2.0, 10)]; 12]);
        assert_eq!((found.answer, found.high), (Answer::CannotTell, None));
        assert_eq!(found.open, Some(DoubtKind::FewRequests));
        let found = judged("syncs.p99<10ms", &vec![vec![(2.0, 1000)]; 5]);
        assert_eq!(found.answer, Answer::CannotTell);
        assert_eq!(found.open, Some(DoubtKind::FewTrials));
        let found = judged("reads.p99<10ms", &vec![vec![(2.0, 1000)]; 12]);
        assert_eq!(found.answer, Answer::CannotTell);
        assert_eq!(found.open, Some(DoubtKind::NoRequest));
        // A violation after the change is reported too.
        let found = judged("syncs.p99<10ms", &vec![vec![(20.0, 20)]; 12]);
        assert_eq!(found.answer, Answer::No, "{found:?}");
    }

    /// No trial of these stalls; more trials exclude rarer stalls, and what a level allows need not be excluded.
    #[test]
    fn yes_states_how_frequent_unseen_stalls_may_be() {
        let unseen = |level: &str, trials: usize| {
            let found = judged(level, &vec![vec![(12.0, 1000)]; trials]);
            assert_eq!(found.answer, Answer::Yes, "{found:?}");
            let unseen = found.unseen_stalls()?;
            assert_eq!(unseen.trials, trials);
            Some((1e4 * unseen.share).round())
        };
        // 1 - 0.05^(1/n).
        assert_eq!(unseen("syncs.p99<20ms", 6), Some(3930.0));
        assert_eq!(unseen("syncs.p99<20ms", 30), Some(950.0));
        assert_eq!(unseen("syncs.p99<20ms", 298), Some(100.0));
        assert_eq!(unseen("syncs.p99<20ms", 299), None);
        assert_eq!(unseen("syncs.p50<20ms", 6), None);
        assert_eq!(unseen("syncs.p90<20ms", 28), Some(1015.0));
        assert_eq!(unseen("syncs.p90<20ms", 29), None);
        assert_eq!(unseen("syncs.mean<20ms", 299), Some(100.0));
        assert_eq!(unseen("syncs.max<20ms", 299), Some(100.0));
        // 1000/s, of which 9.5 % of the trials can take 95.
        assert_eq!(unseen("syncs.iops>900", 30), None);
        assert_eq!(unseen("syncs.iops>910", 30), Some(950.0));
    }

    /// Trials that miss the level count against the bound: `beta.ppf(0.95, k + 1, n - k)` of SciPy.
    #[test]
    fn yes_counts_trials_that_miss_the_level() {
        let unseen = |level: &str, trials: usize, stalled: &[(f64, u64)]| {
            let mut all = vec![vec![(12.0, 1000)]; trials - 1];
            all.push(stalled.to_vec());
            let found = judged(level, &all);
            assert_eq!(found.answer, Answer::Yes, "{found:?}");
            assert_eq!(found.missed, 1);
            let unseen = found.unseen_stalls()?;
            Some((unseen.missed, (1e4 * unseen.share).round()))
        };
        let stalled = [(5000.0, 1000)];
        assert_eq!(unseen("syncs.p99<20ms", 400, &stalled), Some((1, 118.0)));
        assert_eq!(unseen("syncs.p99<20ms", 500, &stalled), None);
        // The trial completes nothing: 1000/s in 29 of 30.
        assert_eq!(unseen("syncs.iops>850", 30, &[]), Some((1, 1486.0)));
        assert_eq!(unseen("syncs.iops>700", 30, &[]), None);
    }

    #[test]
    fn merged_answer_is_no_after_one_no() {
        use Answer::{CannotTell, No, Yes};
        assert_eq!(merge_answers([Yes, Yes]), Yes);
        assert_eq!(merge_answers([Yes, CannotTell]), CannotTell);
        assert_eq!(merge_answers([CannotTell, No, Yes]), No);
        assert_eq!(merge_answers([]), CannotTell);
    }
}
