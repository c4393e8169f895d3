//! `[[only]]`: the combinations of levels to measure, if not all are.

use std::collections::HashSet;

use iolab_workload::{Error, Result};

use super::{CELLS_MAX, Combination, Experiment, GroupSetting};
use crate::experiment::document::{DocumentText, Entries};

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
