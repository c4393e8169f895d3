//! `iolab study`: a suite on one target or several, within one budget, and what follows from all of it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use iolab_host::device::Device;
use iolab_plan::cells::{FittedPlan, Plan};
use iolab_plan::suite::{Suite, share};
use iolab_report::findings::cross_findings;
use iolab_report::layout::paragraph;
use iolab_report::live;
use iolab_report::overview::{Input, Overview};
use iolab_report::report::StudyReport;
use iolab_runfile::Folder;
use iolab_runner::campaign::{Made, Opened, Site, Workspace, open_all};
use iolab_runner::{GivenTargets, PreparedRun};
use iolab_storage::{Consent, device_under};
use iolab_workload::escape_control::{escape_control, shell_words};
use iolab_workload::{Error, Kind, Result};

use super::arguments::Study;
use super::campaign::{
    PROGRAM, close_after, display, ended, ended_early, interrupted, is_told, sites,
};
use super::dry_run;
use super::experiment_options::{Asked, budget_of_targets};
use super::{EXPLAINERS, Explainer};
use crate::command::input;
use iolab_command::Lists;
use iolab_command::failure::{Failure, Outcome, concluded};
use iolab_command::output::{self, Results, harmless, note, note_once};
use iolab_command::output_format::check_folder;
use iolab_command::run_files::read_run;

/// Upper bound of the names of reports in a folder.
const NAMES_MAX: u32 = 10_000;
/// Least budget of a built-in suite in virtual time, if the user names none. It takes seconds, and a hard disk needs that long for an
/// interval in every cell of a suite made for two minutes of a real disk.
const VIRTUAL_BUDGET_MIN: Duration = Duration::from_secs(40 * 60);
/// Runs all experiments of the suite and prints their findings.
pub(crate) fn study(options: &Study, lists: &Lists) -> Outcome {
    let asked = options.changes.read()?;
    let terms = options.changes.terms(&asked, None);
    // The signals are kept if the study is followed by more measurements: one ends the process once all holders have dropped them.
    let explains = match options.explain {
        Some(budget) => Some((explainer()?, budget, Rc::clone(&terms.signals))),
        None => None,
    };
    for target in options.targets.iter().filter_map(|target| target.to_str()) {
        lists.check_kind(target, "a target")?;
    }
    lists.check_kind(&options.suite, "a suite")?;
    check_folder(&options.output)?;
    let named = match options.targets.is_empty() {
        true => &[PathBuf::from(".")][..],
        false => &options.targets,
    };
    let watch = PROGRAM.watch(named);
    let given = GivenTargets::of(named, PROGRAM.schemes)?;
    let mut sites = sites(&given, &options.names, watch, terms)?;
    let suite = Suite::find(&options.suite)?;
    let draws = suite.picture;
    if options.targets.is_empty() {
        note(format_args!("note: no TARGET given; measuring {}", here()));
    }
    let is_builtin = Suite::is_builtin(&options.suite);
    let mut planned = Vec::new();
    for site in &mut sites {
        planned.push(plan(suite.clone(), is_builtin, &asked, site)?);
    }
    if options.changes.dry_run {
        let sites = sites.iter().zip(&planned);
        let sites = sites.map(|(site, own)| (site, &own.plans[..]));
        let does = explains.map(|(by, budget, _)| (by.words)(budget));
        return dry_run::print_all(sites, does.as_slice());
    }
    let parts = StudyPart::open(sites.into_iter().zip(planned))?;
    let folder = Folder::make(&options.output)?;
    for plan in parts.iter().flat_map(|part| &part.plans) {
        iolab_runfile::check_place(folder.file(&plan.experiment().name))?;
    }
    if let Some((by, budget, _)) = &explains {
        note(format_args!("note: {}", (by.words)(*budget)));
    }
    let seed = options.changes.seed();
    let mut to = Results::default();
    let title = shell_words(match options.targets.is_empty() {
        true => &given.real,
        false => &options.targets,
    });
    let title = format!("iolab study {title}   {}", options.suite);
    let (mut inputs, mut failures, is_cut) =
        measure_all(parts, seed, (&title, &folder), options.full, &mut to);
    if is_cut && inputs.is_empty() {
        return concluded(failures, None);
    }
    let picture = Overview::new(&inputs).picture()?.filter(|_| draws);
    match options.full {
        true => all_together(&inputs, &mut to)?,
        false => {
            let picture = picture.as_ref().map(|_| "glance.png".to_owned());
            let below = places(&inputs, options, Some("report.html".to_owned()), picture);
            // An empty line separates them.
            let below = below.lines().count() + 1;
            let screen = Overview::new(&inputs).screen(below, &output::style());
            write!(to, "{screen}")?;
        }
    }
    to.flush()?;
    if let Some((by, budget, signals)) = explains.filter(|_| !is_cut) {
        let allowed = (budget, options.changes.system.change_system, signals);
        let (explained, ended) = (by.carry_out)(allowed, &inputs, (&folder, seed), &mut to)?;
        inputs.extend(explained);
        failures.extend(ended);
    }
    write_results(&inputs, picture.as_deref(), options, to)?;
    concluded(failures, None)
}

