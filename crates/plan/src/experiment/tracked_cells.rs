//! Cells that are measured again and again: `[[track]]` names those that decide whether rounds are steady, `--soak` makes one
//! long trial of each.
//!
//! `[[only]]`: the combinations of levels to measure, if not all are.

use std::collections::HashSet;
use std::time::Duration;

use super::{BUDGET_MAX, CELLS_MAX, Change, Combination, Experiment, GroupSetting, WarmUp};
use crate::cells::cells;
use crate::experiment::document::{DocumentText, Entries};
use iolab_workload::settings::{CellSpec, Tool};
use iolab_workload::units::format_duration;
use iolab_workload::{Error, Result, usage_errors};

/// Most tables `[[track]]`.
const TRACK_MAX: usize = 100;

/// Whether a cell has the settings of a row.
fn has(cell: &CellSpec, row: &Combination) -> bool {
    let mut levels = row.iter();
    levels.all(|(of, level)| of.setting.get(cell) == *level)
}

impl Experiment {
    /// Indices of the tracked cells: cells with the settings of a combination in `track`, or all cells if none has them.
    pub fn tracked<'a>(&self, cells: impl IntoIterator<Item = &'a CellSpec>) -> Vec<usize> {
        let cells: Vec<&CellSpec> = cells.into_iter().collect();
        let named = cells.iter().enumerate();
        let named = named.filter(|(_, cell)| self.track.iter().any(|row| has(cell, row)));
        let named: Vec<usize> = named.map(|(place, _)| place).collect();
        match named.is_empty() {
            true => (0..cells.len()).collect(),
            false => named,
        }
    }

    /// The longest time of its trials: the budget, or the time of all rounds, of a soak's single trials or of counted
    /// trials if that is shorter.
    pub fn time_at_most(&self) -> Duration {
        if self.design.seeks_precision() && !self.design.is_counted() {
            return self.design.budget;
        }
        let cells = cells(self).unwrap_or_default();
        let mut times = cells.iter().map(|cell| cell.spec.time_foreseen());
        let round = times.try_fold(Duration::ZERO, |sum, time| Some(sum.saturating_add(time?)));
        self.design.time_at_most(round)
    }

    /// Reads `[[track]]`.
    pub(super) fn read_track(
        &mut self,
        source: &DocumentText<'_>,
        tables: &[Entries],
    ) -> Result<()> {
        if tables.len() > TRACK_MAX {
            return Err(Error::usage(format!("{} tables [[track]]", tables.len()))
                .hint(format!(
                    "name at most {TRACK_MAX}, or leave all out to track every cell"
                ))
                .within(source.name));
        }
        let rows = tables.iter().map(|table| {
            table.levels(source, |of, _| match &of.group {
                None => Ok(()),
                Some(_) => Err(Error::usage(format!("{of} is a setting of a group"))
                    .hint("[[track]] names cells by settings of the whole trial")),
            })
        });
        self.track = rows.collect::<Result<_>>()?;
        Ok(())
    }

    /// Refuses rows of `[[track]]` that name no setting, or settings that no cell of a definition has.
    pub(super) fn check_track(&self) -> Result<()> {
        let cells = match self.track.is_empty() {
            true => return Ok(()),
            // A missing cell is reported with the plan.
            false => cells(self).unwrap_or_default(),
        };
        let hint = "name settings of a cell as [factors] and [settings] have them, or leave all [[track]] out to track every cell";
        for row in &self.track {
            let levels: Vec<String> = row
                .iter()
                .map(|(of, level)| format!("{of}={level}"))
                .collect();
            if levels.is_empty() {
                return Err(Error::usage("[[track]] names no setting").hint(hint));
            }
            if !cells.is_empty() && !cells.iter().any(|cell| has(&cell.spec, row)) {
                return Err(
                    Error::usage(format!("[[track]]: no cell has {}", levels.join(", ")))
                        .hint(hint),
                );
            }
        }
        Ok(())
    }

    /// Refuses settings that continue after blocks by themselves, and settings without effect unless there are rounds of
    /// all cells.
    pub(super) fn check_rounds(&self) -> Result<()> {
        let precondition = self.design.precondition;
        if precondition.rounds_of_cells().is_none() {
            let without = [
                (!self.track.is_empty(), "[[track]]"),
                (self.standard.is_some(), "standard"),
            ];
            return match without.into_iter().find(|(given, _)| *given) {
                None => Ok(()),
                Some((_, name)) => Err(Error::usage(format!(
                    "{name} without rounds of all cells, precondition={precondition}"
                ))
                .hint("end the precondition with steady:round=cells, or copy the experiment and leave it out")),
            };
        }
        let others = [
            (
                self.runs_programs(),
                "a program decides itself what it does",
            ),
            (
                self.seek.is_some(),
                "service levels (--slo) choose a rate after each trial",
            ),
            (
                self.hold.is_some(),
                "service levels (--slo) are judged over blocks",
            ),
            (self.inquiry.is_some(), "a cause is found from blocks"),
        ];
        match others.into_iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, why)) => Err(Error::usage(format!(
                "precondition={precondition} makes rounds of all cells, but {why}"
            ))
            .hint("choose another precondition: seq:1+rand:2, steady")),
        }
    }
}

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
        let change = |(name, value): (&str, &str)| Change::of_option(name, value, said.clone());
        let length = format_duration(time);
        let mut changes = vec![("time", length.as_str()), ("warmup", WarmUp::None.name())];
        if !asked("trials_max") && !asked("trials_min") {
            changes.extend([("trials_min", "1"), ("trials_max", "1")]);
        }
        let mut notes = Vec::new();
        let bound = self.values("bytes").find(|value| *value != "none");
        if let Some(value) = bound.filter(|_| !asked("bytes")) {
            notes.push(format!(
                "{said} sets bytes=none: bytes={value} ends trials before their time"
            ));
            changes.push(("bytes", "none"));
        }
        let latency = "latency_over_time";
        if !asked(latency) && !self.ever("latency", |value| value == "false") {
            changes.push((latency, "true"));
        }
        let changes: Vec<Change> = changes.into_iter().map(change).collect::<Result<_>>()?;
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
            self.apply(&change(("budget", &format_duration(budget)))?)?;
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

