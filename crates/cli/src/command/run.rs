//! `iolab run`: one experiment.

use std::io::Write;
use std::path::Path;

use iolab_lab::experiment::Experiment;
use iolab_lab::runfile::NewFile;
use iolab_lab::{Error, Result, runner};

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
    let place = place_of(options.output.as_deref(), &experiment)?;
    let seed = changes.seed();
    bench.fill(seed)?;
    bench.look_around(std::slice::from_ref(&experiment));
    let mut display = bench.display(&experiment.name);
    let finished = runner::run(&experiment, seed, place, bench.setup(), &mut display);
    let path = display.kept_in().map(Path::to_owned);
    drop(display);
    bench.close()?;
    let finished = finished.inspect_err(|_| kept(path.as_deref()))?;
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

fn place_of<'a>(output: Option<&'a Path>, experiment: &'a Experiment) -> Result<NewFile<'a>> {
    match output {
        Some(path) => Ok(NewFile::At(path)),
        None => {
            let folder = Path::new(FOLDER);
            make_folder(folder)?;
            Ok(NewFile::In {
                folder,
                name: &experiment.name,
            })
        }
    }
}

/// Tells where the measurements of a run are that did not come to its end.
pub(crate) fn kept(path: Option<&Path>) {
    if let Some(path) = path {
        note(format_args!(
            "what was measured is kept in {}",
            path.display()
        ));
    }
}
