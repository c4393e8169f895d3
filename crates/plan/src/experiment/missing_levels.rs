//! Levels that change after the definition: left out or replaced because the system at hand does not have them, added by a
//! run, or fitted to the region.

use std::collections::BTreeSet;

use iolab_workload::settings::Setting;
use iolab_workload::trial::CacheState;
use iolab_workload::units::{counted, exact_size, format_size, parse_size};
use iolab_workload::{Error, Result};
use serde::{Deserialize, Serialize};

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

    /// Leaves out sizes of direct I/O that are not multiples of a target's `block`, and are meant for other drives.
    /// Returns a sentence about them, or `None` if nothing is left out. Sizes stay if the user chose them, for which
    /// `is_chosen` holds.
    ///
    /// # Errors
    ///
    /// As [`Experiment::sweep`].
    pub fn leave_out_small_sizes(
        &mut self,
        block: u64,
        is_chosen: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>> {
        let is_direct = self.base()?.trial.cache == CacheState::Direct;
        if !is_direct || block == 0 || is_chosen("bs") {
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

/// Most finer sizes around one size.
pub const REFINE_MAX: u32 = 32;

/// The levels that a run has added; stored so that it can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refined {
    /// The first block that measures the added levels, together with all others.
    pub block: u32,
    /// The added levels of `bs`, in canonical form.
    pub bs: Vec<String>,
}

impl Experiment {
    /// Number of levels of a factor, including added ones.
    pub(super) fn level_count(&self, factor: &Factor) -> usize {
        let added = self.refined.as_ref().map_or(0, |refined| refined.bs.len());
        let is_sizes = factor.of.is("bs");
        factor.levels.len() + if is_sizes { added } else { 0 }
    }

    /// The factor `bs`.
    fn sizes(&self) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.of.is("bs"))
    }

    /// Refuses sizes that have no effect, because a mix gives the sizes of requests.
    pub(super) fn check_mix(&self) -> Result<()> {
        let swept = self.sizes().filter(|sizes| !self.is_listed(&sizes.of));
        if swept.is_none() || !self.ever("bs_mix", |mix| mix != "none") {
            return Ok(());
        }
        let error = Error::usage("bs varies, but bs_mix gives the sizes of requests");
        Err(error
            .hint("fix bs, to which requests are aligned (--set bs=4KiB), or leave bs_mix out"))
    }

    /// Refuses finer sizes without a factor `bs`, or together with settings that exclude them.
    pub(super) fn check_refine(&self) -> Result<()> {
        if self.design.refine > REFINE_MAX {
            return Err(
                Error::usage(format!("refine is {}", self.design.refine)).hint(format!(
                    "choose 1 to {REFINE_MAX} finer sizes around each place"
                )),
            );
        }
        if self.design.refine == 0 && self.refined.is_none() {
            return Ok(());
        }
        let refuse = |message: &str, hint: &str| Err(Error::usage(message).hint(hint));
        if self.runs_programs() {
            return refuse(
                "refine is set, but the trials run programs",
                "only sizes of requests (bs) are refined; leave refine out",
            );
        }
        let Some(sizes) = self.sizes() else {
            return refuse(
                "refine is set, but bs does not vary",
                "give bs several levels, for example --set bs=4k,64k,1M, or leave refine out",
            );
        };
        if self.is_listed(&sizes.of) {
            return refuse(
                "refine is set, but the sizes are listed in [[only]]",
                "sweep bs with --set bs=4k,64k,1M, or leave refine out",
            );
        }
        if let Some(other) = self
            .factors
            .iter()
            .find(|factor| ["skip", "region", "offset"].contains(&factor.of.setting.name))
        {
            return Err(
                Error::usage(format!("refine is set, but {} varies besides bs", other.of)).hint(
                    format!("fix it with --set {}=VALUE, or leave refine out", other.of),
                ),
            );
        }
        self.refined
            .as_ref()
            .map_or(Ok(()), |refined| check_levels(refined, sizes))
    }
}

/// Checks added levels, since the file may come from elsewhere.
fn check_levels(refined: &Refined, sizes: &Factor) -> Result<()> {
    let mut seen: BTreeSet<&str> = sizes.levels.iter().map(String::as_str).collect();
    for level in &refined.bs {
        let canonical = Setting::find("bs").map_or(Ok(level.clone()), |bs| bs.canonical(level))?;
        if canonical != *level || !seen.insert(level) {
            return Err(
                Error::usage(format!("'{level}' in [refined] is not a new level"))
                    .hint("remove [refined]; iolab writes it"),
            );
        }
    }
    Ok(())
}

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
