//! iolab-programs: everything that an experiment needs whose trials run programs: the programs, found or built, and the files
//! that they read.
//!
//! Files to begin with: `lib.rs` the trial, `builtin_reader.rs` the reader of `linkage`.

mod builtin_reader;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_host::program::{self, Arguments, Program};
use iolab_plan::cells::{Plan, PlannedCell};
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS};
use iolab_runner::{ProgramExecutor, Programs, full, number_of};
use iolab_storage::{Need, ProgramFiles, Target};
use iolab_workload::command_template::{Placeholder, Template};
use iolab_workload::outcome::Outcome;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{CacheState, TrialSpec};
use iolab_workload::{Error, Result, usage_errors};

use builtin_reader::Probes;

/// Programs as trials.
pub const EXECUTOR: ProgramExecutor = ProgramExecutor {
    needs,
    open: |plan, directories| Ok(Box::new(Prepared::open(plan, directories)?)),
};

/// Programs, found or built, and a file for each size. Dropping it removes the files and the builds.
#[derive(Debug)]
struct Prepared {
    /// Each with its path; the run's own first.
    folders: Vec<(PathBuf, ProgramFiles)>,
    probes: Option<Probes>,
    /// Each command with the file that it executes.
    commands: Vec<(Template, PathBuf)>,
}

impl Prepared {
    /// Finds the programs of an experiment, makes its files in `directories`, still empty, and builds the reader if
    /// it is asked for. Cells that name no target work in the first directory.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not suit programs, a program that is not there, a
    /// directory that is none, a reader that cannot be built; of kind [`Refused`](iolab_workload::Kind::Refused) when the files would crowd the file
    /// system.
    fn open(plan: &Plan, directories: &[PathBuf]) -> Result<Self> {
        let cells = plan.cells();
        if let Some(cell) = cells
            .iter()
            .find(|cell| cell.spec.trial.cache == CacheState::Direct)
        {
            return Err(Error::usage(
                "cache is direct, but iolab cannot change how a program opens its file",
            )
            .hint("set cache=hot (read before each trial) or cache=cold (dropped before each)")
            .within(plan.describe(cell)));
        }
        check_effects(plan.experiment(), cells)?;
        let commands = once(cells.iter().filter_map(|cell| cell.spec.command.clone()));
        let found = commands.into_iter().map(|command| {
            let path = Program::find(command.program())?;
            Ok((command, path))
        });
        let commands = found.collect::<Result<_>>()?;
        let folders = directories.iter().zip(sizes(cells, directories)?);
        let folders = folders
            .map(|(directory, (named, sizes))| Ok((named, ProgramFiles::open(directory, &sizes)?)));
        let folders = folders.collect::<Result<_>>()?;
        let linkages = once(cells.iter().filter_map(|cell| cell.spec.linkage));
        let probes = (!linkages.is_empty()).then(|| Probes::build(&linkages));
        Ok(Self {
            folders,
            probes: probes.transpose()?,
            commands,
        })
    }

    fn path(&self, cell: &CellSpec, template: &Template) -> Option<&Path> {
        match cell.linkage {
            Some(linkage) => self.probes.as_ref()?.path(linkage),
            None => {
                let mut commands = self.commands.iter();
                let (_, path) = commands.find(|(command, _)| command == template)?;
                Some(path)
            }
        }
    }
}

impl Programs for Prepared {
    fn places(&self) -> Vec<(&Path, &Target)> {
        let folders = self.folders.iter();
        let places = folders.map(|(named, folder)| (named.as_path(), folder.place()));
        places.collect()
    }

    fn bytes(&self) -> u64 {
        self.folders.iter().map(|(_, folder)| folder.bytes()).sum()
    }

