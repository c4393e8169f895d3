//! The search for the highest rate at which service levels hold.

use std::time::Duration;

use iolab_workload::service_level::ServiceLevels;
use iolab_workload::settings::Setting;
use iolab_workload::tool::Tool;
use iolab_workload::trial::{RATE_MAX, Rate};
use iolab_workload::units::format_duration;
use iolab_workload::usage_errors;
use iolab_workload::{Error, Result};

use super::{Change, Experiment, WarmUp};

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
