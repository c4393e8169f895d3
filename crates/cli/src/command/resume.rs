//! `iolab resume`: the rest of a run that was cut off.

use std::path::Path;
use std::rc::Rc;

use iolab_analysis::fitness::Answer;
use iolab_plan::cells::Plan;
use iolab_plan::experiment::Experiment;
use iolab_ranks::Ranks;
use iolab_record::{RunRecord, RunStatus, TargetKind};
use iolab_report::input::Input;
use iolab_run::runner;
use iolab_runfile::RunFile;
use iolab_spec::quantity::counted;
use iolab_spec::{Error, Result};
use iolab_target::Size;

use crate::arguments::Resume;
use crate::command::{read_run, slo};
use crate::exit::{Failure, Outcome, answered, with_kept};
use crate::output::{self, Results, note};
use crate::workspace::Workspace;

fn open(
    record: &RunRecord,
    plan: &mut Plan,
    options: &Resume,
    ranks: Option<Rc<Ranks>>,
) -> Result<Workspace> {
    let targets = runner::target_paths(record);
    if let Some(ranks) = &ranks {
        ranks.span_plan(plan)?;
    }
    if plan.experiment().runs_programs() {
        return Workspace::for_programs(&targets, plan);
    }
    let mut needs = runner::needs(plan, &targets, &options.consent.consent(), true)?;
    let further = record.further_targets.iter().map(|target| target.bytes);
    let sizes = std::iter::once(record.run.target_bytes).chain(further);
    for (need, bytes) in needs.iter_mut().zip(sizes) {
        need.size = Size::Exactly(bytes);
    }
    let mut workspace = Workspace::open(&targets, &needs, ranks.as_deref())?;
    if let Some(ranks) = ranks {
        workspace.share(ranks, &needs)?;
    }
    Ok(workspace)
}

/// Refuses to go on with another number of processes than the run began with.
fn check_ranks(record: &RunRecord, file: &Path, ranks: Option<&Rc<Ranks>>) -> Result<()> {
    let (before, now) = (
        record.ranks.len().max(1),
        ranks.map_or(1, |ranks| ranks.count()),
    );
    if before == now {
        return Ok(());
    }
    let place = file.display();
    let (before_text, now_text) = (counted(before as u64, "rank"), counted(now as u64, "rank"));
    Err(Error::usage(format!(
        "the run in {place} is one of {before_text}, not of {now_text}"
    ))
    .hint(match before {
        1 => format!("start one: iolab resume {place}"),
        _ => format!("start as many: mpirun -n {before} iolab resume {place}"),
    }))
}

/// Prepares the target as the run had it and finishes the plan.
pub(crate) fn resume(options: &Resume, ranks: Option<Rc<Ranks>>) -> Outcome {
    let record = iolab_runfile::read(&options.file)?;
    let mut path = options.file.clone();
    if record.run.status == RunStatus::Done {
        iolab_runfile::settle(&options.file)?;
        note(format_args!(
            "note: the run in {} is already complete",
            options.file.display()
        ));
    } else {
        if record.run.target_kind == TargetKind::Model {
            return Err(Error::usage(
                "a run on a model cannot be resumed: the state of the model is not kept",
            )
            .hint("run it again; the same seed gives the same results")
            .into());
        }
        check_ranks(&record, &options.file, ranks.as_ref())?;
        // What cannot be written is noticed before the target is filled.
        drop(RunFile::open_resume(&options.file)?);
        let source = options.file.display().to_string();
        let mut plan = Plan::of(Experiment::from_toml(&record.experiment.toml, &source)?)?;
        let mut workspace = open(&record, &mut plan, options, ranks)?;
        workspace.fill(record.run.seed)?;
        workspace.look_around(std::slice::from_ref(&plan));
        let mut display = workspace.display(&record.experiment.name);
        let finished = runner::resume(&options.file, plan, workspace.setup(), &mut display);
        let now = display.kept_in().map(Path::to_owned);
        drop(display);
        path = now.unwrap_or(path);
        workspace
            .close_after(finished.map_err(Failure::from))
            .map_err(|failure| with_kept(failure, Some(&path)))?;
    }
    let mut to = Results::new();
    let run = read_run(&path)?;
    // A definition that this iolab cannot read leaves the numbers readable.
    let asked = Experiment::from_toml(&record.experiment.toml, "run file").ok();
    let answer = match asked {
        Some(asked) => slo::answer(&asked, &path, &mut to)?,
        None => None,
    };
    if answer.is_none() {
        output::run(&Input::new(path.clone(), run), false, &mut to)?;
    }
    to.end(path.display())?;
    answered(answer.unwrap_or(Answer::Yes))
}