/// The way to explain the effects of a study.
///
/// # Errors
/// Of kind usage: this program lacks it.
fn explainer() -> Result<&'static Explainer> {
    EXPLAINERS.first().ok_or_else(|| {
        Error::usage("--explain does what 'iolab why' does, which this program lacks")
            .hint("use an iolab that has this command")
    })
}

/// Measures one part after the other. Gives the runs, what ended the study early after some of them or could not be
/// removed, and whether it ended early.
fn measure_all(
    parts: Vec<StudyPart>,
    seed: u64,
    shown: (&str, &Folder),
    full: bool,
    to: &mut Results,
) -> (Vec<Input>, Vec<Failure>, bool) {
    let (mut inputs, mut failures, mut is_cut) = (Vec::new(), Vec::new(), false);
    let mut parts = parts.into_iter();
    for StudyPart {
        opened,
        plans,
        budget,
    } in parts.by_ref()
    {
        let place = opened.place.clone();
        let each = full.then_some(&mut *to);
        let prepared = opened.prepare(seed, &plans, Made::default(), None);
        let measured = prepared.map_err(Failure::from).and_then(|workspace| {
            let terms = (budget, place.as_deref());
            let measured = measure(plans, seed, terms, &workspace, shown, each, &mut inputs);
            let kept = inputs.iter().map(|input: &Input| input.path.clone());
            let kept: Vec<PathBuf> = kept.collect();
            let measured = measured.map(|interrupt| ((), interrupt));
            Ok(close_after(workspace, measured, &kept)?.1)
        });
        is_cut = match &measured {
            Ok(failure) => failure.as_ref().is_some_and(Failure::is_interrupt),
            Err(_) => true,
        };
        // Earlier measurements are shown all the same.
        failures.extend(measured.unwrap_or_else(Some));
        if is_cut {
            let left_out = parts.filter_map(|part| part.opened.place);
            ended_early(&mut failures, left_out.collect());
            break;
        }
    }
    (inputs, failures, is_cut)
}

/// Writes the report and the picture next to the run files, and prints all places.
fn write_results(
    inputs: &[Input],
    picture: Option<&[u8]>,
    options: &Study,
    mut to: Results,
) -> Outcome {
    let paths: Vec<PathBuf> = inputs.iter().map(|input| input.path.clone()).collect();
    let all = shell_words(&paths);
    let kept = |failure: Failure| {
        failure.also(format_args!(
            "everything is measured, and the run files are complete: iolab report {all}"
        ))
    };
    let page = StudyReport::new(inputs).html();
    let page = page.map_err(|error| kept(error.into()))?;
    let page = harmless(&page);
    let report = write_new(&options.output, "report", "html", page.as_bytes()).map_err(kept)?;
    let picture = picture.map(|picture| {
        let path = write_new(&options.output, "glance", "png", picture);
        path.map_err(kept)
    });
    let picture = picture.transpose()?;
    let picture = picture.as_deref().and_then(file_name);
    let places = places(inputs, options, file_name(&report), picture);
    write!(to, "\n{places}")?;
    Ok(to.end(all)?)
}

