//! The length of trials that judge service levels: long enough for their quantiles, and for the queue to grow at a rate beyond
//! the capacity.

use std::time::Duration;

use iolab_workload::quantity::exact_duration;
use iolab_workload::service_level::{Requests, ServiceLevel, ServiceLevels};
use iolab_workload::trial::{SyncPolicy, TrialSpec};
use iolab_workload::units::{budget_to_recommend, format_duration};
use iolab_workload::{Error, Result};

use super::Experiment;
use crate::cells::unchecked;

/// Trials are long enough to fail at a rate this far beyond the capacity: half the distance of two rates of a search.
const OVERLOAD: f64 = 0.02;
/// Every trial is long enough to fail at a rate this far beyond the capacity.
const OVERLOAD_MAX: f64 = 0.25;
/// Number of trials of full length in the budget of a search.
const SEARCH: u32 = 40;
/// Fewest trials of a search; they may be shorter.
const SEARCH_MIN: u32 = 12;
/// Fewest trials for each rate of a run that judges levels at given rates.
const CELL: u32 = 12;
const CELL_MIN: u32 = 7;

impl Experiment {
    /// The length of a trial at its rate: at least the time of the settings, and longer if the levels of the run need it.
    /// `None` without levels, rate or time.
    pub fn trial_time(&self, trial: &TrialSpec) -> Option<Duration> {
        let levels = self.levels()?;
        let shortest = trial.limit.time?;
        let rate = trial.rate?.per_second(trial.mean_request());
        let (many, _) = self.trials_paid();
        let longest = |time: &dyn Fn(&ServiceLevel) -> Duration| {
            let times = levels.all().iter().map(time);
            times.max().unwrap_or_default()
        };
        let requests = |level: &ServiceLevel, n: f64| {
            let share = share(level.of, trial);
            if share <= 0.0 {
                // No length gives a trial requests that the workload does not issue.
                return Duration::ZERO;
            }
            Duration::try_from_secs_f64(n / (rate * share)).unwrap_or(Duration::MAX)
        };
        let enough = longest(&|level| {
            let requests = requests(level, level.requests_enough());
            requests.max(level.time_to_notice(OVERLOAD))
        });
        let needed = longest(&|level| {
            let notice = level.time_to_notice(OVERLOAD_MAX);
            match self.seek {
                Some(_) => notice.max(requests(level, level.requests_min())),
                // The requests of all trials at a rate are judged together, so that each trial need only be long enough for the
                // queue.
                None => notice,
            }
        });
        let time = enough.min(self.design.budget / many).max(needed);
        Some(shortest.max(rounded_up(time)))
    }

    /// The lowest rate that a search visits, requests/s: at lower ones the trials in the budget have too few requests.
    ///
    /// # Errors
    ///
    /// Errors of [`Experiment::base`].
    pub fn least_rate(&self) -> Result<u64> {
        let trial = self.base()?.trial;
        let time = (self.design.budget / SEARCH_MIN).as_secs_f64();
        let levels = self.levels().map_or(&[][..], ServiceLevels::all);
        let least = |level: &ServiceLevel| level.requests_min() / (share(level.of, &trial) * time);
        let rates = levels.iter().map(least);
        Ok(rates.fold(1.0, f64::max).ceil() as u64)
    }

    /// Refuses levels for a kind of request that is not issued, and bounds that need a longer budget.
    pub(super) fn check_levels(&self) -> Result<()> {
        let Some(levels) = self.levels() else {
            return Ok(());
        };
        let cells = unchecked(self, None)?;
        let lacks = |level: &&ServiceLevel| {
            let mut shares = cells.iter().map(|cell| share(level.of, &cell.spec.trial));
            shares.all(|share| share == 0.0)
        };
        if let Some(level) = levels.all().iter().find(lacks)
            && self.groups.is_empty()
        {
            let hint = match level.of {
                Requests::Reads => "leave it out, or have some: --set read_percent=70",
                Requests::Writes => "leave it out, or have some: --set read_percent=0",
                _ => "leave it out, or have some: --set read_percent=0 --set sync=fdatasync",
            };
            let none = format!("the level {level}: the experiment has no {}", level.of);
            return Err(Error::usage(none).hint(hint));
        }
        let mut trials = cells.iter().flat_map(|cell| cell.spec.trials());
        if self.seek.is_none() && trials.all(|trial| trial.rate.is_none()) {
            // Without a rate no queue grows, and trials keep the length of the settings.
            return Ok(());
        }
        let (_, few) = self.trials_paid();
        let late =
            |level: &&ServiceLevel| level.time_to_notice(OVERLOAD_MAX) > self.design.budget / few;
        match levels.all().iter().find(late) {
            Some(level) => {
                let time = rounded_up(level.time_to_notice(OVERLOAD_MAX));
                Err(Error::usage(format!(
                    "the level {level} takes trials of {} at least, and the budget of {} does not pay for {few}",
                    exact_duration(time),
                    exact_duration(self.design.budget)
                ))
                .hint(format!(
                    "--budget {}",
                    format_duration(budget_to_recommend(time.saturating_mul(few)))
                )))
            }
            None => Ok(()),
        }
    }

