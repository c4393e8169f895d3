//! `iolab resume`: the rest of a run that was cut off.

use std::path::Path;

use iolab_engine::target::{Need, Size};
use iolab_lab::experiment::Experiment;
use iolab_lab::record::{RunRecord, RunStatus};
use iolab_lab::{Result, runfile, runner};

use crate::arguments::Resume;
use crate::bench::Bench;
use crate::command::{read_run, run::kept};
use crate::exit::Outcome;
use crate::output::{self, Results, note};

fn open(record: &RunRecord, options: &Resume) -> Result<Bench> {
    let target = Path::new(&record.run.target);
    let source = options.file.display().to_string();
    let experiment = Experiment::from_toml(&record.experiment.toml, &source)?;
    if experiment.runs_programs() {
        return Bench::for_programs(target, &experiment);
    }
    let need = Need {
        size: Size::Exactly(record.run.target_bytes),
        ..runner::need(&experiment, options.consent.consent(), true)?
    };
    Bench::open(target, &need)
}

/// Prepares the target as the run had it and finishes the plan.
pub(crate) fn resume(options: &Resume) -> Outcome {
    let record = runfile::read(&options.file)?;
    if record.run.status == RunStatus::Done {
        runfile::settle(&options.file)?;
        note(format_args!(
            "note: the plan of {} is carried out already",
            options.file.display()
        ));
    } else {
        let mut bench = open(&record, options)?;
        bench.fill(record.run.seed)?;
        let source = options.file.display().to_string();
        bench.look_around(&[Experiment::from_toml(&record.experiment.toml, &source)?]);
        let mut display = bench.display(&record.experiment.name);
        let finished = runner::resume(&options.file, bench.setup(), &mut display);
        drop(display);
        bench
            .close_after(finished)
            .inspect_err(|_| kept(Some(&options.file)))?;
    }
    let mut to = Results::new();
    let (record, analysis) = read_run(&options.file)?;
    output::report(&record, &analysis, &mut to)?;
    Ok(to.end(options.file.display())?)
}
