//! Assigns targets to an experiment: as levels of the factor `target`, or to a group each.

use std::path::{Path, PathBuf};

use iolab_plan::experiment::{Experiment, GroupSetting};
use iolab_workload::group::{ALL, check_group_name};
use iolab_workload::names::TargetName;
use iolab_workload::quantity::counted;
use iolab_workload::settings::Setting;
use iolab_workload::usage_errors;
use iolab_workload::{Error, Result};

use super::full;

/// Settles on the targets of an experiment: the user's, several of them as levels of the factor `target`; otherwise the
/// targets of its definition; otherwise the current directory. Targets that groups name come last.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a path that cannot be a level, one given twice, or what the experiment does not
/// take.
pub fn settle_targets(experiment: &mut Experiment, given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let setting = target_setting()?;
    let of_groups = experiment.group_values(setting);
    if of_groups.is_empty() {
        return settle_common(experiment, setting, given);
    }
    let mut all = match experiment.every_group_has(setting) {
        false => settle_common(experiment, setting, given)?,
        true if given.is_empty() => Vec::new(),
        true => {
            return Err(Error::usage(format!(
                "{} has no effect: every group has a target of its own",
                given[0].display()
            ))
            .hint("give no TARGET, or set it for a group: --set GROUP.target=PATH"));
        }
    };
    for named in of_groups {
        let named = PathBuf::from(named);
        if !all.iter().any(|other| full(other) == named) {
            all.push(named);
        }
    }
    Ok(all)
}

fn target_setting() -> Result<&'static Setting> {
    Setting::find("target").ok_or_else(|| Error::failed("there is no setting 'target'"))
}

/// Has an experiment use these targets at once: a group for each, and cells in which each runs alone, the first ones run
/// together, and all do.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): fewer than two targets, a path that cannot be a level, or an experiment that has
/// groups already.
pub fn join_targets(experiment: &mut Experiment, given: &[PathBuf]) -> Result<()> {
    usage_errors! {
        given.len() < 2 => format!("--together with {}", counted(given.len() as u64, "target")),
            "name two or more: iolab run EXPERIMENT --together /dev/sda /dev/sdb";
    }
    usage_errors! {
        !experiment.groups.is_empty() => format!("--together, and {} has groups already", experiment.name),
            "give each group its target: --set GROUP.target=PATH";
    }
    let (target, active) = (target_setting()?, "active");
    let active =
        Setting::find(active).ok_or_else(|| Error::failed("there is no setting 'active'"))?;
    experiment.forget(target);
    let mut names: Vec<String> = Vec::with_capacity(given.len());
    for path in given {
        let level = level(path)?;
        let name = group_name(path, &names);
        experiment.add_group(&name)?;
        let of = GroupSetting {
            group: Some(name.clone()),
            setting: target,
        };
        experiment.fix(of, &level)?;
        names.push(name);
    }
    let all = [ALL.to_owned()].into_iter();
    let levels: Vec<String> = alone_and_growing(&names).chain(all).collect();
    experiment.sweep(active, &levels)?;
    experiment.question = format!(
        "How does the {} of {} used at once compare with each one alone?",
        experiment.response,
        counted(given.len() as u64, "target")
    );
    experiment.check()
}

/// Each name alone, then the first two, the first three, and so on, without all of them.
fn alone_and_growing(names: &[String]) -> impl Iterator<Item = String> {
    let growing = (2..names.len()).map(|count| names[..count].join("+"));
    names.iter().cloned().chain(growing)
}

/// The last part of a path as the name of a group, different from `taken` names.
fn group_name(path: &Path, taken: &[String]) -> String {
    let last = full(path);
    let last = last.file_name().unwrap_or_default().to_string_lossy();
    let fitting = |c: char| match c.is_ascii_alphanumeric() || c == '_' {
        true => c,
        false => '-',
    };
    let mut name: String = last.chars().map(fitting).take(24).collect();
    if check_group_name(&name).is_err() {
        name = format!("target-{name}");
    }
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let free = names.find(|name| !taken.contains(name));
    free.unwrap_or(name)
}

