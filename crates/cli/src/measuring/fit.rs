//! `iolab fit`: whether storage is good enough for a purpose: yes, no, or cannot tell.

use std::collections::VecDeque;
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::fitness::{Answer, merge_answers};
use iolab_plan::cells::{FittedPlan, Plan};
use iolab_plan::forecast::Forecast;
use iolab_plan::requirement::{RequiredWorkload, Requirement};
use iolab_record::{Asked, Fit as FitOf, Question, digest};
use iolab_report::answer::AskedRun;
use iolab_report::{fitness, forecast};
use iolab_runfile::Folder;
use iolab_runner::campaign::{Made, Site, Terms, Workspace};
use iolab_runner::peers::overhead;
use iolab_runner::{PreparedRun, open_virtual};
use iolab_workload::Result;
use iolab_workload::escape_control::shell_words;
use iolab_workload::trial_description::requests_in_words;
use iolab_workload::units::rough_duration;

use super::PEERS;
use super::arguments::Fit;
use super::campaign::{
    PROGRAM, close_after, display, has_results, interrupted, is_told, with_kept,
};
use super::dry_run::{self, Part};
use iolab_command::Lists;
use iolab_command::failure::{Failure, Outcome, concluded};
use iolab_command::options::new_seed;
use iolab_command::output::{Results, note};
use iolab_command::output_format::{TextOrJson, check_folder};
use iolab_command::run_files::{read_run, show};

/// Measures the workloads of the requirement, and answers.
pub(crate) fn fit(options: &Fit, lists: &Lists) -> Outcome {
    lists.check_kind(&options.requirement, "a requirement")?;
    check_folder(&options.output)?;
    let mut requirement = Requirement::find(&options.requirement, &options.parameters)?;
    if let Some(hold) = options.hold {
        requirement.hold_for(hold)?;
    }
    let targets = vec![options.target.clone()];
    let watch = PROGRAM.watch(&targets);
    let model = open_virtual(PROGRAM.schemes, &options.target, None)?;
    let terms = Terms {
        consent: options.consent.consent(),
        ..Terms::strict(PROGRAM)
    };
    let site = Site::of(targets, model, watch, terms);
    let derived = requirement.workloads.iter().flat_map(|own| &own.derived);
    let mut limits: Vec<String> = derived.map(|text| format!("{text}.")).collect();
    let in_place = !options.target.is_dir() && requirement.write_in_place()?;
    if in_place && site.model.is_none() {
        limits.push(
            "Not covered: the cost of space allocation for a growing log, because TARGET is overwritten in place. A directory as TARGET includes it."
                .to_owned(),
        );
    }
    if let Some(disk) = &site.model {
        let grown = requirement.use_bare_disk(disk.block())?;
        let note = || format!("A model takes whole blocks: {}.", grown.join("; "));
        limits.extend((!grown.is_empty()).then(note));
    }
    if site.model.is_none() && Requirement::is_builtin(&options.requirement) {
        for workload in &mut requirement.workloads {
            let changes = iolab_runner::adapt_to_system(&mut workload.experiment, &|_| false)?;
            limits.extend(changes.into_iter().map(|text| format!("{text}.")));
        }
    }
    let mut plans = Vec::new();
    for workload in &requirement.workloads {
        let (plan, left_out) = site.plan(workload.experiment.clone(), &|_| false)?;
        limits.extend(left_out.map(|text| format!("{text}.")));
        plans.push(plan);
    }
    let is_virtual = site.model.is_some();
    if options.dry_run {
        let announced = announced(&requirement, &plans, is_virtual)?;
        let part = Part {
            does: &announced,
            ..Part::default()
        };
        return dry_run::print(&site, &plans, &part);
    }
    let (opened, plans) = site.open(plans)?;
    // Describes the plans that were cut to the free space; the plans above ask for more.
    let announced = announced(&requirement, plans.iter().map(|plan| &**plan), is_virtual)?;
    let folder = Folder::make(&options.output)?;
    for plan in &plans {
        iolab_runfile::check_place(folder.file(&plan.experiment().name))?;
    }
    let seed = options.seed.unwrap_or_else(new_seed);
    let workspace = opened.prepare(seed, &plans, Made::default(), None)?;
    for text in announced {
        note(format_args!("{text}"));
    }
    let asked = asked(&requirement, limits, seed);
    let title = format!(
        "iolab fit {} {}",
        options.requirement,
        options.target.display()
    );
    let mut files = Vec::new();
    let place = (title.as_str(), &folder);
    let measured = measure(plans, asked, seed, &workspace, place, &mut files);
    let measured = measured.map(|failure| ((), failure));
    let ((), failure) = close_after(workspace, measured, &files)?;
    let mut to = Results::default();
    let answer = match options.format {
        TextOrJson::Text => show(&files, false, lists, &mut to)?,
        TextOrJson::Json => print_json(&files, &mut to)?,
    };
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    note(format_args!("\nrun files: {}", names.join(", ")));
    to.end(shell_words(&files))?;
    concluded(failure, answer)
}

