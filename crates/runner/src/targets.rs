//! The targets of a run: open at once, each with its own consent check, found by the name that cells call it by.

use std::path::{Component, Path, PathBuf, absolute};
use std::sync::atomic::AtomicBool;

use iolab_storage::{Consent, Need, Target, TargetKind};
use iolab_workload::group::{ALL, check_group_name};
use iolab_workload::quantity::counted;
use iolab_workload::settings::Setting;
use iolab_workload::target::TargetName;
use iolab_workload::{Error, Result};

use super::{Disk, fit};
use crate::ranks::Ranks;
use iolab_plan::cells::Plan;
use iolab_plan::experiment::{Experiment, Scoped};
use iolab_record::FurtherTarget;

/// What stands between the targets that a trial is striped over.
const BETWEEN: &str = ":";

/// The open targets, each with the path that the user gave. The first is the run's own: cells that name no target use it.
#[derive(Debug)]
pub struct Targets(Vec<(PathBuf, Target)>);

impl Targets {
    /// Opens each of them as its need allows. Where one is refused, what was made for the others is removed.
    ///
    /// # Errors
    /// As [`Target::open_all`].
    pub fn open(named: &[PathBuf], needs: &[Need]) -> Result<Self> {
        Self::open_at(named, needs, &|named| Ok(named.to_owned()))
    }

    /// As [`Targets::open`], of names that stand for other paths in this process.
    ///
    /// # Errors
    /// As [`Target::open_all`], and what `place` gives.
    pub fn open_at(
        named: &[PathBuf],
        needs: &[Need],
        place: &dyn Fn(&Path) -> Result<PathBuf>,
    ) -> Result<Self> {
        let placed = named.iter().zip(needs);
        let placed = placed.map(|(named, need)| Ok((place(named)?, need)));
        let placed: Vec<(PathBuf, &Need)> = placed.collect::<Result<_>>()?;
        let names = named.iter().map(|named| full(named));
        let opened: Vec<_> = names.zip(Target::open_all(&placed)?).collect();
        check_apart(&opened)?;
        match opened.is_empty() {
            true => {
                Err(Error::usage("no target is named").hint("name a directory, file or device"))
            }
            false => Ok(Self(opened)),
        }
    }

    /// Each with its path from the root on; the run's own comes first.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Target)> {
        self.0
            .iter()
            .map(|(named, target)| (named.as_path(), target))
    }

    /// Has the other processes of a run fill their parts of the scratch files; see [`Target::divide`].
    pub fn divide(&mut self, ranks: &Ranks) {
        let shared = self.0.iter_mut().filter(|(named, _)| ranks.share(named));
        shared.for_each(|(_, target)| target.divide(ranks.count() as u32));
    }

    /// Bytes that [`Targets::fill`] writes.
    pub fn fill_bytes(&self) -> u64 {
        self.iter().map(|(_, target)| target.fill_bytes()).sum()
    }

    /// Fills the scratch files among them; see [`Target::fill`].
    ///
    /// # Errors
    /// As [`Target::fill`].
    pub fn fill(&self, seed: u64, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut before = 0;
        for (number, (_, target)) in self.iter().enumerate() {
            let seed = seed.wrapping_add((number as u64) << 32);
            target.fill(seed, stop, &mut |done| progress(before + done))?;
            before += target.fill_bytes();
        }
        Ok(())
    }

    /// Removes the scratch files among them.
    ///
    /// # Errors
    /// When one cannot be removed; the others are removed nevertheless.
    pub fn remove(self) -> Result<()> {
        let removed = self.0.into_iter().map(|(_, target)| target.remove());
        removed.fold(Ok(()), Result::and)
    }
}

/// Refuses two names of one file or device: trials on one would be trials on the other.
fn check_apart(opened: &[(PathBuf, Target)]) -> Result<()> {
    for (number, (named, target)) in opened.iter().enumerate() {
        let same = opened[..number]
            .iter()
            .find(|(_, other)| other.is_same(target));
        if let Some((other, _)) = same {
            return Err(same_twice(other, named));
        }
    }
    Ok(())
}

fn same_twice(one: &Path, other: &Path) -> Error {
    let same = format!("{} and {} are the same", one.display(), other.display());
    Error::usage(same).hint("name each target once")
}

