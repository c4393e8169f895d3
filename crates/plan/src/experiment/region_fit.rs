//! Fits an experiment to the region: removes larger I/O sizes, and keeps the distance between groups.

use iolab_workload::Result;
use iolab_workload::quantity::{counted, exact_size};
use iolab_workload::units::{format_size, parse_size};

use super::{Experiment, GroupSetting};

impl Experiment {
    /// The region of groups without one of their own, bytes; `None` if it varies.
    pub(super) fn region(&self) -> Option<u64> {
        let varies = self.factors.iter().any(|factor| factor.of.is("region"));
        (!varies).then(|| Some(self.base().ok()?.trial.region))?
    }

    /// Keeps groups the same number of regions apart as they were when the region had `before` bytes.
    ///
    /// # Errors
    ///
    /// As [`Experiment::fix`].
    pub(super) fn move_groups(&mut self, before: Option<u64>) -> Result<()> {
        let (Some(before), Some(now)) = (before, self.region()) else {
            return Ok(());
        };
        let mut moved = Vec::new();
        for group in &self.groups {
            let own = |name| {
                group
                    .settings
                    .iter()
                    .find(|(setting, _)| setting.name == name)
            };
            let (Some((offset, text)), None) = (own("offset"), own("region")) else {
                continue;
            };
            let regions = parse_size(text)
                .ok()
                .filter(|bytes| bytes.is_multiple_of(before));
            if let Some(bytes) = regions.and_then(|bytes| (bytes / before).checked_mul(now)) {
                let of = GroupSetting {
                    group: Some(group.name.clone()),
                    setting: offset,
                };
                moved.push((of, format_size(bytes)));
            }
        }
        for (of, offset) in moved {
            self.fix(of, &offset)?;
        }
        Ok(())
    }

    /// Removes the I/O sizes above `room` bytes, and returns a sentence about them. Keeps all if all are larger, so that
    /// the check of the plan reports the error.
    ///
    /// # Errors
    ///
    /// As [`Experiment::sweep`].
    pub fn leave_out_sizes_above(&mut self, room: u64) -> Result<Option<String>> {
        let large = self.leave_out_sizes(|bytes| bytes <= room)?;
        Ok(large.map(|large| {
            format!(
                "{}: left out bs {large}, larger than the {} there are",
                self.name,
                exact_size(room)
            )
        }))
    }

    /// Removes the I/O sizes with which the region has fewer blocks than `processes` processes have workers, if each worker
    /// has blocks of its own. Returns a sentence about them. Keeps all if none would be left.
    ///
    /// # Errors
    ///
    /// As [`Experiment::sweep`].
    pub fn leave_out_sizes_of_few_blocks(&mut self, processes: u32) -> Result<Option<String>> {
        let mut trial = self.base()?.trial;
        trial.span(trial.ranks.unwrap_or(processes));
        let varies = |name: &str| self.factors.iter().any(|factor| factor.of.is(name));
        if !trial.parts_region() || varies("region") || trial.hosts.is_some() || varies("hosts") {
            return Ok(None);
        }
        let workers = u64::from(trial.workers());
        let large = self.leave_out_sizes(|bytes| trial.region / bytes.max(1) >= workers)?;
        Ok(large.map(|large| {
            format!(
                "{}: left out bs {large}: the region has fewer such blocks than there are workers ({workers} on {})",
                self.name,
                counted(processes, "rank"),
            )
        }))
    }

    /// Keeps the I/O sizes that fit, in bytes, and returns the others; keeps all if none fits.
    fn leave_out_sizes(&mut self, fits: impl Fn(u64) -> bool) -> Result<Option<String>> {
        let Some(factor) = self.factors.iter().find(|f| f.of.is("bs")) else {
            return Ok(None);
        };
        let setting = factor.of.setting;
        let fits = |level: &String| parse_size(level).is_ok_and(&fits);
        let (small, large): (Vec<String>, Vec<String>) =
            factor.levels.iter().cloned().partition(fits);
        if large.is_empty() || small.is_empty() {
            return Ok(None);
        }
        self.sweep(setting, &small)?;
        Ok(Some(large.join(", ")))
    }
}
