//! iolab-programs: everything that an experiment needs whose trials run programs: the programs, found or built, and the files
//! that they read.
//!
//! Files to begin with: `lib.rs` the trial, `builtin_reader.rs` the reader of `linkage`.

mod builtin_reader;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_host::program::{self, Arguments, Program};
use iolab_plan::cells::{Plan, PlannedCell};
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS};
use iolab_runner::{OpenedPrograms, ProgramExecutor, Programs, Targets, full, number_of};
use iolab_storage::{Need, Target};
use iolab_workload::command_template::{Placeholder, Template};
use iolab_workload::outcome::Outcome;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{CacheState, TrialSpec};
use iolab_workload::{Error, Result, usage_errors};

use builtin_reader::Probes;

/// Programs as trials.
pub const EXECUTOR: ProgramExecutor = ProgramExecutor {
    needs,
    open: Prepared::open,
};

/// Programs, found or built. Dropping it removes the builds.
#[derive(Debug)]
struct Prepared {
    probes: Option<Probes>,
    /// Each program with the file that it executes.
    files: Vec<(Template, PathBuf)>,
}

impl Prepared {
    /// Finds the programs of an experiment, makes its files in `directories`, still empty, and builds the reader if
    /// it is asked for. Cells that name no target work in the first directory.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not suit programs, a program that is not there, a
    /// directory that is none, a reader that cannot be built; of kind [`Refused`](iolab_workload::Kind::Refused) when the files would crowd the file
    /// system.
    fn open(plan: &Plan, directories: &[PathBuf]) -> Result<OpenedPrograms> {
        let cells = plan.cells();
        let mut all = cells.iter();
        if let Some(cell) = all.find(|cell| cell.spec.trial.cache == CacheState::Direct) {
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
        let mut files: Vec<(Template, PathBuf)> = found.collect::<Result<_>>()?;
        let targets = Targets::for_programs(directories, &sizes(cells, directories)?)?;
        let linkages = once(cells.iter().filter_map(|cell| cell.spec.linkage));
        let probes = (!linkages.is_empty()).then(|| Probes::build(&linkages));
        let probes = probes.transpose()?;
        files.extend(probes.iter().flat_map(Probes::files));
        Ok((targets, Box::new(Self { probes, files })))
    }
}

impl Programs for Prepared {
    fn environment(&self) -> Environment {
        if let Some(probes) = &self.probes {
            return probes.environment();
        }
        let mut list = Environment::default();
        for (number, (_, path)) in self.files.iter().enumerate() {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            let bytes = real.metadata().ok().map(|metadata| metadata.len());
            list.put(&KEYS.program_bytes.of(number + 1), bytes);
            let path = real.display().to_string();
            list.put(&KEYS.program_path.of(number + 1), path);
        }
        list
    }

    fn run(
        &self,
        cell: &CellSpec,
        place: &Target,
        clock: &Clock,
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let spec = &cell.trial;
        let missing = || Error::failed("a program or its file was not prepared for this cell");
        let file = place.sized_file(spec.region).map_err(|_| missing())?;
        let (program, mut files) = (cell.program(), self.files.iter());
        let found = files.find(|(own, _)| Some(own) == program.as_ref());
        let (template, path) = found.ok_or_else(missing)?;
        let arguments = Arguments::naming(vec![place.lend_sized(spec.region)?], |paths| {
            let path = paths.first().ok_or_else(missing)?;
            Ok::<_, Error>(template.arguments(path, spec.region, spec.bs))
        });
        let program = Program {
            path: path.clone(),
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
        place.sweep();
        ran.map(|ran| ran.outcome)
    }
}

/// Needs of a plan for each directory: its files there together.
fn needs(plan: &Plan, directories: &[PathBuf]) -> Result<Vec<Need>> {
    let all = sizes(plan.cells(), directories)?.into_iter();
    let together = |sizes: Vec<u64>| sizes.into_iter().fold(0, u64::saturating_add);
    Ok(all.map(together).map(Need::writing).collect())
}

/// For each of these directories, the size of each file that cells need there, bytes.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a cell names another target.
fn sizes(cells: &[PlannedCell], directories: &[PathBuf]) -> Result<Vec<Vec<u64>>> {
    let named: Vec<PathBuf> = directories.iter().map(|path| full(path)).collect();
    let mut sizes = vec![BTreeSet::new(); named.len()];
    for cell in cells {
        let names = named.iter().map(PathBuf::as_path);
        let number = number_of(names, cell.spec.target.as_ref())?;
        sizes[number].insert(cell.spec.trial.region);
    }
    Ok(sizes.into_iter().map(Vec::from_iter).collect())
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
        let mut programs = cells.iter().filter_map(|cell| cell.spec.program());
        !varies || programs.any(uses)
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

    fn open(sets: &[&str]) -> (tempfile::TempDir, Result<OpenedPrograms>) {
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
        let (targets, programs) = programs.expect("prepared");
        let (_, place) = targets.iter().next().expect("one");
        let stop = AtomicBool::new(false);
        targets.fill(1, &stop, &mut |_| {}).expect("filled");
        assert_eq!(targets.fill_bytes(), 105_000);
        let clock = Clock::calibrate();
        for cell in iolab_plan::cells::cells(&experiment(&sets)).expect("valid") {
            // An account that is found among collected children includes threads of other tests: ended ones add to it, and one
            // that ends meanwhile may be counted twice before it. So there is no upper bound, and one run of three is enough.
            let size = cell.spec.trial.region;
            let has_read = || {
                let outcome = programs
                    .run(&cell.spec, place, &clock, &stop)
                    .expect("runs");
                assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
                outcome.counters.process_io.is_none() || outcome.operations.read.bytes >= size
            };
            assert!((0..3).any(|_| has_read()), "less than {size}");
        }
        let environment = programs.environment();
        assert!(environment.get(&KEYS.program_path.of(1)).is_some());
        targets.remove().expect("removed");
        assert!(is_empty(&folder));
    }
}
