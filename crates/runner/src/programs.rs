//! Everything that an experiment needs whose trials run programs: the programs, found or built, and the files that
//! they read.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_host::program::{self, Arguments, Program};
use iolab_storage::{Need, ProgramFiles, Target};
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{CacheState, TrialSpec};
use iolab_workload::{Error, Result, usage_errors};

use super::targets::{full, number_of};
use crate::builtin_reader::Probes;
use iolab_plan::cells::{Plan, PlannedCell};
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS};
use iolab_workload::command_template::{Linkage, Placeholder, Template};
use iolab_workload::settings::CellSpec;

/// The programs of `command` that the user allows a run to start. A file that names a program is not a consent: the file
/// may come from someone else. The reader of `linkage` is iolab's own.
#[derive(Debug, Clone)]
pub enum RunPrograms {
    /// Every program (`--run-programs`).
    All,
    /// The commands that the command line names.
    Typed(Vec<Template>),
}

impl RunPrograms {
    /// Refuses a plan with a command that the user does not allow.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused).
    pub fn check(&self, plan: &Plan) -> Result<()> {
        commands(plan.cells()).try_for_each(|command| self.allow(command))
    }

    fn allow(&self, command: &Template) -> Result<()> {
        match self {
            Self::Typed(typed) if !typed.contains(command) => Err(Error::refused(format!(
                "refusing to start a program that a file names: {command}"
            ))
            .hint("read what --dry-run lists; to start it, add --run-programs")),
            Self::All | Self::Typed(_) => Ok(()),
        }
    }
}

/// Programs ready to be run, and a file for each size. Dropping it removes the files and the builds.
#[derive(Debug)]
pub struct Programs {
    /// Each with its path; the run's own first.
    folders: Vec<(PathBuf, ProgramFiles)>,
    probes: Option<Probes>,
    /// Commands that the user allows, each with the file that it executes.
    commands: Vec<(Template, PathBuf)>,
}

impl Programs {
    /// Finds the programs of an experiment, makes its files in `directories`, still empty, and builds the reader if
    /// it is asked for. Cells that name no target work in the first directory.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): a program that the user does not allow; of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not suit programs, a program that is not there, a
    /// directory that is none,
    /// a reader that cannot be built; of kind [`Refused`](iolab_workload::Kind::Refused) when the files would crowd the file
    /// system.
    pub fn open(plan: &Plan, directories: &[PathBuf], consent: &RunPrograms) -> Result<Self> {
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
        let allowed = commands(cells).map(|command| {
            consent.allow(command)?;
            Ok((command.clone(), Program::find(command.program())?))
        });
        let commands = allowed.collect::<Result<_>>()?;
        let named: Vec<PathBuf> = directories.iter().map(|path| full(path)).collect();
        let sizes = sizes(cells, &named)?;
        let folders = directories.iter().zip(named).zip(sizes);
        let folders = folders
            .map(|((directory, named), sizes)| Ok((named, ProgramFiles::open(directory, &sizes)?)));
        let folders = folders.collect::<Result<_>>()?;
        let mut linkages: Vec<Linkage> = Vec::new();
        for linkage in cells.iter().filter_map(|cell| cell.spec.linkage) {
            if !linkages.contains(&linkage) {
                linkages.push(linkage);
            }
        }
        let probes = (!linkages.is_empty()).then(|| Probes::build(&linkages));
        Ok(Self {
            folders,
            probes: probes.transpose()?,
            commands,
        })
    }

    /// Needs of an experiment for each directory: its files there together.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a cell names another target.
    pub fn needs(plan: &Plan, directories: &[PathBuf]) -> Result<Vec<Need>> {
        let named: Vec<PathBuf> = directories.iter().map(|path| full(path)).collect();
        let all = sizes(plan.cells(), &named)?;
        let together = |sizes: Vec<u64>| sizes.into_iter().fold(0, u64::saturating_add);
        Ok(all.into_iter().map(together).map(Need::writing).collect())
    }

