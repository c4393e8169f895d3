//! A search for the greatest rate at which service levels hold.

use iolab_spec::level::Levels;
use iolab_spec::settings::Setting;
use iolab_spec::trial::RATE_MAX;
use iolab_spec::{Error, Result};

use super::Experiment;

/// Where a search begins when the experiment names no rate, requests/s.
const START: u64 = 1000;

impl Experiment {
    /// Has the run search for the greatest rate at which these levels hold: the rates are the search's, from the first one of
    /// the experiment on.
    ///
    /// # Errors
    /// Of kind usage: something else varies too, or a level is one that a rate is asked for by itself.
    pub fn seek(&mut self, levels: Levels) -> Result<()> {
        let other = self.factors.iter().find(|f| f.setting.name != "rate");
        if let Some(factor) = other {
            let name = factor.setting.name;
            return Err(
                Error::usage(format!("a search for a rate, and {name} varies too"))
                    .hint(format!("fix it: --set {name}={}", factor.levels[0])),
            );
        }
        if let Some(level) = levels.all().iter().find(|level| !level.is_of_time()) {
            return Err(Error::usage(format!(
                "the level {level} bounds a rate, which the search chooses"
            ))
            .hint("bound times: p99<1ms, mean<500us, max<50ms"));
        }
        let first = self.base()?.trial.rate;
        let named = self.factors.first().and_then(|f| f.levels[0].parse().ok());
        let start = named.or(first).unwrap_or(START).min(RATE_MAX / 2);
        let rate =
            Setting::find("rate").ok_or_else(|| Error::failed("there is no setting 'rate'"))?;
        self.sweep(rate, &[start.to_string(), (2 * start).to_string()])?;
        self.seek = Some(levels);
        self.check()
    }

    /// Adds a rate that a search visits.
    ///
    /// # Errors
    /// Of kind usage, when there are too many.
    pub fn add_rate(&mut self, rate: u64) -> Result<()> {
        if let Some(factor) = self.factors.first_mut() {
            factor.levels.push(rate.to_string());
        }
        self.check()
    }
}