    fn fill(&self, seed: u64, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut before = 0;
        for (_, folder) in &self.folders {
            folder.fill(seed, stop, &mut |done| progress(before + done))?;
            before += folder.bytes();
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let removed = self.folders.into_iter().map(|(_, folder)| folder.remove());
        removed.fold(Ok(()), Result::and)
    }

    fn environment(&self) -> Environment {
        let probes = self.probes.as_ref();
        let mut list = probes.map_or_else(Environment::default, Probes::environment);
        for (number, (_, path)) in self.commands.iter().enumerate() {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            let bytes = real.metadata().ok().map(|metadata| metadata.len());
            list.put(&KEYS.program_bytes.of(number + 1), bytes);
            let path = real.display().to_string();
            list.put(&KEYS.program_path.of(number + 1), path);
        }
        list
    }

    fn run(&self, cell: &CellSpec, clock: &Clock, stop: &AtomicBool) -> Result<Outcome> {
        let spec = &cell.trial;
        let missing = || Error::failed("a program or its file was not prepared for this cell");
        let names = self.folders.iter().map(|(named, _)| named.as_path());
        let (_, folder) = &self.folders[number_of(names, cell.target.as_ref())?];
        let file = folder.file(spec.region).ok_or_else(missing)?;
        let template = cell.program().ok_or_else(missing)?;
        let arguments = Arguments::naming(vec![folder.lend(spec.region)?], |paths| {
            let path = paths.first().ok_or_else(missing)?;
            Ok::<_, Error>(template.arguments(path, spec.region, spec.bs))
        });
        let program = Program {
            path: self.path(cell, &template).ok_or_else(missing)?.to_owned(),
            arguments: arguments?,
            time_limit: spec.limit.time,
            output_max: None,
        };
        let whole = TrialSpec {
            region: file.size(),
            cache: spec.cache,
            ..TrialSpec::default()
        };
        let files = [(file, 0..whole.region)];
        let ran = program::run(&program, &files, &whole, clock, stop);
        folder.sweep();
        ran.map(|ran| ran.outcome)
    }
}

/// Needs of a plan for each directory: its files there together.
fn needs(plan: &Plan, directories: &[PathBuf]) -> Result<Vec<Need>> {
    let all = sizes(plan.cells(), directories)?.into_iter();
    let together = |sizes: Vec<u64>| sizes.into_iter().fold(0, u64::saturating_add);
    Ok(all
        .map(|(_, sizes)| Need::writing(together(sizes)))
        .collect())
}

/// For each of these directories, its path from the root on, and the size of each file that cells need there, bytes.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a cell names another target.
fn sizes(cells: &[PlannedCell], directories: &[PathBuf]) -> Result<Vec<(PathBuf, Vec<u64>)>> {
    let named = directories.iter().map(|path| (full(path), Vec::new()));
    let mut all: Vec<(PathBuf, Vec<u64>)> = named.collect();
    for cell in cells {
        let names = all.iter().map(|(named, _)| named.as_path());
        let number = number_of(names, cell.spec.target.as_ref())?;
        all[number].1.push(cell.spec.trial.region);
    }
    for (_, sizes) in &mut all {
        sizes.sort_unstable();
        sizes.dedup();
    }
    Ok(all)
}

/// Each value once.
fn once<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Refuses a factor that no command would notice: all of its levels would be the same.
fn check_effects(experiment: &Experiment, cells: &[PlannedCell]) -> Result<()> {
    let noticed = |name: &str, by: &[Placeholder]| {
        let varies = experiment.factors.iter().any(|f| f.of.is(name));
        let uses = |t: Template| by.iter().any(|placeholder| t.uses(*placeholder));
        !varies
            || cells
                .iter()
                .filter_map(|cell| cell.spec.program())
                .any(uses)
    };
    usage_errors! {
        !noticed("region", &[Placeholder::File, Placeholder::Size]) => "the file's size varies, but the command has neither {file} nor {size}",
            "put one of them into the command, or fix the size with --size 4KiB";
        !noticed("bs", &[Placeholder::Bs]) => "bs varies, but the command has no {bs}",
            "put it into the command, or give bs one value";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use iolab_plan::cells::OneProcess;
    use iolab_workload::Kind;

    use super::*;

    fn experiment(sets: &[&str]) -> Experiment {
        let mut experiment = Experiment::find("linkage").expect("built in");
        for set in sets {
            experiment.apply_set(set).expect("a valid setting");
        }
        experiment
    }

    fn is_empty(folder: &tempfile::TempDir) -> bool {
        std::fs::read_dir(folder.path()).expect("readable").count() == 0
    }

    fn open(sets: &[&str]) -> (tempfile::TempDir, Result<Box<dyn Programs>>) {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = Plan::of(experiment(sets), &OneProcess)
            .and_then(|plan| (EXECUTOR.open)(&plan, &[folder.path().to_owned()]));
        (folder, programs)
    }

    #[test]
    fn impossible_programs_are_refused_before_making_anything() {
        let told = [
            &["cache=direct"][..],
            &["command=cat /dev/null"],
            &["command=cat {file}", "bs=1,2"],
            &["command=cat {file},no-such-program-anywhere {file}"],
        ]
        .map(|sets| {
            let (folder, programs) = open(sets);
            let error = programs.expect_err("refused");
            assert_eq!(error.kind(), Kind::Usage);
            assert!(is_empty(&folder));
            error.message().to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        region=1, linkage=static: cache is direct, but iolab cannot change how a program opens its file
        the file's size varies, but the command has neither {file} nor {size}
        bs varies, but the command has no {bs}
        there is no program 'no-such-program-anywhere' in PATH
        ");
    }

    #[test]
    fn a_command_reads_the_file_of_its_cell() {
        let sets = ["command=cat {file}", "region=5000,100000"];
        let (folder, programs) = open(&sets);
        let programs = programs.expect("prepared");
        let stop = AtomicBool::new(false);
        programs.fill(1, &stop, &mut |_| {}).expect("filled");
        assert_eq!(programs.bytes(), 105_000);
        let clock = Clock::calibrate();
        for cell in iolab_plan::cells::cells(&experiment(&sets)).expect("valid") {
            // An account that is found among collected children includes threads of other tests: ended ones add to it, and one
            // that ends meanwhile may be counted twice before it. So there is no upper bound, and one run of three is enough.
            let size = cell.spec.trial.region;
            let has_read = || {
                let outcome = programs.run(&cell.spec, &clock, &stop).expect("runs");
                assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
                outcome.counters.process_io.is_none() || outcome.operations.read.bytes >= size
            };
            assert!((0..3).any(|_| has_read()), "less than {size}");
        }
        let environment = programs.environment();
        assert!(environment.get(&KEYS.program_path.of(1)).is_some());
        programs.close().expect("removed");
        assert!(is_empty(&folder));
    }
}
