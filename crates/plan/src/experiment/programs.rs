//! Experiments whose trials run programs: which settings apply to them.

use iolab_workload::usage_errors;
use iolab_workload::{Error, Result};

use super::Experiment;
use iolab_workload::settings::Setting;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::cells;
    use iolab_workload::response::Response;

    fn linkage() -> Experiment {
        Experiment::find("linkage").expect("built in")
    }

    fn factors(experiment: &Experiment) -> Vec<&str> {
        experiment
            .factors
            .iter()
            .map(|f| f.of.setting.name)
            .collect()
    }

    #[test]
    fn the_built_in_one_is_study_c() {
        let experiment = linkage();
        assert_eq!(experiment.cell_count(), 56);
        assert!(experiment.runs_programs());
        assert_eq!(experiment.response, Response::Elapsed);
        assert!(experiment.design.trials_min >= 20);
        let cells = cells(&experiment).expect("valid");
        let sizes: Vec<u64> = cells.iter().map(|cell| cell.spec.trial.region).collect();
        assert_eq!((sizes[0], sizes[55]), (1, 128 << 20));
        assert!(cells.iter().all(|cell| cell.spec.trial.bs == 2 << 20));
        let again = Experiment::from_toml(&experiment.to_toml().expect("TOML"), "again");
        assert_eq!(again.expect("valid"), experiment);
    }

    #[test]
    fn commands_take_the_place_of_linkage_and_back() {
        let mut experiment = linkage();
        experiment
            .apply_set("command=./a {file},./b 'x,y' {file}")
            .expect("two");
        assert_eq!(factors(&experiment), ["region", "command"]);
        assert_eq!(experiment.factors[1].levels[1], "./b 'x,y' {file}");
        experiment.apply_set("command=cat {file}").expect("one");
        assert_eq!(factors(&experiment), ["region"]);
        experiment.apply_set("linkage=static").expect("one");
        assert_eq!(factors(&experiment), ["region"]);
        assert!(
            cells(&experiment)
                .expect("valid")
                .iter()
                .all(|cell| { cell.spec.command.is_none() && cell.spec.linkage.is_some() })
        );
    }

    #[test]
    fn settings_without_effect_on_programs_are_refused() {
        let told = [
            "threads=4", "depth=1,2", "backend=psync", "read_percent=50", "sync=end",
            "linkage=none,static", "command=none,cat {file}",
        ]
        .map(|set| {
            linkage()
                .apply_set(set)
                .expect_err(set)
                .message()
                .to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        --set threads=4: threads does not apply to a program, which issues its own requests
        --set depth=1,2: depth does not apply to a program, which issues its own requests
        --set backend=psync: backend does not apply to a program, which issues its own requests
        --set read_percent=50: read_percent does not apply to a program, which issues its own requests
        --set sync=end: sync does not apply to a program, which issues its own requests
        --set linkage=none,static: some cells run a program and some issue requests
        --set command=none,cat {file}: some cells run a program and some issue requests
        ");
        let mut other = Experiment::find("read-size").expect("built in");
        let error = other.apply_set("command=cat {file}").expect_err("mixed");
        insta::assert_snapshot!(error.message(), @"--set command=cat {file}: pattern does not apply to a program, which issues its own requests");
    }

    #[test]
    fn two_programs_or_their_latency_are_refused() {
        let head = "name = \"x\"\nquestion = \"?\"\n";
        let told = [
            "response = \"elapsed\"\n[settings]\nlinkage = \"static\"\ncommand = \"cat {file}\"\n",
            "response = \"latency\"\n[settings]\ncommand = \"cat {file}\"\n",
        ]
        .map(|body| {
            let read = Experiment::from_toml(&format!("{head}{body}"), "x");
            read.expect_err("refused").message().to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        x: linkage and command both name a program
        x: the requests of a program are not timed one by one
        ");
    }
}
