//! `iolab study`: a suite on one target, within one budget, and what follows from all of it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iolab_host::device::Device;
use iolab_plan::cells::{FittedPlan, Plan};
use iolab_plan::suite::{Suite, share};
use iolab_report::findings::cross_findings;
use iolab_report::input::Input;
use iolab_report::layout::paragraph;
use iolab_report::live;
use iolab_report::overview::Overview;
use iolab_runfile::NewFile;
use iolab_runner::Disk;
use iolab_storage::{Consent, device_under};
use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};

use crate::arguments::Study;
use crate::builtin::Builtin;
use crate::changes::{Asked, Definition};
use crate::command::{ended, read_run, report};
use crate::exit::{Failure, Outcome};
use crate::output::{self, Results, note};
use crate::output_format::check_folder;
use crate::progress::SharedBudget;
use crate::workspace::{Region, Site, Workspace, make_folder};

/// Runs all experiments of the suite and says what was found.
pub(crate) fn study(options: &Study) -> Outcome {
    let asked = options.changes.read()?;
    let target = options.target.clone().unwrap_or_else(|| PathBuf::from("."));
    match target.to_str() {
        Some(name) if options.target.is_some() => Builtin::Target.check(name)?,
        _ => {}
    }
    Builtin::Suite.check(&options.suite)?;
    check_folder(&options.output)?;
    let site = Site {
        model: Disk::of_target(&target)?,
        targets: vec![target],
        consent: options.changes.consent.consent(),
        ranks: None,
        region: Region::of(asked.has("region")),
        keeps_cache: asked.has("cache"),
        // One process carries it out.
        foresees_ranks: false,
    };
    let suite = Suite::find(&options.suite)?;
    let draws = suite.picture;
    if options.target.is_none() {
        note(format_args!("note: no TARGET given; measuring {}", here()));
    }
    let definition = match Suite::is_builtin(&options.suite) {
        true => Definition::Builtin,
        false => Definition::OfUser,
    };
    let (plans, budget) = plan(suite, definition, &asked, &site)?;
    if options.changes.dry_run {
        return site.dry_run(&plans, &[]);
    }
    let (opened, plans) = site.open(plans)?;
    make_folder(&options.output)?;
    for plan in &plans {
        iolab_runfile::check_place(NewFile::In {
            folder: &options.output,
            name: &plan.experiment().name,
        })?;
    }
    let seed = options.changes.seed();
    let workspace = opened.prepare(seed, &plans, None)?;
    let mut to = Results::new();
    let each = options.full.then_some(&mut to);
    let target = options.target.as_deref().unwrap_or(Path::new("."));
    let title = format!("iolab study {}   {}", target.display(), options.suite);
    let measured = measure(
        plans,
        seed,
        budget,
        &workspace,
        (&title, &options.output),
        each,
    );
    let Studied { inputs, interrupt } = workspace.close_after(measured)?;
    match options.full {
        true => all_together(&inputs, &mut to)?,
        false => write!(to, "{}", Overview::new(&inputs).text(&output::style()))?,
    }
    to.flush()?;
    let report = report::write_in(&options.output, &inputs)?;
    writeln!(to, "\nReport: {}", report.display())?;
    if let Some(picture) = Overview::new(&inputs).picture()?.filter(|_| draws) {
        let path = report::write_new(&options.output, "glance", "png", &picture)?;
        writeln!(to, "Picture: {}", path.display())?;
    }
    if !options.full {
        let files = format!(
            "Run files in {}: {}",
            options.output.display(),
            names(&inputs)
        );
        write!(to, "{}", paragraph(&files, "", output::style().width))?;
        writeln!(
            to,
            "Every table and finding: iolab table FILE, or iolab study --full"
        )?;
    }
    let all = inputs.iter().map(|input| input.path.display().to_string());
    to.end(all.collect::<Vec<_>>().join(" "))?;
    interrupt.map_or(Ok(()), Err)
}

/// The runs of a study.
struct Studied {
    inputs: Vec<Input>,
    /// Where the user has ended it early.
    interrupt: Option<Failure>,
}

/// What the runs tell together, and where they are.
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

