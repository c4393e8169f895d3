//! Settings of all groups, and settings of one group.
//!
//! Settings that exclude others: a program excludes settings of requests, a workload code excludes pattern and direction.

use std::collections::BTreeSet;
use std::fmt;

use super::Experiment;
use iolab_workload::foreign_options::unknown_setting;
use iolab_workload::group::{GROUPS_MAX, GroupSpec, check_group_name, split_group};
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::Rate;
use iolab_workload::{Error, Result, usage_errors};

/// A setting for all groups of a trial, or for one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSetting {
    /// The group; `None` for all groups, and for trials with a single one.
    pub group: Option<String>,
    /// The setting.
    pub setting: &'static Setting,
}

/// The level of each listed setting; all combinations of an experiment list the same settings.
pub type Combination = Vec<(GroupSetting, String)>;

impl GroupSetting {
    /// The setting of a name such as `bs` or `writer.bs`.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such setting; `others` are further valid names for the message.
    pub fn find(name: &str, others: &[&str]) -> Result<Self> {
        let (group, setting) = split_group(name);
        match Setting::find(setting) {
            Some(setting) => Ok(Self {
                group: group.map(str::to_owned),
                setting,
            }),
            None if group.is_some() && others.contains(&setting) => Err(Error::usage(format!(
                "{setting} is not a setting of a group"
            ))
            .hint(format!(
                "it holds for the whole experiment: --set {setting}=..."
            ))),
            None => Err(unknown_setting(setting, others)),
        }
    }

    /// Whether it is the setting of this name for all groups.
    pub fn is(&self, name: &str) -> bool {
        self.group.is_none() && self.setting.name == name
    }
}

impl From<&'static Setting> for GroupSetting {
    fn from(setting: &'static Setting) -> Self {
        Self {
            group: None,
            setting,
        }
    }
}

/// Writes `bs`, `writer.bs`.
impl fmt::Display for GroupSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => f.pad(&format!("{group}.{}", self.setting.name)),
            None => f.pad(self.setting.name),
        }
    }
}

/// A group of workers in every trial, with its own settings.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentGroup {
    /// Name of the group.
    pub name: String,
    /// Settings in canonical form; they override the settings of all groups.
    pub settings: Vec<(&'static Setting, String)>,
}

/// A text in the form of a group's name, different from `taken` names; with `prefix` if it is none by itself.
pub fn new_group_name(text: &str, prefix: &str, taken: &[String]) -> String {
    let fitting = |c: char| match c.is_ascii_alphanumeric() || c == '_' {
        true => c,
        false => '-',
    };
    let mut name: String = text.chars().map(fitting).take(24).collect();
    if check_group_name(&name).is_err() {
        name = format!("{prefix}-{name}");
    }
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let free = names.find(|name| !taken.contains(name));
    free.unwrap_or(name)
}

impl Experiment {
    /// Adds a group.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an invalid or duplicate name, or too many groups.
    pub fn add_group(&mut self, name: &str) -> Result<()> {
        check_group_name(name)?;
        if self.has_group(name) {
            return Err(
                Error::usage(format!("there are two groups '{name}'")).hint("name each group once")
            );
        }
        if self.groups.len() == GROUPS_MAX {
            return Err(
                Error::usage(format!("there are more than {GROUPS_MAX} groups"))
                    .hint("give fewer; threads of one group do the same"),
            );
        }
        self.groups.push(ExperimentGroup {
            name: name.to_owned(),
            settings: Vec::new(),
        });
        Ok(())
    }

    /// The settings of a group, or without a name the settings of all groups.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such group.
    pub(super) fn settings_of(
        &mut self,
        group: Option<&str>,
    ) -> Result<&mut Vec<(&'static Setting, String)>> {
        let Some(name) = group else {
            return Ok(&mut self.settings);
        };
        match self.groups.iter().position(|group| group.name == name) {
            Some(place) => Ok(&mut self.groups[place].settings),
            None => Err(self.no_group(name)),
        }
    }

    /// Gives a cell its groups, with the settings of all groups, then its own settings, then the levels of its own factors.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a value that a setting does not take.
    pub(crate) fn put_groups(&self, cell: &mut CellSpec, levels: &[String]) -> Result<()> {
        let common = cell.clone();
        for group in &self.groups {
            let mut spec = common.clone();
            for (setting, value) in &group.settings {
                setting.set(&mut spec, value)?;
            }
            for (factor, level) in self.factors.iter().zip(levels) {
                if factor.of.group.as_ref() == Some(&group.name) {
                    factor.of.setting.set(&mut spec, level)?;
                }
            }
            cell.groups.push(GroupSpec {
                name: group.name.clone(),
                spec,
            });
        }
        if let Some(active) = &common.active {
            if let Some(unknown) = active.names().find(|name| !self.has_group(name)) {
                return Err(self.no_group(unknown).within("active"));
            }
            let others = cell.groups.iter_mut();
            let others = others.filter(|group| !active.names().any(|name| name == group.name));
            others.for_each(|group| group.spec.trial.rate = Some(Rate::ZERO));
        }
        // With `verify`, a group that only reads is not checked if other groups write.
        if cell.groups.iter().any(|group| group.spec.trial.writes()) {
            let own = self
                .groups
                .iter()
                .map(|group| self.says_of(group, "verify"));
            for (group, own) in cell.groups.iter_mut().zip(own) {
                let trial = &mut group.spec.trial;
                trial.verify &= own || trial.writes();
            }
        }
        cell.trial = cell.merge_trials();
        Ok(())
    }