/// Prints the answers of runs as JSON, and returns their common answer.
fn print_json(files: &[PathBuf], to: &mut Results) -> Outcome<Option<Answer>> {
    let runs = files.iter().map(|file| read_run(file));
    let runs: Vec<AnalysedRun> = runs.collect::<Result<_>>()?;
    let named = files.iter().map(|file| file.display().to_string());
    let asked = named
        .zip(&runs)
        .filter_map(|(file, run)| AskedRun::of(file, run));
    let documents = fitness::documents(asked.collect());
    for (_, document) in &documents {
        writeln!(to, "{document:#}")?;
    }
    to.flush()?;
    let answers = documents.iter().map(|(answer, _)| *answer);
    Ok((!documents.is_empty()).then(|| merge_answers(answers)))
}

/// The question of each workload's run.
fn asked(requirement: &Requirement, limits: Vec<String>, seed: u64) -> Vec<Question> {
    let workloads = requirement.workloads.iter();
    let names: Vec<String> = workloads.clone().map(|w| w.name.clone()).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos());
    let id = digest(format!("{now} {seed} {}", requirement.name).bytes());
    let question = |workload: &RequiredWorkload| Question {
        of: Asked::Fit(FitOf {
            id: id.clone(),
            requirement: requirement.name.clone(),
            not: requirement.not.clone(),
            hold: requirement.hold,
            limits: limits.clone(),
            workloads: names.clone(),
            workload: workload.name.clone(),
        }),
        needs: workload.levels.clone(),
    };
    workloads.map(question).collect()
}

/// Carries out the workloads one after another; `files` are then the run files, also after a failure. All files are created before the first trial, so
/// that each can be resumed.
fn measure(
    plans: Vec<FittedPlan>,
    asked: Vec<Question>,
    seed: u64,
    workspace: &Workspace,
    (title, folder): (&str, &Folder),
    files: &mut Vec<PathBuf>,
) -> Outcome<Option<Failure>> {
    let mut begun: VecDeque<(String, PreparedRun<'_>)> = VecDeque::new();
    for ((number, plan), question) in plans.into_iter().enumerate().zip(asked) {
        let experiment = plan.experiment().clone();
        let place = folder.file(&experiment.name);
        let own_seed = seed.wrapping_add(number as u64);
        match PreparedRun::new(plan, Some(question), own_seed, place, workspace.setup()) {
            Ok(run) => begun.push_back((experiment.name, run)),
            Err(error) => return Err(leave(begun, error.into())),
        }
    }
    files.extend(begun.iter().map(|(_, run)| run.path().to_owned()));
    for number in 0..files.len() {
        let Some((name, run)) = begun.pop_front() else {
            break;
        };
        let mut display = display(workspace, &name, title);
        let finished = run.carry_out(&mut display).map_err(Failure::from);
        if let Some(path) = display.end() {
            files[number] = path;
        }
        if let Err(failure) = finished {
            let failure = match workspace.is_virtual() {
                true => failure,
                false => interrupted(failure, files),
            };
            let failure = leave(begun, with_kept(failure, Some(&files[number])));
            files.retain(|file| read_run(file).is_ok());
            let mut runs = files.iter().filter_map(|file| read_run(file).ok());
            return match is_told(&failure, workspace) && runs.any(|run| has_results(&run)) {
                true => Ok(Some(failure)),
                false => Err(failure),
            };
        }
    }
    Ok(None)
}

/// Closes the runs that are not carried out, after a failure.
fn leave(begun: VecDeque<(String, PreparedRun<'_>)>, failure: Failure) -> Failure {
    begun
        .into_iter()
        .fold(failure, |failure, (_, run)| match run.leave() {
            Ok(()) => failure,
            Err(error) => failure.also(error.message()),
        })
}

/// Descriptions of the work of each workload, and of its writes unless the target is a model (`is_virtual`).
fn announced<'a>(
    requirement: &Requirement,
    plans: impl IntoIterator<Item = &'a Plan>,
    is_virtual: bool,
) -> Result<Vec<String>> {
    let of = |(workload, plan): (&RequiredWorkload, &Plan)| {
        let does = requests_in_words(&plan.experiment().base()?.trial);
        let hold = rough_duration(requirement.hold);
        let time = match is_virtual {
            true => format!("{hold} of virtual time"),
            false => {
                let written = forecast::written(&Forecast::of(plan, &overhead(PEERS)));
                format!("{hold}; writes {written}")
            }
        };
        Ok(format!(
            "{} {}: {does}, for {time}",
            requirement.name, workload.name
        ))
    };
    requirement.workloads.iter().zip(plans).map(of).collect()
}