/// The path from the root on, by which a run knows a target, however it is written: `disk/`, `./disk` and `x/../disk` are one. `..`
/// is resolved where that leads to the same place, which it does not behind a symbolic link.
pub(super) fn full(path: &Path) -> PathBuf {
    let from_root = absolute(path).unwrap_or_else(|_| path.to_owned());
    // Separators at the end and in a row are no parts of it.
    let plain: PathBuf = from_root.components().collect();
    let mut resolved = PathBuf::new();
    for part in plain.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            other => resolved.push(other),
        }
    }
    let is_same = || match (resolved.canonicalize(), plain.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    match resolved == plain || is_same() {
        true => resolved,
        false => plain,
    }
}

/// What a command measures: files and devices, which share the blocks of a run, and disks that are computed, each in runs of its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GivenTargets {
    /// Directories, files and devices, as they are given.
    pub real: Vec<PathBuf>,
    /// Models.
    pub models: Vec<Disk>,
}

impl GivenTargets {
    /// Tells models from the others, in the order in which they are given.
    ///
    /// # Errors
    /// Of kind usage: a target that is given twice, under whatever name; as [`Disk::of_target`].
    pub fn of(given: &[PathBuf]) -> Result<Self> {
        let mut all = Self::default();
        for path in given {
            match Disk::of_target(path)? {
                Some(disk) => all.models.push(disk),
                None => all.real.push(path.clone()),
            }
        }
        let names = all.models.iter().map(|disk| PathBuf::from(disk.name()));
        check_distinct(&names.collect::<Vec<_>>(), |name| name.to_owned())?;
        check_distinct(&all.real, |path| {
            path.canonicalize().unwrap_or_else(|_| full(path))
        })?;
        Ok(all)
    }

    /// How many these are.
    pub fn count(&self) -> usize {
        self.real.len() + self.models.len()
    }
}

/// Refuses two names of the same.
fn check_distinct(names: &[PathBuf], place: impl Fn(&Path) -> PathBuf) -> Result<()> {
    for (number, name) in names.iter().enumerate() {
        let mut before = names[..number].iter();
        if let Some(other) = before.find(|other| place(other) == place(name)) {
            return Err(same_twice(other, name));
        }
    }
    Ok(())
}

/// The number of the target of this name; without a name that of the run's own.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the run has none of this name.
pub(super) fn number_of<'a>(
    mut names: impl Iterator<Item = &'a Path>,
    named: Option<&TargetName>,
) -> Result<usize> {
    let Some(named) = named else {
        return Ok(0);
    };
    names
        .position(|name| name == Path::new(named.as_str()))
        .ok_or_else(|| {
            Error::usage(format!("the target {named} is not one of the run's"))
                .hint("name each target once on the command line")
        })
}

/// Settles on what an experiment runs: the targets that the user gives, several of them as levels of the factor `target`; else
/// those that its definition names; else the current directory. Those that groups name come behind.
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
            .hint("give no TARGET, or change that of a group: --set GROUP.target=PATH"));
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
    check_several("--together", given)?;
    if !experiment.groups.is_empty() {
        return Err(Error::usage(format!(
            "--together, and {} has groups already",
            experiment.name
        ))
        .hint("give each group its target: --set GROUP.target=PATH"));
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
        let of = Scoped {
            group: Some(name.clone()),
            setting: target,
        };
        experiment.fix(of, &level)?;
        names.push(name);
    }
    let all = [ALL.to_owned()].into_iter();
    let levels: Vec<String> = alone_and_growing(&names, "+").chain(all).collect();
    experiment.sweep(active, &levels)?;
    experiment.question = format!(
        "How does the {} of {} used at once compare with that of each alone?",
        experiment.response,
        counted(given.len() as u64, "target")
    );
    experiment.check()
}

/// Has an experiment stripe its requests over these targets: cells in which each is used alone, the first ones are, and all are.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): fewer than two targets, a path that cannot be a level, or an experiment with
/// groups.
pub fn stripe_targets(experiment: &mut Experiment, given: &[PathBuf]) -> Result<()> {
    check_several("--striped", given)?;
    if !experiment.groups.is_empty() {
        return Err(Error::usage(format!(
            "--striped, and {} has groups, which have one target each",
            experiment.name
        ))
        .hint("give each group its target: --set GROUP.target=PATH"));
    }
    let names = given.iter().map(|path| level(path));
    let names = names.collect::<Result<Vec<String>>>()?;
    let all = [names.join(BETWEEN)].into_iter();
    let levels: Vec<String> = alone_and_growing(&names, BETWEEN).chain(all).collect();
    experiment.sweep(target_setting()?, &levels)?;
    experiment.question = format!(
        "How does the {} of requests striped over {} compare with that of each alone?",
        experiment.response,
        counted(given.len() as u64, "target")
    );
    experiment.check()
}