    /// The levels that the run is about.
    fn levels(&self) -> Option<&ServiceLevels> {
        self.seek.as_ref().or(self.hold.as_ref())
    }

    /// Number of trials in the budget: of full length, and of the shortest length.
    fn trials_paid(&self) -> (u32, u32) {
        if self.seek.is_some() {
            return (SEARCH, SEARCH_MIN);
        }
        let levels = self.factors.iter().map(|factor| factor.levels.len() as u32);
        let cells = levels.fold(1, u32::saturating_mul).max(1);
        (CELL.saturating_mul(cells), CELL_MIN.saturating_mul(cells))
    }
}

/// The share of the requests of a trial that are of a kind; for syncs, their number per request.
fn share(of: Requests, trial: &TrialSpec) -> f64 {
    let reads = f64::from(trial.read_percent) / 100.0;
    match of {
        Requests::All => 1.0,
        Requests::Reads => reads,
        Requests::Writes => 1.0 - reads,
        Requests::Syncs if trial.sync.follows_writes() => {
            (1.0 - reads) / f64::from(trial.sync_every.max(1))
        }
        // Every trial has one sync at its end, whatever its length.
        Requests::Syncs if trial.sync == SyncPolicy::End && reads < 1.0 => 1.0,
        Requests::Syncs => 0.0,
    }
}