impl Experiment {
    /// Measures only these combinations of their settings. A setting with the same level in all of them is fixed, the others
    /// become factors; further factors are crossed with the combinations.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a value that a setting does not take; combinations that list different
    /// settings; too many combinations.
    pub fn list(&mut self, combinations: &[Combination]) -> Result<()> {
        let mut rows: Vec<Combination> = Vec::new();
        for combination in combinations {
            let canonical = |(of, level): &(GroupSetting, String)| {
                Ok((of.clone(), of.setting.canonical(level)?))
            };
            let row = combination
                .iter()
                .map(canonical)
                .collect::<Result<Combination>>()?;
            if rows
                .first()
                .is_some_and(|first| !lists_the_same(first, &row))
            {
                return Err(Error::usage("the combinations list different settings")
                    .hint("give each of them the same settings"));
            }
            rows.push(row);
        }
        let rows = each_once(rows);
        if rows.len() > CELLS_MAX {
            return Err(Error::usage(format!("{} combinations", rows.len()))
                .hint(format!("list at most {CELLS_MAX}")));
        }
        let settings: Vec<GroupSetting> = rows.first().map_or(Vec::new(), |row| {
            row.iter().map(|(of, _)| of.clone()).collect()
        });
        let mut product: usize = 1;
        for (place, setting) in settings.into_iter().enumerate() {
            let mut levels: Vec<String> = Vec::new();
            for (_, level) in rows.iter().filter_map(|row| row.get(place)) {
                if !levels.contains(level) {
                    levels.push(level.clone());
                }
            }
            product = product.saturating_mul(levels.len());
            self.sweep(setting, &levels)?;
        }
        // The factors alone describe a complete list.
        self.only = if rows.len() < product {
            rows
        } else {
            Vec::new()
        };
        self.forget_what_does_not_vary();
        Ok(())
    }

