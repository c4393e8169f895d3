//! The targets of a run: open at once, each with its own consent check, found by the name that cells call it by.
//!
//! Assigns targets to an experiment: as levels of the factor `target`, or to a group each.

#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf, absolute};
use std::sync::atomic::AtomicBool;

use iolab_plan::cells::Plan;
use iolab_plan::experiment::{Experiment, GroupSetting, new_group_name};
use iolab_record::FurtherTarget;
use iolab_storage::{Consent, ExtraFiles, Need, PrivateFiles, Size, Target, TargetKind};
use iolab_workload::group::ALL;
use iolab_workload::names::TargetName;
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::{Backend, FileLayout, TrialSpec};
use iolab_workload::units::counted;
use iolab_workload::{Error, Result, usage_errors};

/// A region is cut to whole multiples of this, bytes.
pub(super) const REGION_UNIT: u64 = 4096;

/// The open targets, each with the path that the user gave. The first is the run's own: cells that name no target use it.
#[derive(Debug)]
pub struct Targets(Vec<(PathBuf, Target)>);

impl Targets {
    /// Opens each of them as its need allows. If one is refused, the files made for the others are removed.
    ///
    /// # Errors
    /// As [`Target::open_all`].
    pub fn open(named: &[PathBuf], needs: &[Need]) -> Result<Self> {
        Self::open_at(named, needs, &|named| Ok(named.to_owned()))
    }