/// Rounds up to hundredths of a second.
fn rounded_up(time: Duration) -> Duration {
    let hundredths = time.as_nanos().div_ceil(10_000_000);
    Duration::from_millis(u64::try_from(hundredths * 10).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_workload::trial::Rate;

    fn asked(levels: &str, sets: &[&str], given: &[&str]) -> Result<Experiment> {
        let mut experiment = Experiment::find("load-latency").expect("built in");
        for set in sets {
            experiment.apply_set(set).expect(set);
        }
        let levels = levels.parse().expect("levels");
        experiment.answer(&levels, &|name| given.contains(&name))?;
        Ok(experiment)
    }

    fn seconds(experiment: &Experiment, rate: u64) -> f64 {
        let mut trial = experiment.base().expect("settings").trial;
        trial.rate = Some(Rate::Requests(rate));
        let time = experiment.trial_time(&trial).expect("a time");
        time.as_secs_f64()
    }

    #[test]
    fn trials_last_as_long_as_their_level_needs() {
        // 50 s suffice for 40 trials of 1.25 s.
        for (levels, rate, time) in [
            ("p99<1ms", 100_000, 0.5),
            ("p99<1ms", 1000, 0.5),
            ("p99<1ms", 300, 1.23),
            // The number of requests that the quantile needs.
            ("p99<1ms", 50, 2.0),
            ("p99.9<1ms", 1000, 1.25),
            ("p99.9<1ms", 500, 2.0),
            // A queue that grows by 2 % takes this long to reach the bound.
            ("p99<10ms", 100_000, 0.51),
            ("p50<10ms", 100_000, 1.0),
            // A queue that grows by 25 %, if the budget does not suffice for more.
            ("p50<300ms", 100_000, 2.4),
            ("p99<1ms,p50<10ms", 100_000, 1.0),
        ] {
            let experiment = asked(levels, &[], &[]).expect(levels);
            let found = seconds(&experiment, rate);
            assert!(
                (found - time).abs() < 0.001,
                "{levels} at {rate}: {found} s"
            );
        }
        let mixed = |levels: &str, sets: &[&str]| seconds(&asked(levels, sets, &[]).unwrap(), 1000);
        assert_eq!(mixed("reads.p99<1ms", &["read_percent=50"]), 0.74);
        let syncs = ["read_percent=50", "sync=fdatasync", "sync_every=2"];
        assert_eq!(mixed("syncs.p99<1ms", &syncs), 1.25);
        // The length that the user asks for is the minimum.
        let long = asked("p99<1ms", &["time=2s"], &["time"]).unwrap();
        assert_eq!(seconds(&long, 1000), 2.0);
    }

    #[test]
    fn at_given_rates_all_requests_count_together() {
        let given = |levels, rates| asked(levels, &[rates], &["rate"]).unwrap();
        assert_eq!(seconds(&given("p99<1ms", "rate=100,200"), 100), 2.09);
        assert_eq!(seconds(&given("p99<1ms", "rate=50"), 50), 4.17);
        assert_eq!(seconds(&given("p99<500ms", "rate=50"), 50), 4.17);
    }

    #[test]
    fn the_least_rate_gives_enough_requests_within_budget() {
        let least = |levels: &str| asked(levels, &[], &[]).unwrap().least_rate().unwrap();
        assert_eq!((least("p99<1ms"), least("p99.9<1ms")), (25, 241));
        assert_eq!((least("p50<1ms"), least("max<1ms")), (1, 1));
    }

    #[test]
    fn levels_apply_to_cells_with_such_requests() {
        let answered = |levels: &str, sets: &[&str], given: &[&str]| {
            let mut experiment = Experiment::find("disk-grid").expect("built in");
            for set in sets {
                experiment.apply_set(set).expect(set);
            }
            let levels = levels.parse().expect("levels");
            experiment.answer(&levels, &|name| given.contains(&name))?;
            Ok::<_, Error>(experiment)
        };
        let sets = ["rate=500", "time=1s"];
        let experiment = answered("writes.p99<5ms", &sets, &["rate"]).expect("workload has writes");
        let cells = crate::cells::cells(&experiment).expect("cells");
        assert!(cells.iter().any(|cell| cell.spec.trial.writes()));
        let only = ["rate=500", "workload=RS,RR"];
        let error = answered("writes.p99<5ms", &only, &["rate"]).expect_err("reads alone");
        insta::assert_snapshot!(error.message(), @"the level writes.p99<5ms: the experiment has no writes");
        // Reads are not affected by the bound on writes, and keep the length of the setting.
        let reads = cells.iter().find(|cell| !cell.spec.trial.writes());
        let time = experiment.trial_time(&reads.expect("reads").spec.trial);
        assert_eq!(time, Some(Duration::from_secs(1)));
    }

    #[test]
    fn closed_loop_levels_accept_any_trial_length() {
        let mut experiment = Experiment::find("read-random").expect("built in");
        experiment.hold = Some("p50<10s".parse().expect("a level"));
        experiment.check().expect("no queue grows");
        let error = experiment.apply_set("rate=100");
        let error = error.expect_err("a queue takes long to show");
        insta::assert_snapshot!(error.message(), @"--set rate=100: the level p50<10s takes trials of 80 s at least, and the budget of 90 s does not pay for 112");
    }

    #[test]
    fn unanswerable_levels_are_refused() {
        for (levels, sets, part) in [
            ("syncs.p99<1ms", &[][..], "no syncs"),
            ("writes.p99<1ms", &[], "no writes"),
            ("reads.p99<1ms", &["read_percent=0"], "no reads"),
            ("syncs.p99<1ms", &["read_percent=0"], "no syncs"),
            ("p99<10s", &[], "does not pay for 12"),
        ] {
            for rates in [&[][..], &["rate"]] {
                let mut sets = sets.to_vec();
                sets.extend(rates.iter().map(|_| "rate=100"));
                let error = asked(levels, &sets, rates).expect_err(levels);
                let expected = part.replace("12", if rates.is_empty() { "12" } else { "7" });
                assert!(error.message().contains(&expected), "{error}");
                assert!(error.remedy().is_some(), "{error}");
            }
        }
        assert!(asked("syncs.max<100ms", &["read_percent=0", "sync=end"], &[]).is_ok());
        let mut closed = Experiment::find("read-random").expect("built in");
        closed.hold = Some("p99<10s".parse().expect("a level"));
        assert!(closed.check().is_ok(), "nothing falls behind");
    }
}