    /// For each directory, with its path: its device, its file system, the remarks on it.
    pub fn places(&self) -> impl Iterator<Item = (&Path, &Target)> {
        let folders = self.folders.iter();
        folders.map(|(named, folder)| (named.as_path(), folder.place()))
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.folders.iter().map(|(_, folder)| folder.bytes()).sum()
    }

    /// Fills every file with incompressible data; `progress` gets the bytes written so far.
    ///
    /// # Errors
    /// When a write fails, or soon after `stop` is raised.
    pub fn fill(&self, seed: u64, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut before = 0;
        for (_, folder) in &self.folders {
            folder.fill(seed, stop, &mut |done| progress(before + done))?;
            before += folder.bytes();
        }
        Ok(())
    }

    /// Removes the files and the builds.
    ///
    /// # Errors
    /// When a file cannot be removed; the others are removed all the same.
    pub fn close(self) -> Result<()> {
        let removed = self.folders.into_iter().map(|(_, folder)| folder.remove());
        removed.fold(Ok(()), Result::and)
    }

    /// Facts about the programs for the run file.
    pub(super) fn environment(&self) -> Environment {
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

    /// One trial.
    pub(super) fn run(&self, cell: &CellSpec, clock: &Clock, stop: &AtomicBool) -> Result<Outcome> {
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

/// The size of each file that cells need in each of these directories, bytes.
fn sizes(cells: &[PlannedCell], named: &[PathBuf]) -> Result<Vec<Vec<u64>>> {
    let mut sizes: Vec<Vec<u64>> = vec![Vec::new(); named.len()];
    for cell in cells {
        let number = number_of(
            named.iter().map(PathBuf::as_path),
            cell.spec.target.as_ref(),
        )?;
        sizes[number].push(cell.spec.trial.region);
    }
    for sizes in &mut sizes {
        sizes.sort_unstable();
        sizes.dedup();
    }
    Ok(sizes)
}

/// Every command of the cells once.
fn commands(cells: &[PlannedCell]) -> impl Iterator<Item = &Template> {
    let mut found: Vec<&Template> = Vec::new();
    for command in cells.iter().filter_map(|cell| cell.spec.command.as_ref()) {
        if !found.contains(&command) {
            found.push(command);
        }
    }
    found.into_iter()
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
    use crate::tests::experiment;

    fn is_empty(folder: &tempfile::TempDir) -> bool {
        std::fs::read_dir(folder.path()).expect("readable").count() == 0
    }

    fn open(sets: &[&str]) -> (tempfile::TempDir, Result<Programs>) {
        open_with(sets, RunPrograms::All)
    }

    fn open_with(sets: &[&str], consent: RunPrograms) -> (tempfile::TempDir, Result<Programs>) {
        let folder = tempfile::tempdir().expect("a folder");
        let experiment = experiment("linkage", sets);
        let programs = Plan::of(experiment, &OneProcess)
            .and_then(|plan| Programs::open(&plan, &[folder.path().to_owned()], &consent));
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
    fn only_a_typed_command_starts_without_consent() {
        let typed = |command: &str| RunPrograms::Typed(vec![command.parse().expect("valid")]);
        for (sets, consent, is_allowed) in [
            (&["command=cat {file}"][..], typed("cat {file}"), true),
            (&["command=cat {file}"], typed("dd if={file}"), false),
            (
                &["command=cat {file},dd if={file}"],
                typed("cat {file}"),
                false,
            ),
            (&["command=cat {file},dd if={file}"], RunPrograms::All, true),
        ] {
            let (_folder, programs) = open_with(sets, consent);
            match programs {
                Ok(_) => assert!(is_allowed, "{sets:?}"),
                Err(error) => {
                    assert!(!is_allowed, "{sets:?}: {error:?}");
                    assert_eq!(error.kind(), Kind::Refused);
                }
            }
        }
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
        let experiment = experiment("linkage", &sets);
        for cell in iolab_plan::cells::cells(&experiment).expect("valid") {
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
