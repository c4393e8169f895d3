//! A workload code sets pattern and direction together, which excludes settings that set them separately.

use iolab_workload::settings::Setting;
use iolab_workload::{Error, Result};

use super::{Experiment, GroupSetting};

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

#[cfg(test)]
mod tests {
    use iolab_workload::trial::Pattern;

    use super::*;

    #[test]
    fn a_workload_replaces_and_refuses_its_parts() {
        let mut experiment = Experiment::find("write-random").expect("built in");
        experiment.apply_set("workload=RS,WR").expect("two codes");
        let cells = crate::cells::cells(&experiment).expect("valid");
        assert_eq!(cells[0].spec.trial.read_percent, 100);
        assert_eq!(cells[1].spec.trial.read_percent, 0);
        let error = experiment.apply_set("read_percent=70").expect_err("both");
        insta::assert_snapshot!(error.message(), @"--set read_percent=70: read_percent and workload are both set");
        experiment.apply_set("workload=none").expect("none");
        experiment.apply_set("read_percent=70").expect("alone");
    }

    #[test]
    fn a_groups_workload_replaces_only_its_own_parts() {
        let mut experiment = Experiment::find("interference").expect("built in");
        experiment
            .apply_set("reader.read_percent=0,100")
            .expect("a factor");
        experiment.apply_set("reader.workload=RS").expect("a code");
        assert_eq!(experiment.factors.len(), 1, "{:?}", experiment.factors);
        let cells = crate::cells::cells(&experiment).expect("valid");
        let trials = cells[4].spec.trials();
        let patterns: Vec<_> = trials
            .iter()
            .map(|trial| (trial.pattern, trial.read_percent))
            .collect();
        assert_eq!(patterns, [(Pattern::Seq, 100), (Pattern::Seq, 0)]);
        let error = experiment
            .apply_set("reader.pattern=rand")
            .expect_err("both");
        insta::assert_snapshot!(error.message(), @"--set reader.pattern=rand: pattern and workload are both set");
        experiment.apply_set("reader.workload=none").expect("none");
        experiment.apply_set("reader.pattern=rand").expect("alone");
    }
}
