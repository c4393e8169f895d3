//! `--soak`: the experiment with one long trial of each cell, without a warm-up.

use std::time::Duration;

use iolab_workload::tool::Tool;
use iolab_workload::units::format_duration;
use iolab_workload::usage_errors;
use iolab_workload::{Error, Result};

use super::{BUDGET_MAX, Change, Experiment, WarmUp};
use crate::cells::cells;

impl Experiment {
    /// Makes one trial of this length of each cell, without a warm-up, and keeps its latency over time. Settings and
    /// entries of the design for which `asked` holds are the user's and stay. Returns notes about the other ones that it
    /// sets.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): programs or other tools, a search for a rate, a limit that ends
    /// trials earlier, more than 30 days in all.
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
        let bound = self.values("bytes").find(|value| *value != "none");
        if let Some(value) = bound.filter(|_| !asked("bytes")) {
            notes.push(format!(
                "{said} sets bytes=none: bytes={value} ends trials before their time"
            ));
            changes.push(Change::of_option("bytes", "none", said.clone())?);
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
            return Err(within(
                Error::usage("a limit ends its trials before their time")
                    .hint("set bytes=none, also for each group; a file that grows (allocate) ends at its size"),
            ));
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
                    .hint(match trials {
                        1 => "choose a shorter --soak",
                        _ => "choose a shorter --soak, or fewer levels: --set NAME=VALUE",
                    }),
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
        usage_errors! {
            self.runs_programs() => "a program decides how long it runs", "give an experiment that issues requests";
            self.ever("tool", |tool| tool != Tool::IOLAB.name()) => "another tool keeps no course of a trial over time",
                "leave --peer out, or set tool=iolab";
            self.seek.is_some() || self.hold.is_some() => "the experiment asks for service levels, which takes several trials",
                "give the time of its trials with --time";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{OneProcess, Plan};
    use crate::forecast::{Forecast, Writes};

    const HOUR: Duration = Duration::from_secs(3600);

    fn built_in(sets: &[&str]) -> Experiment {
        let mut experiment = Experiment::find("write-size").expect("built in");
        for set in sets {
            experiment.apply_set(set).expect(set);
        }
        experiment
    }

    #[test]
    fn each_cell_has_one_trial_of_announced_length() {
        let mut experiment = built_in(&["bs=4k,64k"]);
        let notes = experiment.soak(HOUR, &|_| false).expect("a soak");
        insta::assert_snapshot!(notes.join("\n"), @"--soak 1h sets bytes=none: bytes=1GiB ends trials before their time");
        let text = experiment.to_toml().expect("TOML");
        let again = Experiment::from_toml(&text, "again").expect("valid");
        assert_eq!(again, experiment);
        let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
        assert!(
            plan.cells()
                .iter()
                .all(|cell| cell.spec.trial.latency_over_time)
        );
        let forecast = Forecast::of(&plan, &|_| Duration::ZERO);
        assert_eq!(forecast.trials, (2, 2));
        assert_eq!(forecast.time, (Some(2 * HOUR), 2 * HOUR));
        assert_eq!(forecast.writes_at(1e6), Writes::Within(7_200_000_000));
        assert_eq!(plan.shortfall(&|_| Duration::ZERO), None);
    }

    #[test]
    fn the_users_choices_stay() {
        let sets = ["bs=4k", "trials_min=3", "latency=false", "budget=1min"];
        let asked = |name: &str| ["trials_min", "budget"].contains(&name);
        let mut experiment = built_in(&sets);
        experiment.soak(HOUR, &asked).expect("a soak");
        let design = experiment.design;
        assert_eq!((design.trials_min, design.budget.as_secs()), (3, 60));
        assert_eq!(design.warmup, WarmUp::None);
        let base = experiment.base().expect("a cell").trial;
        assert!(!base.latency_over_time && base.limit.time == Some(HOUR));
    }

    #[test]
    fn limits_that_end_trials_earlier_are_refused() {
        let soaked = |sets: &[&str], asked: &str| built_in(sets).soak(HOUR, &|name| name == asked);
        soaked(&["rate=100"], "").expect("it ends none");
        let told = [
            (&["bytes=1G"][..], "bytes"),
            (&["sync=each", "allocate=append"], ""),
            (&["tool=fio"], ""),
        ]
        .map(|(sets, asked)| {
            let error = soaked(sets, asked).expect_err(asked);
            assert!(error.remedy().is_some(), "{error}");
            error.message().to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        --soak 1h: a limit ends its trials before their time
        --soak 1h: a limit ends its trials before their time
        --soak 1h: another tool keeps no course of a trial over time
        ");
        let mut many = built_in(&[]);
        let error = many.soak(100 * HOUR, &|_| false).expect_err("too long");
        insta::assert_snapshot!(error.message(), @"--soak 100h: 16 trials of 100h are more than 720h");
    }
}