/// Refuses to use fewer than two targets at once.
fn check_several(option: &str, given: &[PathBuf]) -> Result<()> {
    if given.len() < 2 {
        return Err(Error::usage(format!(
            "{option} with {}",
            counted(given.len() as u64, "target")
        ))
        .hint(format!(
            "name two or more: iolab run EXPERIMENT {option} /dev/sda /dev/sdb"
        )));
    }
    Ok(())
}

/// Each name alone, then the first two, the first three, and so on, without all of them.
fn alone_and_growing<'a>(
    names: &'a [String],
    between: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let growing = (2..names.len()).map(move |count| names[..count].join(between));
    names.iter().cloned().chain(growing)
}

/// The last part of a path as the name of a group, unlike those that are taken.
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
        // A level may name several, over which trials are striped.
        for part in level.parse::<TargetName>()?.parts() {
            let path = PathBuf::from(part.as_str());
            if !named.contains(&path) {
                named.push(path);
            }
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
            "{} is not UTF-8, and cannot be a level beside other targets",
            path.display()
        ))
        .hint("give it alone, or under another name (a symbolic link)"));
    };
    let name: TargetName = text.parse()?;
    match name.parts() {
        [_] => Ok(name.to_string()),
        _ => Err(Error::usage(format!(
            "{} has ':/', which separates targets, and cannot be a level beside other targets",
            path.display()
        ))
        .hint("give it alone, or under another name (a symbolic link)")),
    }
}

/// What plans need of each of these targets, where they are carried out one after the other; see [`super::need`].
///
/// # Errors
/// As [`super::need`].
pub fn needs(
    plans: &[Plan],
    named: &[PathBuf],
    consent: &Consent,
    exact: bool,
) -> Result<Vec<Need>> {
    let full: Vec<PathBuf> = named.iter().map(|path| full(path)).collect();
    let number = |name: Option<&TargetName>| number_of(full.iter().map(PathBuf::as_path), name);
    for cell in plans.iter().flat_map(Plan::cells) {
        // Nothing works on a target that was not checked for its consent.
        for target in cell.spec.targets() {
            number(target)?;
        }
    }
    let of = |target: usize| {
        let is_it = |name: Option<&TargetName>| number(name).is_ok_and(|own| own == target);
        let needs = plans
            .iter()
            .map(|plan| fit::need_of(plan, &is_it, consent.clone(), exact));
        Ok(fit::merge_needs(needs.collect::<Result<Vec<_>>>()?))
    };
    let needs = (0..named.len()).map(of).collect::<Result<Vec<_>>>()?;
    Ok(needs.into_iter().flatten().collect())
}

/// The targets of a run file beside the first.
pub(super) fn further<'a>(
    targets: impl Iterator<Item = (&'a Path, &'a Target)>,
) -> Vec<FurtherTarget> {
    let further = targets.enumerate().skip(1);
    let row = |(number, (named, target)): (usize, (&Path, &Target))| FurtherTarget {
        id: number as u32,
        target: named.display().to_string(),
        kind: kind_of(target),
        bytes: target.size(),
    };
    further.map(row).collect()
}

/// How a run file calls the kind of a target.
pub(super) fn kind_of(target: &Target) -> iolab_record::TargetKind {
    match target.kind() {
        TargetKind::Scratch => iolab_record::TargetKind::Scratch,
        TargetKind::File => iolab_record::TargetKind::File,
        TargetKind::BlockDevice => iolab_record::TargetKind::BlockDevice,
        TargetKind::CharDevice => iolab_record::TargetKind::CharDevice,
    }
}

#[cfg(test)]
mod tests {
    use iolab_plan::cells::OneProcess;

    use super::*;

    fn experiment(sets: &[&str]) -> Experiment {
        let mut experiment = Experiment::find("read-size").expect("built in");
        for set in sets {
            experiment.apply_set(set).expect("a setting");
        }
        experiment
    }