/// The targets of cells, and of groups that name none.
fn settle_common(
    experiment: &mut Experiment,
    setting: &'static Setting,
    given: &[PathBuf],
) -> Result<Vec<PathBuf>> {
    if given.len() > 1 {
        let levels = given.iter().map(|path| level(path));
        let levels = levels.collect::<Result<Vec<String>>>()?;
        experiment.sweep(setting, &levels)?;
        experiment.check()?;
        return Ok(levels.into_iter().map(PathBuf::from).collect());
    }
    let levels = experiment.common_values(setting);
    let own = given.first().cloned();
    let mut named: Vec<PathBuf> = Vec::new();
    for level in levels.iter().filter(|level| *level != "none") {
        let path = PathBuf::from(level);
        if !named.contains(&path) {
            named.push(path);
        }
    }
    let has_own = levels.iter().any(|level| level == "none");
    if !has_own && (own.is_some() || named.len() < 2) {
        // A single target is not a factor.
        experiment.forget(setting);
        let one = own.or_else(|| named.into_iter().next());
        return Ok(vec![one.unwrap_or_else(|| PathBuf::from("."))]);
    }
    let own = has_own.then(|| own.unwrap_or_else(|| PathBuf::from(".")));
    Ok(own.into_iter().chain(named).collect())
}

/// A path as a level.
fn level(path: &Path) -> Result<String> {
    let path = full(path);
    let Some(text) = path.to_str() else {
        return Err(Error::usage(format!(
            "{} is not UTF-8, and cannot be a level next to other targets",
            path.display()
        ))
        .hint("give it alone, or under another name (a symbolic link)"));
    };
    let name: TargetName = text.parse()?;
    Ok(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::experiment;

    fn settled(sets: &[&str], given: &[&str]) -> (Vec<PathBuf>, Vec<String>) {
        let mut experiment = experiment("read-size", sets);
        let given: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
        let targets = settle_targets(&mut experiment, &given).expect("targets");
        (
            targets,
            experiment.values("target").map(str::to_owned).collect(),
        )
    }

    #[test]
    fn several_targets_are_levels_and_one_is_none() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(settled(&[], &[]), (paths(&["."]), vec![]));
        assert_eq!(settled(&[], &["x"]), (paths(&["x"]), vec![]));
        let two = || vec!["/a".to_owned(), "/b".to_owned()];
        assert_eq!(settled(&[], &["/a", "/b"]), (paths(&["/a", "/b"]), two()));
        assert_eq!(
            settled(&["target=/a,/b"], &[]),
            (paths(&["/a", "/b"]), two())
        );
        assert_eq!(settled(&["target=/a"], &[]), (paths(&["/a"]), vec![]));
        // The command line wins.
        assert_eq!(
            settled(&["target=/a,/b"], &["/c"]),
            (paths(&["/c"]), vec![])
        );
        let own = settled(&["target=none,/b"], &["/c"]);
        assert_eq!(
            own,
            (
                paths(&["/c", "/b"]),
                vec!["none".to_owned(), "/b".to_owned()]
            )
        );
    }

    #[test]
    fn a_name_keeps_the_spaces_at_its_end() {
        let paths = ["/a ", "/b\u{a0}", "/a"].map(PathBuf::from);
        let (targets, levels) = settled(&[], &["/a ", "/b\u{a0}", "/a"]);
        assert_eq!(targets, paths);
        assert_eq!(levels, ["/a ", "/b\u{a0}", "/a"]);
        let (targets, _) = settled(&["target=/a , /b\u{a0},/a"], &[]);
        assert_eq!(targets, paths);
    }

    #[test]
    fn invalid_levels_of_target_are_refused() {
        for given in [["/a", "/a"], ["/a", "/b\n"]] {
            let given = given.map(PathBuf::from);
            let error =
                settle_targets(&mut experiment("read-size", &[]), &given).expect_err("refused");
            assert_eq!(error.kind(), iolab_workload::Kind::Usage, "{error}");
        }
    }
}
