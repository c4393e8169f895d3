//! The search for the highest rate at which service levels hold.
//!
//! The length of trials that judge service levels: long enough for their quantiles, and for the queue to grow at a rate beyond
//! the capacity.

use std::time::Duration;

use super::{Change, Experiment, WarmUp};
use crate::cells::unchecked;
use iolab_workload::service_level::{Requests, ServiceLevel, ServiceLevels};
use iolab_workload::settings::{Setting, Tool};
use iolab_workload::trial::{RATE_MAX, Rate, SyncPolicy, TrialSpec};
use iolab_workload::units::{budget_to_recommend, exact_duration, format_duration};
use iolab_workload::{Error, Result, usage_errors};

/// The setting that the search varies.
const RATE: &str = "rate";

/// The first rate of a search if the experiment names none, requests/s.
const START: u64 = 1000;

/// Shortest trial of a search. Many short trials determine a rate better than few long ones. But in shorter trials than at
/// a rate that the user names, the queue stays shorter, and a rate may pass that fails there.
const TIME: Duration = Duration::from_millis(500);

/// Shortest trial if the budget does not suffice for [`TRIALS`] of the above.
const TIME_MIN: Duration = Duration::from_millis(250);

const TRIALS: u32 = 100;

/// Default budget of an answer about levels, so that all of it takes less than a minute.
const BUDGET: &str = "50s";

/// Precision of a trial's median if levels are judged at given rates. Low, so that the trials use up the budget: levels are
/// judged by all requests, not by the median.
const PRECISION: f64 = 0.01;

impl Experiment {
    /// Makes the run answer whether these levels hold at the rates that the user names, or, without rates, up to which rate they
    /// hold. `is_given` says whether the user chose a setting, or the budget.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): as [`Experiment::seek`], or levels for a kind of request that the
    /// workload does not issue.
    pub fn answer(
        &mut self,
        levels: &ServiceLevels,
        is_given: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        usage_errors! {
            self.design.precondition.rounds_of_cells().is_some() =>
                format!("precondition={} does not go with service levels, which are judged over blocks", self.design.precondition),
                "choose another precondition: seq:1+rand:2, steady; or leave --slo out";
        }
        let at_rates = is_given(RATE);
        if !is_given("budget") {
            self.apply(&Change::of("budget", BUDGET)?)?;
        }
        if !is_given("time") && !at_rates {
            let time = (self.design.budget / TRIALS).clamp(TIME_MIN, TIME);
            self.apply(&Change::of("time", &format_duration(time))?)?;
        }
        if !at_rates {
            return self.seek(levels.clone());
        }
        self.design.precision = self.design.precision.min(PRECISION);
        self.hold = Some(levels.clone());
        self.check()
    }

    /// Makes the run search for the highest rate at which these levels hold, starting at the first rate of the experiment.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): another factor, a level that itself requires a rate, or another tool.
    pub fn seek(&mut self, levels: ServiceLevels) -> Result<()> {
        let first = self.base()?.trial.rate.and_then(Rate::requests);
        let named = self.rates().and_then(|rates| rates[0].parse().ok());
        let start = named.or(first).unwrap_or(START).min(RATE_MAX / 2);
        let rate =
            Setting::find(RATE).ok_or_else(|| Error::failed("there is no setting 'rate'"))?;
        self.sweep(rate, &[start.to_string(), (2 * start).to_string()])?;
        self.seek = Some(levels);
        self.check()
    }

    /// Refuses searches that cannot be carried out.
    pub(super) fn check_seek(&self) -> Result<()> {
        let Some(levels) = &self.seek else {
            return Ok(());
        };
        if let Some(factor) = self.factors.iter().find(|f| !f.of.is(RATE)) {
            let name = &factor.of;
            return Err(
                Error::usage(format!("a search for a rate, and {name} varies too"))
                    .hint(format!("fix it: --set {name}={}", factor.levels[0])),
            );
        }
        usage_errors! {
            self.rates().is_none() => "a search for a rate has no rates to begin with", "give two: --set rate=1000,2000";
        }
        if let Some(level) = levels.all().iter().find(|level| !level.is_of_time()) {
            return Err(Error::usage(format!(
                "the level {level} bounds a rate, which the search chooses"
            ))
            .hint("bound times: p99<1ms, mean<500us, max<50ms"));
        }
        usage_errors! {
            self.design.warmup == WarmUp::None => "a search for a rate without a warm-up",
                "leave warmup=none out: the first rate is tried on storage that is not warm yet";
            self.ever("tool", |tool| tool != Tool::IOLAB.name()) => "a search for a rate, and another tool is to measure",
                "response times at a rate are iolab's: --set tool=iolab";
        }
        Ok(())
    }

    /// The levels of the factor `rate`; `None` if it does not vary.
    fn rates(&self) -> Option<&[String]> {
        let rates = self.factors.iter().find(|f| f.of.is(RATE))?;
        Some(&rates.levels)
    }

    /// Adds a rate that a search visits, requests/s.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), when there are too many.
    pub fn add_rate(&mut self, rate: u64) -> Result<()> {
        if let Some(factor) = self.factors.first_mut() {
            factor.levels.push(rate.to_string());
        }
        self.check()
    }
}

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
        let rates = levels.iter().filter_map(|level| {
            let share = share(level.of, &trial);
            // No rate gives a trial requests that the workload does not issue.
            (share > 0.0).then(|| level.requests_min() / (share * time))
        });
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
