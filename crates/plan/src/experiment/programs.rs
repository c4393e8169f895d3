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

#[cfg(test)]
mod tests {
    use iolab_workload::response::Response;
    use iolab_workload::trial::Pattern;

    use super::*;
    use crate::cells::cells;

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

    #[test]
    fn a_groups_workload_replaces_only_its_own_parts() {
        let mut experiment = Experiment::find("interference").expect("built in");
        experiment
            .apply_set("reader.read_percent=0,100")
            .expect("a factor");
        experiment.apply_set("reader.workload=RS").expect("a code");
        assert_eq!(experiment.factors.len(), 1, "{:?}", experiment.factors);
        let cells = cells(&experiment).expect("valid");
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
