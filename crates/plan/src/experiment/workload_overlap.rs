//! A workload code sets pattern and direction together, which excludes settings that set them separately.

use iolab_workload::{Error, Result};

use super::Experiment;
use iolab_workload::settings::Setting;

/// The settings that a workload code includes.
const SAID: [&str; 2] = ["pattern", "read_percent"];

impl Experiment {
    /// Removes the settings that a workload code includes.
    pub(super) fn displace_parts(&mut self, by: &Setting) {
        if by.name == "workload" && self.says(None, "workload", |value| value != "none") {
            self.factors
                .retain(|factor| !SAID.iter().any(|name| factor.of.is(name)));
            self.settings
                .retain(|(setting, _)| !SAID.contains(&setting.name));
        }
    }

    /// Refuses a workload code beside a setting that it includes, for all workers or for one group.
    pub(super) fn check_workload(&self) -> Result<()> {
        let groups = self.groups.iter().map(|group| Some(group.name.as_str()));
        for group in std::iter::once(None).chain(groups) {
            let said = SAID
                .into_iter()
                .find(|name| self.says(group, name, |_| true));
            let has_workload = self.says(group, "workload", |value| value != "none");
            if let Some(name) = said.filter(|_| has_workload) {
                return Err(Error::usage(format!(
                    "{name} and workload are both set"
                ))
                .hint("set the workload (WS, RS, WR, RR) alone; or workload=none first, then pattern and read_percent"));
            }
        }
        Ok(())
    }

    /// Whether a setting has a value that satisfies `has`, fixed or as a level, for all workers or for one group.
    fn says(&self, group: Option<&str>, name: &str, has: impl Fn(&str) -> bool) -> bool {
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
    use super::*;

    #[test]
    fn a_workload_takes_the_place_of_its_parts_and_the_other_way_is_told() {
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
}
