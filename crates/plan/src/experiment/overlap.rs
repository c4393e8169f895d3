//! A workload code says pattern and direction at once: what says them otherwise must not stand beside it.

use iolab_spec::{Error, Result};

use super::Experiment;
use iolab_spec::settings::Setting;

/// What a workload code says.
const SAID: [&str; 2] = ["pattern", "read_percent"];

impl Experiment {
    fn names_workload(&self) -> bool {
        self.ever("workload", |value| value != "none")
    }

    /// Naming a workload takes the place of what it says.
    pub(super) fn displace_parts(&mut self, by: &Setting) {
        if by.name == "workload" && self.names_workload() {
            self.factors
                .retain(|factor| !SAID.contains(&factor.setting.name));
            self.settings
                .retain(|(setting, _)| !SAID.contains(&setting.name));
        }
    }

    /// Refuses two that contradict each other.
    pub(super) fn check_workload(&self) -> Result<()> {
        let said = SAID.into_iter().find(|name| self.ever(name, |_| true));
        match said.filter(|_| self.names_workload()) {
            Some(name) => Err(Error::usage(format!(
                "{name} and workload are both set"
            ))
            .hint("set the workload (WS, RS, WR, RR) alone; or workload=none first, then pattern and read_percent")),
            None => Ok(()),
        }
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
        assert!(error.message().contains("workload are both set"), "{error}");
        experiment.apply_set("workload=none").expect("none");
        experiment.apply_set("read_percent=70").expect("alone");
    }
}
