//! The targets of a run: open at once, each with its own consent check, found by the name that cells call it by.

mod assign;

pub use assign::{join_targets, settle_targets};

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iolab_storage::{Consent, Need, Target};
use iolab_workload::names::TargetName;
use iolab_workload::{Error, Result};

use super::Disk;
use super::target_needs::{merge_needs, need_of};
use super::target_numbers::{full, number_of};
use crate::ranks::Ranks;
use iolab_plan::cells::Plan;

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

/// Targets of a command: files and devices, which share the blocks of a run, and modelled disks, each in runs of its own.
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

/// Needs of plans for each of these targets, if they are carried out one after the other; see [`super::need`].
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
        // No trial uses a target that was not checked for its consent.
        for target in cell.spec.targets() {
            number(target)?;
        }
    }
    let of = |target: usize| {
        let is_it = |name: Option<&TargetName>| number(name).is_ok_and(|own| own == target);
        let needs = plans
            .iter()
            .map(|plan| need_of(plan, &is_it, consent.clone(), exact));
        Ok(merge_needs(needs.collect::<Result<Vec<_>>>()?))
    };
    let needs = (0..named.len()).map(of).collect::<Result<Vec<_>>>()?;
    Ok(needs.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use iolab_plan::cells::OneProcess;
    use iolab_plan::experiment::Experiment;

    use super::*;

    #[test]
    fn groups_on_the_runs_target_share_its_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = format!("reader.target={}", folder.path().display());
        let of_both = |sets: &[&str]| {
            let mut experiment = Experiment::find("interference").expect("built in");
            let common = [
                "region=1M", "cache=cold", "writer.rate=none", "writer.verify=true",
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
            crate::fit::fit_to(plan, crate::SystemUnderTest::Targets(&targets))
        };
        of_both(&["writer.offset=1M"]).expect("bytes of its own");
        let error = of_both(&["writer.offset=0"]).expect_err("they overwrite each other");
        insta::assert_snapshot!(error.message(), @"every trial: verify in group writer, and group reader writes the same bytes");
    }

    #[test]
    fn each_target_needs_what_its_cells_need() {
        let named = ["/a", "/b"].map(PathBuf::from);
        let sets = [
            ["target=/a", "read_percent=100"],
            ["target=/b", "read_percent=0"],
        ];
        let plans = sets.map(|sets| {
            let mut experiment = Experiment::find("read-size").expect("built in");
            for set in ["bs=4k,64k", "region=1M"].iter().chain(&sets) {
                experiment.apply_set(set).expect("a setting");
            }
            Plan::of_new_run(experiment, &OneProcess).expect("a plan")
        });
        let needs = needs(&plans, &named, &Consent::No, false).expect("needs");
        assert_eq!(needs.len(), 2);
        assert_eq!([needs[0].write, needs[1].write], [false, true]);
    }
}