    /// Refuses a change without effect: to a setting of all groups that every group overrides. A workload code has its effect through the
    /// settings that it includes.
    pub(super) fn check_effect(&self, of: &GroupSetting) -> Result<()> {
        if of.group.is_some() || self.groups.is_empty() {
            return Ok(());
        }
        let included = included_settings(of.setting).iter().copied();
        let own = std::iter::once(of.setting.name)
            .chain(included)
            .find(|name| self.every_group_has(name));
        own.map_or(Ok(()), |own| Err(self.no_effect(of, own)))
    }

    /// Whether every group overrides a setting; false without groups.
    pub fn every_group_has(&self, setting: &str) -> bool {
        let has = |group: &ExperimentGroup| self.says_of(group, setting);
        !self.groups.is_empty() && self.groups.iter().all(has)
    }

    /// The fixed values and the levels of a setting, each with the group that it is for; `None` for all groups.
    pub(super) fn values_of_groups<'a>(
        &'a self,
        setting: &'a str,
    ) -> impl Iterator<Item = (Option<&'a str>, &'a str)> {
        let groups = self.groups.iter();
        let own = groups.map(|group| (Some(group.name.as_str()), &group.settings));
        let fixed = std::iter::once((None, &self.settings)).chain(own);
        let fixed =
            fixed.flat_map(|(group, all)| all.iter().map(move |(of, value)| (group, of, value)));
        let swept = self.factors.iter().flat_map(|factor| {
            let levels = factor.levels.iter();
            levels.map(|level| (factor.of.group.as_deref(), &factor.of.setting, level))
        });
        let all = fixed.chain(swept);
        all.filter(move |(_, of, _)| of.name == setting)
            .map(|(group, _, value)| (group, value.as_str()))
    }

    /// The distinct values with which groups override a setting.
    pub fn group_values(&self, setting: &str) -> BTreeSet<String> {
        let values = self.values_of_groups(setting);
        let own = values.filter(|(group, _)| group.is_some());
        own.map(|(_, value)| value.to_owned()).collect()
    }

    /// The value or the levels of a setting for all groups; empty if it has its default.
    pub fn common_values(&self, setting: &str) -> Vec<String> {
        let values = self.values_of_groups(setting);
        let common = values.filter(|(group, _)| group.is_none());
        common.map(|(_, value)| value.to_owned()).collect()
    }

    /// Whether a group overrides a setting, fixed or as a factor.
    fn says_of(&self, group: &ExperimentGroup, setting: &str) -> bool {
        self.has_value(Some(&group.name), setting, |_| true)
    }

    fn no_effect(&self, of: &GroupSetting, own: &str) -> Error {
        let group = self
            .groups
            .first()
            .map_or("GROUP", |group| group.name.as_str());
        Error::usage(format!(
            "{of} has no effect: every group has a {own} of its own"
        ))
        .hint(format!("set it for a group: --set {group}.{of}=..."))
    }

    /// Checks the groups and their settings.
    pub(super) fn check_groups(&self) -> Result<()> {
        if let Some(name) = &self.response_group
            && !self.has_group(name)
        {
            return Err(self.no_group(name).within("response"));
        }
        if self.groups.is_empty() {
            return Ok(());
        }
        let refused = [
            (
                self.seek.is_some(),
                "a search for a rate with groups",
                "a search has one rate; vary the rate of a group: --set GROUP.rate=100,200,400",
            ),
            (
                self.design.refine > 0,
                "refine with groups",
                "finer sizes apply to all workers: leave refine out",
            ),
            (
                self.ever("tool", |tool| tool != "iolab"),
                "another tool with groups",
                "only iolab carries out groups, or jobs of fio side by side: leave the other tool out",
            ),
            (
                self.runs_programs(),
                "a program with groups",
                "leave linkage and command out",
            ),
        ];
        if let Some((_, what, hint)) = refused.into_iter().find(|(applies, ..)| *applies) {
            return Err(Error::usage(what).hint(hint));
        }
        if let Some(group) = self
            .groups
            .iter()
            .find(|group| self.says_of(group, "active"))
        {
            return Err(Error::usage(format!(
                "{}.active has no effect: active is a setting of the whole trial",
                group.name
            ))
            .hint("name the groups that run for all of them: --set active=NAME,NAME+NAME"));
        }
        let mut common = self.factors.iter().map(|factor| &factor.of);
        common.try_for_each(|of| self.check_effect(of))
    }

    fn has_group(&self, name: &str) -> bool {
        self.groups.iter().any(|group| group.name == name)
    }

    fn no_group(&self, name: &str) -> Error {
        let names: Vec<&str> = self
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        match names.as_slice() {
            [] => Error::usage(format!("{} has no groups, and so no group '{name}'", self.name))
                .hint("a group is a table [group.NAME] of an experiment; leave the name out where there is none"),
            names => iolab_workload::names::unknown("group", name, names),
        }
    }
}

