//! `iolab fit`: is this storage good enough for a purpose: yes, no, or cannot tell.

use std::io::Write;
use std::path::Path;

use iolab_analysis::fitness::{CellAnswer, Evidence};
use iolab_plan::cells::Plan;
use iolab_plan::experiment::Experiment;
use iolab_plan::forecast::Forecast;
use iolab_plan::requirement::{Requirement, Workload};
use iolab_report::fitness::{Fitness, Found};
use iolab_report::forecast;
use iolab_run::runner::{self, Disk};
use iolab_runfile::NewFile;
use iolab_spec::Result;
use iolab_spec::access::requests_in_words;
use iolab_spec::units::{parse_duration, rough_duration};

use crate::arguments::{Fit, ModelFormat};
use crate::builtin::Builtin;
use crate::changes::new_seed;
use crate::dry_run;
use crate::exit::{Outcome, answered, with_kept};
use crate::output::{self, Results, note};
use crate::workspace::{Workspace, make_folder};

/// Measures what the requirement asks, and answers.
pub(crate) fn fit(options: &Fit) -> Outcome {
    Builtin::Requirement.check(&options.requirement)?;
    let mut requirement = Requirement::find(&options.requirement)?;
    if let Some(hold) = &options.hold {
        requirement.hold_for(parse_duration(hold).map_err(|error| error.within("--for"))?)?;
    }
    let model = Disk::of_target(&options.target)?;
    let mut limits = Vec::new();
    let in_place = !options.target.is_dir() && requirement.write_in_place()?;
    if in_place && model.is_none() {
        limits.push(
            "Not covered: the cost of space allocation for a growing log, because TARGET is overwritten in place. A directory as TARGET includes it."
                .to_owned(),
        );
    }
    if let Some(disk) = &model {
        limits.extend(adapt(&mut requirement, disk)?);
    }
    let experiments = requirement.workloads.iter().map(|w| w.experiment.clone());
    let mut plans: Vec<Plan> = experiments.map(Plan::of_new_run).collect::<Result<_>>()?;
    let need = || runner::need_of_all(&plans, &options.consent.consent(), false);
    if options.dry_run {
        let needs = model.is_none().then(need).transpose()?;
        let needs: Vec<_> = needs.into_iter().collect();
        let target = std::slice::from_ref(&options.target);
        return dry_run::print_with(&plans, target, &needs, &announced(&requirement)?);
    }
    let mut workspace = match model {
        Some(disk) => Workspace::for_model(disk)?,
        None => Workspace::open(std::slice::from_ref(&options.target), &[need()?], None)?,
    };
    workspace.settle_cache(&mut plans)?;
    for plan in &mut plans {
        runner::fit_to(plan, workspace.place())?;
    }
    make_folder(&options.output)?;
    for plan in &plans {
        iolab_runfile::check_place(in_folder(&options.output, plan.experiment()))?;
    }
    let seed = options.seed.unwrap_or_else(new_seed);
    workspace.fill(seed)?;
    workspace.look_around(&plans);
    for text in announced(&requirement)? {
        note(format_args!("{text}"));
    }
    let found = measure(&requirement, plans, seed, &workspace, &options.output);
    let found = workspace.close_after(found)?;
    let files: Vec<String> = found.iter().map(|found| found.file.clone()).collect();
    let target = options.target.display().to_string();
    let fitness = Fitness {
        requirement: &requirement,
        target: &target,
        found,
        limits,
    };
    let mut to = Results::new();
    match options.format {
        ModelFormat::Text => write!(to, "{}", fitness.text(output::style().width))?,
        ModelFormat::Json => writeln!(to, "{:#}", fitness.json())?,
    }
    to.flush()?;
    note(format_args!("\nrun files: {}", files.join(", ")));
    let answer = fitness.answer();
    to.end(files.join(" "))?;
    answered(answer)
}

fn in_folder<'a>(folder: &'a Path, experiment: &'a Experiment) -> NewFile<'a> {
    NewFile::In {
        folder,
        name: &experiment.name,
    }
}

/// Carries the workloads out one after the other, and judges each.
fn measure(
    requirement: &Requirement,
    plans: Vec<Plan>,
    seed: u64,
    workspace: &Workspace,
    folder: &Path,
) -> Outcome<Vec<Found>> {
    let mut found = Vec::new();
    let mut told = Vec::new();
    for ((number, plan), workload) in plans.into_iter().enumerate().zip(&requirement.workloads) {
        let experiment = plan.experiment().clone();
        let place = in_folder(folder, &experiment);
        let mut display = workspace.display(&experiment.name).without(&told);
        let own_seed = seed.wrapping_add(number as u64);
        let finished = runner::run(plan, own_seed, place, workspace.setup(), &mut display)
            .map_err(|error| with_kept(error.into(), display.kept_in()))?;
        told.extend(display.end());
        found.push(judged(workload, &finished.path)?);
    }
    Ok(found)
}

/// What a run file tells of the levels of a workload.
fn judged(workload: &Workload, path: &Path) -> Result<Found> {
    let record = iolab_runfile::read(path)?;
    let evidence = Evidence::of_cells(&record, iolab_runfile::read_latency(path)?)?;
    let cells = record.cells.iter();
    let mut cells = cells.filter_map(|cell| Some((cell, evidence.get(&cell.id)?)));
    let (cell, evidence) = cells.next().ok_or_else(|| {
        iolab_spec::Error::failed(format!("{} has no cell", path.display()))
            .hint("run the command again")
    })?;
    let levels = workload.levels.iter().map(|need| &need.level);
    let written = record.samples.iter().map(|sample| sample.writes.bytes);
    Ok(Found {
        workload: workload.name.clone(),
        ran: requests_in_words(cell.trial()),
        written_bytes: written.fold(0, u64::saturating_add),
        found: CellAnswer::of(
            workload.name.clone(),
            cell,
            evidence,
            &record.environment,
            levels,
        ),
        file: path.display().to_string(),
    })
}

/// Fits the workloads to a model, which has neither a page cache nor files; says what that changes.
fn adapt(requirement: &mut Requirement, disk: &Disk) -> Result<Vec<String>> {
    let grown = requirement.use_bare_disk(disk.block())?;
    let mut notes = Vec::new();
    if !grown.is_empty() {
        let grown = grown.join("; ");
        notes.push(format!("A model takes whole blocks: {grown}."));
    }
    for workload in &mut requirement.workloads {
        let left_out = runner::adapt(&mut workload.experiment, &|_| false)?;
        notes.extend(left_out.map(|text| format!("{text}.")));
    }
    Ok(notes)
}

/// What each workload does and writes, before anything is touched.
fn announced(requirement: &Requirement) -> Result<Vec<String>> {
    let of = |workload: &Workload| {
        let plan = Plan::of_new_run(workload.experiment.clone())?;
        let does = requests_in_words(&workload.experiment.base()?.trial);
        Ok(format!(
            "{} {}: {does}, for {}; writes {}",
            requirement.name,
            workload.name,
            rough_duration(requirement.hold),
            forecast::written(&Forecast::of(&plan)),
        ))
    };
    requirement.workloads.iter().map(of).collect()
}
