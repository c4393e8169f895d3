//! Settings that exclude others: a program excludes settings of requests, a workload code excludes pattern and direction.

use iolab_workload::settings::Setting;
use iolab_workload::{Error, Result, usage_errors};

use super::{Experiment, GroupSetting};

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
pub(super) fn included_settings(setting: &Setting) -> &'static [&'static str] {
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
        let settings = match group {
            None => Some(&self.settings),
            Some(group) => {
                let own = self.groups.iter().find(|own| own.name == group);
                own.map(|own| &own.settings)
            }
        };
        let fixed = settings.into_iter().flatten();
        let fixed = fixed.filter(|(setting, _)| setting.name == name);
        let swept = self
            .factors
            .iter()
            .filter(|factor| factor.of.setting.name == name && factor.of.group.as_deref() == group);
        fixed
            .map(|(_, value)| value)
            .chain(swept.flat_map(|factor| &factor.levels))
            .any(|value| has(value))
    }
}