/// The settings that name a program; an experiment has one of them.
const NAMING: [&str; 2] = ["linkage", "command"];

/// Other settings that apply to a program: the file that it reads and where that lies, its buffer, the cache, its time limit.
const MEANT: [&str; 5] = ["region", "bs", "cache", "time", "target"];

impl Experiment {
    /// Whether the trials run programs instead of issuing requests.
    pub fn runs_programs(&self) -> bool {
        NAMING.iter().any(|name| self.names_program(name))
    }

    fn names_program(&self, name: &str) -> bool {
        self.ever(name, |value| value != "none")
    }

    /// Removes the other setting that names a program.
    pub(super) fn displace(&mut self, by: &Setting) {
        if !NAMING.contains(&by.name) || !self.names_program(by.name) {
            return;
        }
        let other = |setting: &Setting| NAMING.contains(&setting.name) && setting.name != by.name;
        self.factors.retain(|factor| !other(factor.of.setting));
        self.settings.retain(|(setting, _)| !other(setting));
    }

    /// Refuses settings that do not apply to a program.
    pub(super) fn check_programs(&self) -> Result<()> {
        if !self.runs_programs() {
            return Ok(());
        }
        usage_errors! {
            NAMING.iter().all(|name| self.names_program(name)) => "linkage and command both name a program", "leave one of them out";
            NAMING.iter().any(|name| self.names_program(name) && self.ever(name, |value| value == "none")) =>
                "some cells run a program and some issue requests",
                "use two experiments";
            self.response.is_latency() => "the requests of a program are not timed one by one",
                "set the response to elapsed, the time of the whole program";
            self.design.precondition.writes() => "precondition does not apply to programs, because iolab makes their files", "leave it out";
        }
        let fixed = self.settings.iter().map(|(setting, _)| *setting);
        let swept = self.factors.iter().map(|factor| factor.of.setting);
        match fixed
            .chain(swept)
            .find(|setting| !NAMING.contains(&setting.name) && !MEANT.contains(&setting.name))
        {
            Some(setting) => Err(Error::usage(format!(
                "{} does not apply to a program, which issues its own requests",
                setting.name
            ))
            .hint(
                "remove it; a program can use region (the size of its file), bs, cache and time",
            )),
            None => Ok(()),
        }
    }
}

/// The settings that a workload code includes.
const INCLUDED_SETTINGS: [&str; 2] = ["pattern", "read_percent"];

/// The settings that a setting includes, as a workload code does.
fn included_settings(setting: &Setting) -> &'static [&'static str] {
    match setting.name {
        "workload" => &INCLUDED_SETTINGS,
        _ => &[],
    }
}

impl Experiment {
    /// Removes the settings that a workload code includes, of all workers or of the group that the code is for.
    pub(super) fn drop_included_settings(&mut self, by: &GroupSetting) -> Result<()> {
        let group = by.group.as_deref();
        if by.setting.name == "workload"
            && self.has_value(group, "workload", |value| value != "none")
        {
            self.factors.retain(|factor| {
                factor.of.group != by.group || !INCLUDED_SETTINGS.contains(&factor.of.setting.name)
            });
            self.settings_of(group)?
                .retain(|(setting, _)| !INCLUDED_SETTINGS.contains(&setting.name));
        }
        Ok(())
    }

    /// Refuses a workload code together with a setting that it includes, for all workers or for one group.
    pub(super) fn check_workload(&self) -> Result<()> {
        let groups = self.groups.iter().map(|group| Some(group.name.as_str()));
        for group in std::iter::once(None).chain(groups) {
            let included = INCLUDED_SETTINGS
                .into_iter()
                .find(|name| self.has_value(group, name, |_| true));
            let has_workload = self.has_value(group, "workload", |value| value != "none");
            if let Some(name) = included.filter(|_| has_workload) {
                return Err(Error::usage(format!(
                    "{name} and workload are both set"
                ))
                .hint("set the workload (WS, RS, WR, RR) alone; or workload=none first, then pattern and read_percent"));
            }
        }
        Ok(())
    }

    /// Whether a setting has a value that satisfies `has`, fixed or as a level, for all workers or for one group.
    fn has_value(&self, group: Option<&str>, name: &str, has: impl Fn(&str) -> bool) -> bool {
        let mut values = self.values_of_groups(name);
        values.any(|(of, value)| of == group && has(value))
    }
}