/// The name of a file without its folder.
fn file_name(path: &Path) -> Option<String> {
    let name = path.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// Places of the report, the picture and the runs.
fn places(
    inputs: &[Input],
    options: &Study,
    report: Option<String>,
    picture: Option<String>,
) -> String {
    let first = inputs.first().and_then(|first| file_name(&first.path));
    let runs = first.map(|first| match inputs.len() {
        1 => first,
        n => format!("{n} run files, {first} first"),
    });
    let names: Vec<String> = [report, picture, runs].into_iter().flatten().collect();
    let text = format!("In {}: {}", options.output.display(), names.join(", "));
    paragraph(&text, "", output::style().width)
}

/// Writes a new file to a folder, under the first of `STEM.EXT`, `STEM-2.EXT`, ... that is free.
fn write_new(folder: &Path, stem: &str, extension: &str, content: &[u8]) -> Outcome<PathBuf> {
    for number in 1..=NAMES_MAX {
        let path = folder.join(match number {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number}.{extension}"),
        });
        match output::open_raw(Some(&path)) {
            Err(error) if error.kind() == Kind::Refused && number < NAMES_MAX => {}
            to => {
                let mut to = to?;
                to.write_all(content)?;
                to.flush()?;
                return Ok(path);
            }
        }
    }
    Err(output::exists(folder).into())
}

/// The experiments of a suite at one site.
struct Planned {
    plans: Vec<Plan>,
    /// Budget of all plans together.
    budget: Duration,
}

/// A part of a study: files and devices in the same blocks, or a model.
struct StudyPart {
    opened: Opened,
    plans: Vec<FittedPlan>,
    budget: Duration,
}

impl StudyPart {
    /// Opens the targets of each site's plans. Nothing is written.
    ///
    /// # Errors
    /// As [`open_all`].
    fn open(planned: impl Iterator<Item = (Site, Planned)>) -> Result<Vec<Self>> {
        let planned = planned.map(|(site, Planned { plans, budget })| ((site, plans), budget));
        let (all, budgets): (Vec<_>, Vec<_>) = planned.unzip();
        let opened = open_all(all)?.into_iter().zip(budgets);
        let part = |((opened, plans), budget)| Self {
            opened,
            plans,
            budget,
        };
        Ok(opened.map(part).collect())
    }
}

/// Prints the joint findings of the runs, and the places of their files.
fn all_together(inputs: &[Input], to: &mut Results) -> Outcome {
    let analyses = inputs.iter().map(|input| input.run.analysis());
    writeln!(to, "All together\n")?;
    output::sentences(&cross_findings(analyses), output::style(), to)?;
    writeln!(to, "\nRun files:")?;
    for input in inputs {
        writeln!(to, "  {}", input.path.display())?;
    }
    Ok(())
}

/// The current directory with the disk below it.
fn here() -> String {
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let device = device_under(&folder).and_then(|number| Device::read(Path::new("/sys"), number));
    let folder = escape_control(&folder.display().to_string()).into_owned();
    match device {
        None => folder,
        Some(device) => match &device.model {
            Some(model) => format!("{folder} on {} ({})", device.chain(), model.trim()),
            None => format!("{folder} on {}", device.chain()),
        },
    }
}