    fn settled(sets: &[&str], given: &[&str]) -> (Vec<PathBuf>, Vec<String>) {
        let mut experiment = experiment(sets);
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
        // What the command line says wins.
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
        let mut experiment = experiment(&["bs=4k"]);
        stripe_targets(&mut experiment, &paths).expect("striped");
        let targets = settle_targets(&mut experiment, &[]).expect("targets");
        assert_eq!(targets, paths);
    }

    #[test]
    fn the_targets_of_a_stripe_are_those_of_the_run() {
        let paths = ["/a", "/b", "/c"].map(PathBuf::from);
        let mut experiment = experiment(&["bs=4k", "stripe=64k"]);
        stripe_targets(&mut experiment, &paths).expect("striped");
        let levels: Vec<&str> = experiment.values("target").collect();
        assert_eq!(levels, ["/a", "/b", "/c", "/a:/b", "/a:/b:/c"]);
        let targets = settle_targets(&mut experiment, &[]).expect("targets");
        assert_eq!(targets, paths);
        let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
        let needs =
            needs(std::slice::from_ref(&plan), &targets, &Consent::No, false).expect("needs");
        // Each is used alone too, and needs the whole region for that.
        let most = |need: &Need| match need.size {
            iolab_storage::Size::AtMost { most, .. } => most,
            iolab_storage::Size::Exactly(bytes) => bytes,
        };
        let region = plan.cells()[0].spec.trial.region;
        assert!(needs.iter().all(|need| most(need) == region));
    }

    #[test]
    fn a_target_of_a_stripe_needs_its_part() {
        let (targets, levels) = settled(&["target=/a:/b"], &[]);
        assert_eq!(targets, ["/a", "/b"].map(PathBuf::from));
        assert_eq!(levels, ["/a:/b"]);
        let mut experiment = experiment(&["target=/a:/b", "bs=64k", "region=10M", "stripe=1M"]);
        settle_targets(&mut experiment, &[]).expect("targets");
        let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
        let needs =
            needs(std::slice::from_ref(&plan), &targets, &Consent::No, true).expect("needs");
        let sizes: Vec<_> = needs.into_iter().map(|need| need.size).collect();
        assert_eq!(sizes, vec![iolab_storage::Size::Exactly(5 << 20); 2]);
    }

    #[test]
    fn what_cannot_be_a_level_is_refused() {
        for given in [["/a", "/a"], ["/a", "/b\n"], ["/a", "/b:/c"]] {
            let given = given.map(PathBuf::from);
            let error = settle_targets(&mut experiment(&[]), &given).expect_err("refused");
            assert_eq!(error.kind(), iolab_workload::Kind::Usage, "{error}");
        }
    }

    #[test]
    fn a_group_that_names_the_runs_own_target_uses_the_same_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = format!("reader.target={}", folder.path().display());
        let of_both = |sets: &[&str]| {
            let mut experiment = Experiment::find("interference").expect("built in");
            let common = [
                "region=1M",
                "cache=cold",
                "writer.rate=none",
                "writer.verify=true",
            ];
            for set in common
                .iter()
                .chain(&["reader.read_percent=0", &own])
                .chain(sets)
            {
                experiment.apply_set(set)?;
            }
            let named = settle_targets(&mut experiment, &[folder.path().to_owned()])?;
            assert_eq!(named, [folder.path()]);
            let plan = Plan::of(experiment, &OneProcess)?;
            let needs = needs(std::slice::from_ref(&plan), &named, &Consent::No, true)?;
            let targets = Targets::open(&named, &needs)?;
            fit::fit_to(plan, crate::SystemUnderTest::Targets(&targets))
        };
        of_both(&["writer.offset=1M"]).expect("bytes of its own");
        let error = of_both(&["writer.offset=0"]).expect_err("they overwrite each other");
        insta::assert_snapshot!(error.message(), @"every trial: verify in group writer, and group reader writes the same bytes");
    }

    #[test]
    fn each_target_has_the_needs_of_its_own_cells() {
        let named = ["/a", "/b"].map(PathBuf::from);
        let sets = [
            ["target=/a", "read_percent=100"],
            ["target=/b", "read_percent=0"],
        ];
        let plans = sets.map(|sets| {
            let experiment = experiment(&[&["bs=4k,64k", "region=1M"], &sets[..]].concat());
            Plan::of_new_run(experiment, &OneProcess).expect("a plan")
        });
        let needs = needs(&plans, &named, &Consent::No, false).expect("needs");
        assert_eq!(needs.len(), 2);
        assert_eq!([needs[0].write, needs[1].write], [false, true]);
    }
}