    /// As [`Targets::open`], with names that stand for other paths in this process.
    ///
    /// # Errors
    /// As [`Target::open_all`], and any error of `place`.
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
        check_distinct(
            &opened,
            |(named, _)| named.as_path(),
            |(_, one), (_, other)| one.is_same(other),
        )?;
        match opened.is_empty() {
            true => {
                Err(Error::usage("no target is named").hint("name a directory, file or device"))
            }
            false => Ok(Self(opened)),
        }
    }

    /// Makes files of these sizes for programs in each directory, still empty.
    ///
    /// # Errors
    /// As [`Target::for_programs`].
    pub fn for_programs(directories: &[PathBuf], sizes: &[Vec<u64>]) -> Result<Self> {
        let each = directories.iter().zip(sizes);
        let opened = each.map(|(path, sizes)| Ok((full(path), Target::for_programs(path, sizes)?)));
        opened.collect::<Result<_>>().map(Self)
    }

    /// Each with its path from the root on; the run's own comes first.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Target)> {
        self.0
            .iter()
            .map(|(named, target)| (named.as_path(), target))
    }

    /// Has each of `count` processes fill a part of the scratch files that they share; see [`Target::divide`].
    pub fn divide(&mut self, count: u32, is_shared: &dyn Fn(&Path) -> bool) {
        let shared = self.0.iter_mut().filter(|(named, _)| is_shared(named));
        shared.for_each(|(_, target)| target.divide(count));
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

/// Refuses two names of the same: trials on one would be trials on the other.
pub(crate) fn check_distinct<T>(
    all: &[T],
    named: impl Fn(&T) -> &Path,
    is_same: impl Fn(&T, &T) -> bool,
) -> Result<()> {
    for (number, one) in all.iter().enumerate() {
        let mut before = all[..number].iter();
        if let Some(other) = before.find(|other| is_same(other, one)) {
            let [other, one] = [other, one].map(|name| named(name).display());
            return Err(Error::usage(format!("{other} and {one} are the same"))
                .hint("name each target once"));
        }
    }
    Ok(())
}

/// Needs of plans for each of these targets, if they are carried out one after the other; see [`self::need`].
///
/// # Errors
/// As [`self::need`].
pub fn needs(
    plans: &[Plan],
    named: &[PathBuf],
    consent: &Consent,
    exact: bool,
) -> Result<Vec<Need>> {
    let full: Vec<PathBuf> = named.iter().map(|path| full(path)).collect();
    let number = |name: Option<&TargetName>| number_of(full.iter().map(PathBuf::as_path), name);
    for cell in plans.iter().flat_map(Plan::cells) {
        // No trial uses a target that was not checked for its consent.
        for target in cell.spec.targets() {
            number(target)?;
        }
    }
    let of = |target: usize| {
        let is_it = |name: Option<&TargetName>| number(name).is_ok_and(|own| own == target);
        need_of(plans, &is_it, consent.clone(), exact)
    };
    (0..named.len()).map(of).collect()
}

/// The path from the root on, by which a run knows a target, however it is written: `disk/`, `./disk` and `x/../disk` are
/// one. `..` is resolved if it leads to the same place, which it does not after a symbolic link.
pub fn full(path: &Path) -> PathBuf {
    let from_root = absolute(path).unwrap_or_else(|_| path.to_owned());
    // Separators at the end and in a row are not part of the path.
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

/// The number of the target of this name; without a name, of the run's own target.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the run has none of this name.
pub fn number_of<'a>(
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

/// The block devices that the targets of a cell lie on, MAJOR and MINOR; `None` for one that lies on none.
///
/// # Errors
/// As [`number_of`].
pub(super) fn devices_of(
    targets: &[(&Path, &Target)],
    cell: &CellSpec,
) -> Result<Vec<Option<(u32, u32)>>> {
    let device = |name: Option<&TargetName>| {
        let number = number_of(targets.iter().map(|(named, _)| *named), name)?;
        Ok(targets.get(number).and_then(|(_, target)| target.device()))
    };
    cell.targets().into_iter().map(device).collect()
}

/// The further targets of a run file, after the first.
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

/// Kind of a target in a run file.
pub(super) fn kind_of(target: &Target) -> iolab_record::TargetKind {
    match target.kind() {
        TargetKind::Scratch => iolab_record::TargetKind::Scratch,
        TargetKind::File => iolab_record::TargetKind::File,
        TargetKind::BlockDevice => iolab_record::TargetKind::BlockDevice,
        TargetKind::CharDevice => iolab_record::TargetKind::CharDevice,
    }
}

/// Needs of an experiment for a target. `exact` is set when the user named the region's size: then it is not cut.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a cell that no target can serve.
pub fn need(plan: &Plan, consent: Consent, exact: bool) -> Result<Need> {
    need_of(std::slice::from_ref(plan), &|_| true, consent, exact)
}

/// Needs of plans that run one after another for one of their targets, which `is_it` recognises by name.
fn need_of(
    plans: &[Plan],
    is_it: &dyn Fn(Option<&TargetName>) -> bool,
    consent: Consent,
    exact: bool,
) -> Result<Need> {
    let mut cells: Vec<&CellSpec> = Vec::new();
    for plan in plans {
        let experiment = plan.experiment();
        usage_errors! {
            experiment.runs_programs() => format!("{} runs programs on files made for them, and cannot share a target", experiment.name),
                "run it by itself with iolab run";
        }
        for cell in plan.cells() {
            // One whose groups all have the rate 0 uses none, and is refused below.
            let targets = cell.spec.targets();
            if !targets.is_empty() && !targets.into_iter().any(is_it) {
                continue;
            }
            let checked = cell.spec.check();
            checked.map_err(|error| error.within(plan.describe(cell)))?;
            cells.push(&cell.spec);
        }
    }
    let specs = || cells.iter().flat_map(|cell| cell.trials_on(is_it));
    let most_of = |region: fn(&TrialSpec) -> u64| {
        let ends = specs().map(|spec| spec.offset.saturating_add(region(spec)));
        ends.max().unwrap_or(0)
    };
    let most = most_of(|spec| spec.region);
    let mut preconditions = plans
        .iter()
        .map(|plan| plan.experiment().design.precondition);
    Ok(Need {
        size: match exact {
            true => Size::Exactly(most),
            false => Size::AtMost {
                most,
                // Room for a request in each file of every thread.
                least: most_of(|spec| spec.smallest_region().next_multiple_of(REGION_UNIT))
                    .min(most),
            },
        },
        write: specs().any(TrialSpec::writes) || preconditions.any(|one| one.writes()),
        consent,
        beside: beside(cells.iter().map(|cell| cell.trials_on(is_it))),
        lends: cells.iter().any(|cell| cell.tool.is_peer()),
    })
}

/// The files that cells need in addition to the scratch file, from the groups of each cell.
fn beside<'a>(cells: impl Iterator<Item = Vec<&'a TrialSpec>>) -> ExtraFiles {
    let mut beside = ExtraFiles::default();
    for groups in cells {
        let mut fresh: u32 = 0;
        for spec in groups {
            if spec.backend == Backend::Null {
                continue;
            }
            let files = PrivateFiles {
                threads: spec.threads,
                bs: spec.bs,
                ranks: spec.workers() / spec.threads.max(1),
                files: spec.files,
            };
            if spec.layout == FileLayout::Private && !beside.private.contains(&files) {
                beside.private.push(files);
            }
            if spec.starts_fresh() {
                fresh = fresh.saturating_add(spec.files_of_all());
            }
        }
        beside.fresh = beside.fresh.max(fresh);
    }
    beside
}

/// Settles on the targets of an experiment: the user's, several of them as levels of the factor `target`; otherwise the
/// targets of its definition; otherwise the current directory. Targets that groups name come last.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a path that cannot be a level, one given twice, or what the experiment does not
/// take.
pub fn settle_targets(experiment: &mut Experiment, given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let setting = target_setting()?;
    let of_groups = experiment.group_values(setting.name);
    if of_groups.is_empty() {
        return settle_common(experiment, setting, given);
    }
    let mut all = match experiment.every_group_has(setting.name) {
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
    new_group_name(&last, "target", taken)
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
    let levels = experiment.common_values(setting.name);
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