/// The suite's experiments with the user's changes, and the budget for all of them; with several targets, the budget of
/// each.
fn plan(suite: Suite, is_builtin: bool, asked: &Asked, site: &mut Site) -> Result<Planned> {
    // Statements about the whole study are shown once.
    let say = |text: String| note_once(&text);
    let model = site.model.clone();
    let given = site.targets.clone();
    let budget = asked
        .budget()
        .unwrap_or_else(|| match (&model, is_builtin) {
            (Some(_), true) => suite.budget.max(VIRTUAL_BUDGET_MIN),
            (Some(_), false) => suite.budget,
            (None, _) => budget_of_targets(suite.budget, given.len()).0,
        });
    if asked.budget().is_none() && given.len() > 1 {
        say(budget_of_targets(suite.budget, given.len()).1);
    }
    let of_suite = budget.as_secs_f64() / suite.budget.as_secs_f64();
    let is_file = |target: &&PathBuf| target.metadata().is_ok_and(|m| !m.is_dir());
    let read_only = given.iter().filter(|_| site.terms.consent == Consent::No);
    let read_only: Vec<PathBuf> = read_only.filter(is_file).cloned().collect();
    let read_only = shell_words(&read_only);
    let (mut left_out, mut no_question) = (Vec::new(), Vec::new());
    let mut plans = Vec::new();
    for mut experiment in suite.experiments {
        // A budget asked for is the suite's; the experiment has its share of that.
        let share = experiment.design.budget.mul_f64(of_suite);
        // Nobody reads more digits.
        let share = Duration::from_millis((share.as_millis() as u64).max(1));
        let changed = asked.apply(&mut experiment, is_builtin, &given, model.as_deref())?;
        experiment.design.budget = share;
        site.settle(&mut experiment, &given)?;
        let factors = experiment.factors.len();
        let (mut plan, text) = site.plan(experiment, &|name| asked.has(name))?;
        let name = plan.experiment().name.clone();
        // With one level left of its factor, the experiment has no question left.
        if model.is_some() && plan.experiment().factors.len() < factors {
            no_question.push(name);
            continue;
        }
        text.into_iter().for_each(say);
        if model.is_none() {
            let need = iolab_runner::need(&plan, site.terms.consent.clone(), false)?;
            if !read_only.is_empty() && need.write {
                let Some(reads) = plan.experiment().reads_alone()? else {
                    left_out.push(name);
                    continue;
                };
                left_out.push(format!("the writes of {name}"));
                plan = site.plan(reads, &|name| asked.has(name))?.0;
            }
        }
        changed.into_iter().for_each(say);
        plans.push(plan);
    }
    if !no_question.is_empty() {
        say(format!(
            "skipped, because a model has no host: {}",
            no_question.join(", ")
        ));
    }
    if plans.is_empty() {
        return Err(Error::refused(format!(
            "every experiment of suite {} writes, and {read_only} exists already",
            suite.name
        ))
        .hint("give a directory, or allow the loss of its data with --destroy-data"));
    }
    if !left_out.is_empty() {
        say(format!(
            "{read_only} is opened for reading only; skipped: {} (--destroy-data allows iolab to overwrite a file or a block device)",
            left_out.join(", ")
        ));
    }
    // The shares of experiments that are left out go to the others.
    let shares = plans.iter().map(|plan| plan.experiment().design.budget);
    let all = shares.sum::<Duration>().as_secs_f64();
    let is_reduced = !no_question.is_empty() || !left_out.is_empty();
    for plan in plans.iter_mut().filter(|_| is_reduced) {
        let part = plan.experiment().design.budget.as_secs_f64();
        plan.set_budget(share(budget, part, all))?;
    }
    Ok(Planned { plans, budget })
}

