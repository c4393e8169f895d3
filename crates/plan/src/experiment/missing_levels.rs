//! Levels that the system at hand does not have: left out of an experiment, or replaced.

use iolab_workload::Result;
use iolab_workload::quantity::exact_size;
use iolab_workload::settings::Setting;
use iolab_workload::units::parse_size;

use super::{Combination, Experiment, Factor, GroupSetting};

/// The change that was made for a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelChange {
    /// No change: the experiment does not have the level, or has nothing else.
    Unchanged,
    /// The level was removed from a factor, with the listed combinations that had it.
    LeftOut,
    /// The level was fixed, and another took its place.
    Replaced,
}

impl Experiment {
    /// Changes the experiment so that it does without a level of a setting. If the setting varies, the level is left out;
    /// if it is fixed, `instead` takes its place.
    ///
    /// # Errors
    ///
    /// As [`Experiment::sweep`].
    pub fn do_without(
        &mut self,
        setting: &'static Setting,
        level: &str,
        instead: Option<&str>,
    ) -> Result<LevelChange> {
        let varied: Vec<GroupSetting> = self
            .factors
            .iter()
            .filter(|factor| {
                factor.of.setting == setting && factor.levels.iter().any(|l| l == level)
            })
            .map(|factor| factor.of.clone())
            .collect();
        let mut done = LevelChange::Unchanged;
        for of in varied {
            if self.leave_out_level(&of, level)? {
                done = LevelChange::LeftOut;
            }
        }
        let groups = self.groups.iter_mut().map(|group| &mut group.settings);
        let fixed = std::iter::once(&mut self.settings).chain(groups);
        for (of, value) in fixed.flatten() {
            if let Some(instead) = instead
                && *of == setting
                && value == level
            {
                *value = setting.canonical(instead)?;
                done = LevelChange::Replaced;
            }
        }
        Ok(done)
    }

    /// Leaves out I/O sizes that are not multiples of a target's `block`, if the experiment follows a standard with sizes
    /// for other drives. Returns a sentence about them, or `None` if nothing is left out. Sizes stay if the user chose
    /// them, for which `is_chosen` holds.
    ///
    /// # Errors
    ///
    /// As [`Experiment::sweep`].
    pub fn leave_out_small_sizes(
        &mut self,
        block: u64,
        is_chosen: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>> {
        if self.standard.is_none() || block == 0 || is_chosen("bs") {
            return Ok(None);
        }
        let Some(setting) = Setting::find("bs") else {
            return Ok(None);
        };
        let is_small = |level: &&String| {
            let size = parse_size(level.as_str());
            size.is_ok_and(|size| !size.is_multiple_of(block))
        };
        let of_bs = |factor: &&Factor| factor.of == setting.into();
        let factor = self.factors.iter().find(of_bs);
        let levels = factor.map_or(&[][..], |factor| &factor.levels);
        let small: Vec<String> = levels.iter().filter(is_small).cloned().collect();
        let mut left_out = Vec::new();
        for level in small {
            if self.do_without(setting, &level, None)? == LevelChange::LeftOut {
                left_out.push(level);
            }
        }
        Ok((!left_out.is_empty()).then(|| {
            format!(
                "{}: left out bs={}: the block of the target is {}",
                self.name,
                left_out.join(","),
                exact_size(block)
            )
        }))
    }

    /// Removes a level of a factor; `false` if it has no other.
    fn leave_out_level(&mut self, of: &GroupSetting, level: &str) -> Result<bool> {
        if self.is_listed(of) {
            let has = |row: &Combination| row.iter().any(|(own, is)| own == of && is == level);
            let rows: Vec<Combination> =
                self.only.iter().filter(|row| !has(row)).cloned().collect();
            if !rows.is_empty() {
                self.list(&rows)?;
            }
            return Ok(!rows.is_empty());
        }
        let factor = self.factors.iter().find(|factor| factor.of == *of);
        let levels = factor.map_or(&[][..], |factor| &factor.levels);
        let kept: Vec<String> = levels.iter().filter(|own| *own != level).cloned().collect();
        if !kept.is_empty() {
            self.sweep(of.clone(), &kept)?;
        }
        Ok(!kept.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::cells;

    fn without_io_uring(name: &str) -> (Experiment, LevelChange) {
        let mut experiment = Experiment::find(name).expect("it is built in");
        let backend = Setting::find("backend").expect("a setting");
        let done = experiment
            .do_without(backend, "io_uring", Some("libaio"))
            .expect("it does without");
        (experiment, done)
    }

    #[test]
    fn a_listed_combination_goes_with_its_level() {
        let (experiment, done) = without_io_uring("in-flight");
        assert_eq!(done, LevelChange::LeftOut);
        let cells = cells(&experiment).expect("cells");
        let levels: Vec<String> = cells.iter().map(|cell| cell.levels.join(" ")).collect();
        assert_eq!(levels, ["psync 1 1", "psync 16 1", "libaio 1 16"]);
    }

    #[test]
    fn a_fixed_level_is_replaced() {
        for name in ["load-latency", "interference", "write-vs-read"] {
            let (experiment, done) = without_io_uring(name);
            assert_eq!(done, LevelChange::Replaced, "{name}");
            assert!(
                experiment.values("backend").all(|own| own == "libaio"),
                "{name}"
            );
        }
        let (_, done) = without_io_uring("read-size");
        assert_eq!(done, LevelChange::Unchanged);
    }

    #[test]
    fn only_standards_leave_out_sizes_below_a_block() {
        let sizes = |name: &str, block: u64| {
            let mut experiment = Experiment::find(name).expect("it is built in");
            let told = experiment.leave_out_small_sizes(block, &|_| false);
            let told = told.expect("it does");
            (told, experiment.cell_count())
        };
        assert_eq!(sizes("pts-iops", 512), (None, 56));
        let (told, cells) = sizes("pts-iops", 4096);
        insta::assert_snapshot!(told.expect("left out"), @"pts-iops: left out bs=512: the block of the target is 4 KiB");
        assert_eq!(cells, 49);
        assert_eq!(sizes("durable-log", 4096), (None, 36));
    }

    #[test]
    fn a_missing_level_of_a_factor_is_dropped() {
        let mut experiment = Experiment::find("buffer-size").expect("it is built in");
        let setting = Setting::find("buffer_init").expect("a setting");
        let before = cells(&experiment).expect("cells").len();
        let done = experiment.do_without(setting, "populated", None);
        assert_eq!(done.expect("it does without"), LevelChange::LeftOut);
        assert!(
            experiment
                .values("buffer_init")
                .all(|own| own != "populated")
        );
        assert!(cells(&experiment).expect("cells").len() < before);
    }
}
