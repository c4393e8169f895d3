//! One long trial of each cell, from its beginning on.

use std::time::Duration;

use iolab_workload::tool::Tool;
use iolab_workload::units::format_duration;
use iolab_workload::{Error, Result};

use super::{BUDGET_MAX, Change, Experiment, WarmUp};
use crate::cells::cells;

/// Limits that would end a trial before its time.
const LIMITS: [&str; 2] = ["bytes", "requests"];

impl Experiment {
    /// Makes one trial of this length of each cell, without a warm-up, and keeps its latency over time. `asked` tells which settings and
    /// entries of the design the user has chosen; these stay. Returns notes about what else it sets.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): programs or other tools, a search for a rate, a limit that ends trials earlier,
    /// more than 30 days in all.
    pub fn soak(&mut self, time: Duration, asked: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
        let said = format!("--soak {}", format_duration(time));
        let within = |error: Error| error.within(said.clone());
        self.check_soak().map_err(within)?;
        let mut changes = vec![
            Change::of_option("time", &format_duration(time), said.clone())?,
            Change::of_option("warmup", WarmUp::None.name(), said.clone())?,
            Change::of_option("pilot", "false", said.clone())?,
        ];
        if !asked("trials_max") && !asked("trials_min") {
            changes.push(Change::of_option("trials_min", "1", said.clone())?);
            changes.push(Change::of_option("trials_max", "1", said.clone())?);
        }
        let mut notes = Vec::new();
        for limit in LIMITS.into_iter().filter(|limit| !asked(limit)) {
            let mut given = self.values(limit).filter(|value| *value != "none");
            if let Some(value) = given.next() {
                notes.push(format!(
                    "{said} sets {limit}=none: {limit}={value} ends trials before their time"
                ));
                changes.push(Change::of_option(limit, "none", said.clone())?);
            }
        }
        let latency = "latency_over_time";
        if !asked(latency) && !self.ever("latency", |value| value == "false") {
            changes.push(Change::of_option(latency, "true", said.clone())?);
        }
        self.apply_all(&changes)?;
        let cells = cells(self)?;
        let trials = cells.iter().flat_map(|cell| cell.spec.trials());
        if trials
            .into_iter()
            .any(|trial| trial.requests_bound().is_some())
        {
            return Err(Error::usage("a limit ends its trials before their time")
                .hint("set bytes=none, requests=none and fresh=false, also for each group"))
            .map_err(within);
        }
        if !asked("budget") {
            let trials = cells.len() as u32 * self.design.trials_max;
            let budget = time.saturating_mul(trials);
            if budget > BUDGET_MAX {
                return Err(within(
                    Error::usage(format!(
                        "{trials} trials of {} are more than {}",
                        format_duration(time),
                        format_duration(BUDGET_MAX)
                    ))
                    .hint("choose a shorter time or fewer levels: --set NAME=VALUE"),
                ));
            }
            self.apply(&Change::of_option(
                "budget",
                &format_duration(budget),
                said.clone(),
            )?)?;
        }
        Ok(notes)
    }

    fn check_soak(&self) -> Result<()> {
        if self.runs_programs() {
            return Err(Error::usage("a program decides how long it runs")
                .hint("give an experiment that issues requests"));
        }
        if self.ever("tool", |tool| tool != Tool::IOLAB.name()) {
            return Err(
                Error::usage("another tool keeps no course of a trial over time")
                    .hint("leave --peer out, or set tool=iolab"),
            );
        }
        if self.seek.is_some() || self.hold.is_some() {
            return Err(Error::usage(
                "the experiment asks for service levels, which takes several trials",
            )
            .hint("give the time of its trials with --time"));
        }
        Ok(())
    }
}