/// Runs the experiments one after the other, and passes each result to `each` when it is done. They are shown under a
/// title, and kept in a folder; `place` comes before the name of each. Gives the failure that stands for the user's early end.
fn measure(
    plans: Vec<FittedPlan>,
    seed: u64,
    (budget, place): (Duration, Option<&str>),
    workspace: &Workspace,
    (title, folder): (&str, &Folder),
    mut each: Option<&mut Results>,
    inputs: &mut Vec<Input>,
) -> Outcome<Option<Failure>> {
    let began = Instant::now();
    let budgets = plans.iter().map(|plan| plan.experiment().design.budget);
    let weights: Vec<Duration> = budgets.collect();
    let names = plans.iter().map(|plan| plan.experiment().name.clone());
    let names: Vec<String> = names.collect();
    let count = plans.len();
    let leaves_writes: Vec<bool> = plans.iter().map(|plan| plan.leaves_writes()).collect();
    let mut spent = Duration::ZERO;
    let mut plans = plans.into_iter().enumerate();
    while let Some((i, plan)) = plans.next() {
        // Time left over by earlier experiments goes to the later ones, by their shares.
        let passed = match workspace.is_virtual() {
            true => spent,
            false => began.elapsed(),
        };
        let left = budget.saturating_sub(passed);
        let weight = |of: &[Duration]| of.iter().sum::<Duration>().as_secs_f64();
        let own = share(left, weight(&weights[i..=i]), weight(&weights[i..]));
        let plan = plan.with_budget(own)?;
        let file = folder.file(&names[i]);
        let name = match place {
            None => format!("{}/{count} {}", i + 1, names[i]),
            Some(place) => format!("{}/{count} {} on {place}", i + 1, names[i]),
        };
        let results = inputs
            .iter()
            .map(|input| live::result(input.run.analysis()));
        let mut display = display(workspace, &name, title);
        display.began = began;
        display.total = (i + 1 < count).then_some(budget);
        display.study_leaves_writes = leaves_writes[i..].contains(&true);
        display.spent = spent;
        display.done = results.collect();
        let own_seed = seed.wrapping_add(i as u64);
        let prepared = PreparedRun::new(plan, None, own_seed, file, workspace.setup());
        let finished = prepared.and_then(|prepared| prepared.carry_out(&mut display));
        let kept = display.end();
        if let Ok(finished) = &finished {
            spent += finished.spent;
        }
        let (path, interrupt) = match ended(
            finished.map(|finished| finished.path),
            kept.as_deref(),
            workspace,
        ) {
            Ok(ended) => ended,
            // This experiment has no result.
            Err(failure) if failure.is_interrupt() => {
                let failure = with_rest(failure, kept, plans, (seed, folder), workspace);
                return match is_told(&failure, workspace) && !inputs.is_empty() {
                    true => Ok(Some(failure)),
                    false => Err(failure),
                };
            }
            Err(failure) => return Err(failure),
        };
        let input = input(path.clone(), read_run(&path)?)?;
        if let Some(to) = &mut each {
            writeln!(to, "{}", "=".repeat(usize::from(output::style().width)))?;
            output::report(&input.run, &input.interpretation, to)?;
            writeln!(to, "\nrun file: {}\n", path.display())?;
            to.flush()?;
        }
        inputs.push(input);
        if let Some(interrupt) = interrupt {
            let interrupt = with_rest(interrupt, Some(path), plans, (seed, folder), workspace);
            return Ok(Some(interrupt));
        }
    }
    Ok(None)
}

/// The user's interrupt, with what finishes the study: run files of the experiments that it has left out are made, without a trial, so
/// that they can be resumed as the one that it has cut off. No run on a model can.
fn with_rest(
    interrupt: Failure,
    cut_off: Option<PathBuf>,
    rest: impl Iterator<Item = (usize, FittedPlan)>,
    (seed, folder): (u64, &Folder),
    workspace: &Workspace,
) -> Failure {
    if workspace.is_virtual() {
        let names: Vec<String> = rest
            .map(|(_, plan)| plan.experiment().name.clone())
            .collect();
        return match names.as_slice() {
            [] => interrupt,
            names => interrupt.also(format_args!(
                "not measured: {}; the same 'iolab study' again measures all experiments",
                names.join(", ")
            )),
        };
    }
    let mut files: Vec<PathBuf> = cut_off.into_iter().collect();
    let mut missing = Vec::new();
    for (number, plan) in rest {
        let name = plan.experiment().name.clone();
        let place = folder.file(&name);
        let own_seed = seed.wrapping_add(number as u64);
        let left =
            PreparedRun::new(plan, None, own_seed, place, workspace.setup()).and_then(|run| {
                let path = run.path().to_owned();
                run.leave().map(|()| path)
            });
        match left {
            Ok(path) => files.push(path),
            Err(error) => missing.push(format!("not measured: {name}: {}", error.message())),
        }
    }
    let told = interrupted(interrupt, &files);
    missing
        .iter()
        .fold(told, |told, text| told.also(format_args!("{text}")))
}
