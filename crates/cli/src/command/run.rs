//! `iolab run`: one experiment.

use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_lab::experiment::Experiment;
use iolab_lab::{Error, Result, runfile, runner};

use crate::arguments::Run;
use crate::bench::{Bench, make_folder};
use crate::command::read_analysis;
use crate::exit::Outcome;
use crate::output::{self, note};

/// Folder of run files that nobody named.
const FOLDER: &str = "iolab-results";

/// Runs the experiment and says what was found.
pub(crate) fn run(options: &Run) -> Outcome {
    let changes = &options.changes;
    let mut experiment = Experiment::find(&options.experiment)?;
    if let Some(left_out) = changes.apply(&mut experiment, &options.target)? {
        note(format_args!("note: {left_out}"));
    }
    if let Some(finer) = options.refine {
        experiment.apply_set(&format!("refine={finer}"))?;
    }
    // Everything that can be refused is refused before anything is written.
    check_output(options.output.as_deref())?;
    let mut bench = open(options, &mut experiment)?;
    runner::check(&experiment, bench.target())?;
    let path = path_of(options.output.as_deref(), &experiment)?;
    let seed = changes.seed();
    bench.fill(seed)?;
    bench.look_around(std::slice::from_ref(&experiment));
    let mut display = bench.display(&experiment.name);
    let finished = runner::run(&experiment, seed, &path, bench.setup(), &mut display);
    drop(display);
    bench.close()?;
    let finished = finished.inspect_err(|_| kept(&path))?;
    let mut to = output::open(None)?;
    output::report(&read_analysis(&finished.path)?, &mut to)?;
    to.flush()?;
    note(format_args!("\nrun file: {}", finished.path.display()));
    Ok(())
}

fn open(options: &Run, experiment: &mut Experiment) -> Result<Bench> {
    if experiment.runs_programs() {
        return Bench::for_programs(&options.target, experiment);
    }
    let changes = &options.changes;
    let exact = changes.has("region");
    let need = runner::need(experiment, changes.consent.consent(), exact)?;
    let bench = Bench::open(&options.target, &need)?;
    if !changes.has("cache") {
        bench.settle_cache(std::slice::from_mut(experiment))?;
    }
    Ok(bench)
}

fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(path) = output else { return Ok(()) };
    if path.symlink_metadata().is_ok() {
        return Err(output::exists(path));
    }
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(Error::usage(format!("{} is no folder", folder.display()))
                .hint("make it first, or name another file with -o"))
        }
        _ => Ok(()),
    }
}

fn path_of(output: Option<&Path>, experiment: &Experiment) -> Result<PathBuf> {
    match output {
        Some(path) => Ok(path.to_owned()),
        None => {
            make_folder(Path::new(FOLDER))?;
            Ok(runfile::unique_path(Path::new(FOLDER), &experiment.name))
        }
    }
}

/// Tells where the measurements of a run are that did not come to its end.
pub(crate) fn kept(path: &Path) {
    if path.exists() {
        note(format_args!(
            "what was measured is kept in {}",
            path.display()
        ));
    }
}