    /// The experiment without the listed combinations that write; `None` if none is left.
    ///
    /// # Errors
    ///
    /// None for a checked experiment.
    pub fn reads_alone(&self) -> Result<Option<Self>> {
        let reads = |row: &&Combination| {
            let mut row = row.iter();
            row.any(|(of, level)| of.is("workload") && level.starts_with('R'))
        };
        let rows: Vec<Combination> = self.only.iter().filter(reads).cloned().collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let mut experiment = self.clone();
        experiment.list(&rows)?;
        Ok(Some(experiment))
    }

    /// Removes a setting from the combinations because it gets other levels, which are crossed with the remaining settings.
    pub(super) fn release(&mut self, of: &GroupSetting) {
        for row in &mut self.only {
            row.retain(|(listed, _)| listed != of);
        }
        self.merge_rows();
    }

    /// Removes settings from the combinations that are no longer factors.
    pub(super) fn forget_what_does_not_vary(&mut self) {
        let factors = &self.factors;
        for row in &mut self.only {
            row.retain(|(listed, _)| factors.iter().any(|factor| factor.of == *listed));
        }
        self.merge_rows();
    }

    fn merge_rows(&mut self) {
        self.only = each_once(self.only.drain(..).filter(|row| !row.is_empty()));
    }

    /// Whether a factor is listed in the combinations instead of crossed with them.
    pub(super) fn is_listed(&self, of: &GroupSetting) -> bool {
        self.only
            .first()
            .is_some_and(|row| row.iter().any(|(listed, _)| listed == of))
    }

    /// Whether a cell with these levels, one for each factor, is the same as an earlier one except for the level of this setting.
    pub(crate) fn repeats(&self, name: &str, levels: &[String]) -> bool {
        let mut factors = self.factors.iter().zip(levels);
        let Some((factor, level)) = factors.find(|(factor, _)| factor.of.is(name)) else {
            return false;
        };
        if !self.is_listed(&factor.of) {
            return factor.levels.first() != Some(level);
        }
        let has = |(of, level): &(GroupSetting, String)| {
            let mut factors = self.factors.iter().zip(levels);
            factors.any(|(factor, own)| factor.of == *of && own == level)
        };
        let own = self.only.iter().position(|row| row.iter().all(has));
        let before = &self.only[..own.unwrap_or(0)];
        let differs_there = |row: &Combination| {
            let mut others = row.iter().filter(|(of, _)| !of.is(name));
            others.all(has)
        };
        before.iter().any(differs_there)
    }

    /// Reads `[[only]]`, whose settings are factors already.
    pub(super) fn read_only(
        &mut self,
        source: &DocumentText<'_>,
        tables: &[Entries],
    ) -> Result<()> {
        let mut rows = Vec::with_capacity(tables.len());
        for table in tables {
            let row = table.levels(source, |of, level| {
                let factor = self.factors.iter().find(|factor| factor.of == *of);
                match factor.is_some_and(|factor| factor.levels.contains(level)) {
                    true => Ok(()),
                    false => Err(Error::usage(format!(
                        "{level} is not a level of the factor {of}"
                    ))
                    .hint(
                        "list all levels in [factors]; [[only]] says which combinations are cells",
                    )),
                }
            })?;
            rows.push(row);
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.list(&rows).map_err(|error| error.within(source.name))
    }
}

/// The combinations without duplicates.
fn each_once(rows: impl IntoIterator<Item = Combination>) -> Vec<Combination> {
    let mut seen = HashSet::new();
    let key = |row: &Combination| -> Vec<(String, String)> {
        let listed = row.iter();
        listed
            .map(|(of, level)| (of.to_string(), level.clone()))
            .collect()
    };
    rows.into_iter()
        .filter(|row| seen.insert(key(row)))
        .collect()
}

fn lists_the_same(one: &Combination, other: &Combination) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.0 == b.0)
}