/// The names of the run files.
fn names(inputs: &[Input]) -> String {
    let names = inputs.iter().filter_map(|input| input.path.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    names.join(" ")
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

/// The suite's experiments with the user's changes, and the budget for all of them.
fn plan(
    suite: Suite,
    definition: Definition,
    asked: &Asked,
    site: &Site,
) -> Result<(Vec<Plan>, Duration)> {
    let model = site.model.as_ref();
    let budget = asked.budget().unwrap_or_else(|| match model {
        Some(_) => iolab_runner::budget_on_model(suite.budget),
        None => suite.budget,
    });
    let of_suite = budget.as_secs_f64() / suite.budget.as_secs_f64();
    let target = site.targets[0].as_path();
    let read_only = site.consent == Consent::No && target.metadata().is_ok_and(|m| !m.is_dir());
    let (mut left_out, mut no_question) = (Vec::new(), Vec::new());
    let (mut plans, mut told) = (Vec::new(), Vec::new());
    for mut experiment in suite.experiments {
        // A budget asked for is the suite's; the experiment has its share of that.
        let share = experiment.design.budget.mul_f64(of_suite);
        // Nobody reads more digits.
        let share = Duration::from_millis((share.as_millis() as u64).max(1));
        let changed = asked.apply(&mut experiment, definition, &site.targets, model)?;
        experiment.design.budget = share;
        let factors = experiment.factors.len();
        let (plan, text) = site.plan(experiment, &|name| asked.has(name))?;
        let name = || plan.experiment().name.clone();
        // With one level left of what it compares, it has no question left.
        if model.is_some() && plan.experiment().factors.len() < factors {
            no_question.push(name());
            continue;
        }
        if let Some(text) = text {
            note(format_args!("note: {text}"));
        }
        if model.is_none() {
            let need = iolab_runner::need(&plan, site.consent.clone(), false)?;
            if read_only && need.write {
                left_out.push(name());
                continue;
            }
        }
        for text in changed {
            // What holds for the whole study is said once.
            if !told.contains(&text) {
                note(format_args!("note: {text}"));
                told.push(text);
            }
        }
        plans.push(plan);
    }
    if !no_question.is_empty() {
        note(format_args!(
            "note: skipped, because a model has no host: {}",
            no_question.join(", ")
        ));
    }
    if plans.is_empty() {
        return Err(Error::refused(format!(
            "every experiment of suite {} writes, and {} exists already",
            suite.name,
            target.display()
        ))
        .hint("give a directory, or allow the loss of its data with --destroy-data"));
    }
    if !left_out.is_empty() {
        note(format_args!(
            "note: {} is opened for reading only; skipped: {} (--destroy-data allows iolab to overwrite a file or a block device)",
            target.display(),
            left_out.join(", ")
        ));
    }
    Ok((plans, budget))
}

/// Runs the experiments one after the other, and writes to `each` what one says when it is done. They are shown under a title, and
/// kept in a folder.
fn measure(
    plans: Vec<FittedPlan>,
    seed: u64,
    budget: Duration,
    workspace: &Workspace,
    (title, folder): (&str, &Path),
    mut each: Option<&mut Results>,
) -> Outcome<Studied> {
    let began = Instant::now();
    let budgets = plans.iter().map(|plan| plan.experiment().design.budget);
    let weights: Vec<Duration> = budgets.collect();
    let names = plans.iter().map(|plan| plan.experiment().name.clone());
    let names: Vec<String> = names.collect();
    let count = plans.len();
    let mut inputs: Vec<Input> = Vec::new();
    let mut told = Vec::new();
    let mut spent = Duration::ZERO;
    for (i, plan) in plans.into_iter().enumerate() {
        // What earlier experiments left over goes to the later ones, by their shares.
        let passed = match workspace.is_virtual() {
            true => spent,
            false => began.elapsed(),
        };
        let left = budget.saturating_sub(passed);
        let weight = |of: &[Duration]| of.iter().sum::<Duration>().as_secs_f64();
        let own = share(left, weight(&weights[i..=i]), weight(&weights[i..]));
        let plan = plan.with_budget(own)?;
        let place = NewFile::In {
            folder,
            name: &names[i],
        };
        let name = format!("{}/{count} {}", i + 1, names[i]);
        let results = inputs
            .iter()
            .map(|input| live::result(input.run.analysis()));
        let shared = SharedBudget {
            began,
            total: (i + 1 < count).then_some(budget),
            spent,
            done: results.collect(),
        };
        let display = workspace.display(&name).without(&told);
        let mut display = display.titled(title).among(shared);
        let own_seed = seed.wrapping_add(i as u64);
        let finished = iolab_runner::run(plan, own_seed, place, workspace.setup(), &mut display);
        let kept = display.kept_in().map(Path::to_owned);
        if let Ok(finished) = &finished {
            spent += finished.spent;
        }
        // What holds for the whole study is reported once.
        told.extend(display.end());
        let (path, interrupt) = match ended(
            finished.map(|finished| finished.path),
            kept.as_deref(),
            workspace,
        ) {
            Ok(ended) => ended,
            // Of this experiment there is nothing to tell.
            Err(failure) if workspace.tells(&failure) && !inputs.is_empty() => {
                note_unmeasured(&names[i..]);
                let interrupt = Some(failure);
                return Ok(Studied { inputs, interrupt });
            }
            Err(failure) => return Err(failure),
        };
        let input = Input::new(path.clone(), read_run(&path)?);
        if let Some(to) = &mut each {
            writeln!(to, "{}", "=".repeat(usize::from(output::style().width)))?;
            output::report(&input.run, &input.interpretation, to)?;
            writeln!(to, "\nrun file: {}\n", path.display())?;
            to.flush()?;
        }
        inputs.push(input);
        if interrupt.is_some() {
            note_unmeasured(&names[i + 1..]);
            return Ok(Studied { inputs, interrupt });
        }
    }
    Ok(Studied {
        inputs,
        interrupt: None,
    })
}

/// Tells which experiments the user's interrupt has left out.
fn note_unmeasured(names: &[String]) {
    if !names.is_empty() {
        note(format_args!("note: not measured: {}", names.join(", ")));
    }
}
