//! `iolab run`: one experiment.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use iolab_analysis::fitness::Answer;
use iolab_peers::fio::job::JobFile;
use iolab_plan::experiment::{Change, Experiment};
use iolab_record::peaks::Peaks;
use iolab_report::input::Input;
use iolab_runfile::NewFile;
use iolab_runner::Disk;
use iolab_runner::ranks::Ranks;
use iolab_workload::{Error, Result};

use crate::arguments::Run;
use crate::builtin::{Builtin, check_no_target};
use crate::changes::Definition;
use crate::command::{answers, ended, read_run, slo};
use crate::exit::{Outcome, answered};
use crate::output::{self, Results, listed, note};
use crate::output_format::{check_run_file, is_folder};
use crate::workspace::{Region, Site, make_folder};

/// Folder of run files by default.
const FOLDER: &str = "iolab-results";

/// Runs the experiment and says what was found.
pub(crate) fn run(options: &Run, ranks: Option<Rc<Ranks>>) -> Outcome {
    let (mut experiment, given) = asked(options)?;
    let changes = options.changes.read()?;
    let model = Disk::of_targets(&given)?;
    let joined = options.together || options.striped;
    if joined && model.is_some() {
        return Err(Error::usage("--together or --striped with a model")
            .hint("a model is measured alone: leave the option out")
            .into());
    }
    if options.together {
        iolab_runner::join_targets(&mut experiment, &given)?;
    }
    if options.striped {
        iolab_runner::stripe_targets(&mut experiment, &given)?;
    }
    let definition = match Experiment::is_builtin(&options.experiment) {
        true => Definition::Builtin,
        false => Definition::OfUser,
    };
    for text in changes.apply(&mut experiment, definition, &given, model.as_ref())? {
        note(format_args!("note: {text}"));
    }
    // Those that are used at once are the groups' own, or stand in the factor.
    let common: &[PathBuf] = if joined { &[] } else { &given };
    let targets = iolab_runner::settle_targets(&mut experiment, common)?;
    if let Some(finer) = options.refine {
        experiment.apply(&Change::refine(finer))?;
    }
    let levels = options.slo.as_deref().map(slo::read).transpose()?;
    if let Some(levels) = &levels {
        experiment.answer(levels, &|name| changes.has(name))?;
    }
    if options.verify {
        experiment.apply(&Change::of("verify", "true")?)?;
    }
    let site = Site {
        model,
        targets,
        consent: options.changes.consent.consent(),
        ranks,
        region: Region::of(changes.has("region")),
        keeps_cache: changes.has("cache"),
        foresees_ranks: options.changes.dry_run,
    };
    let (plan, left_out) = site.plan(experiment, &|name| changes.has(name))?;
    if let Some(left_out) = left_out {
        note(format_args!("note: {left_out}"));
    }
    // Everything that can be refused is refused before anything is written.
    check_output(options.output.as_deref())?;
    if let Some(peak) = options.peak.as_deref().filter(|peak| *peak != "measure") {
        Peaks::parse(peak)?;
    }
    if options.changes.dry_run {
        return site.dry_run(std::slice::from_ref(&plan), &[]);
    }
    let (opened, plan) = site.open_one(plan)?;
    let name = plan.experiment().name.clone();
    let place = place_of(options.output.as_deref(), &name)?;
    iolab_runfile::check_place(place)?;
    let seed = options.changes.seed();
    let plans = std::slice::from_ref(&plan);
    let workspace = opened.prepare(seed, plans, options.peak.as_deref())?;
    let title = format!("iolab run {name} {}", listed(&given));
    let mut display = workspace.display(&name).titled(title.trim_end());
    let finished = iolab_runner::run(plan, seed, place, workspace.setup(), &mut display);
    let path = display.kept_in().map(Path::to_owned);
    drop(display);
    let finished = finished.map(|finished| finished.path);
    let measured = ended(finished, path.as_deref(), &workspace);
    let (path, interrupt) = workspace.close_after(measured)?;
    let mut to = Results::new();
    let run = read_run(&path)?;
    let answers = answers([(path.as_path(), &run)]);
    let answer = answers.answer();
    write!(to, "{}", answers.text(output::style().width))?;
    if answer.is_none() || options.full {
        if answer.is_some() {
            writeln!(to)?;
        }
        let input = Input::new(path.clone(), run);
        output::run(&input, options.full, &mut to)?;
    }
    to.flush()?;
    note(format_args!("\nrun file: {}", path.display()));
    if !options.full {
        note(format_args!("everything: iolab table {}", path.display()));
    }
    to.end(path.display())?;
    match interrupt {
        Some(interrupt) => Err(interrupt),
        None => answered(answer.unwrap_or(Answer::Yes)),
    }
}

/// The experiment and the targets that are given; a job file of fio may name both.
fn asked(options: &Run) -> Outcome<(Experiment, Vec<PathBuf>)> {
    let path = Path::new(&options.experiment);
    let (experiment, named) = if JobFile::is_one(path) {
        let target = options.targets.first().map(PathBuf::as_path);
        let file = JobFile::read(path, target, options.allow_include)?;
        if options.changes.dry_run {
            let mut to = output::open(None)?;
            for line in file.explained() {
                writeln!(to, "{line}")?;
            }
            writeln!(to)?;
            to.flush()?;
        } else {
            for text in &file.notes {
                note(format_args!("note: {text}"));
            }
        }
        (file.experiment, file.target)
    } else {
        Builtin::Experiment.check(&options.experiment)?;
        check_no_target(&options.experiment)?;
        (Experiment::find(&options.experiment)?, None)
    };
    Ok(match options.targets.is_empty() {
        true => (experiment, named.into_iter().collect()),
        false => (experiment, options.targets.clone()),
    })
}

pub(crate) fn check_output(output: Option<&Path>) -> Result<()> {
    let Some(path) = output.filter(|path| !is_folder(path)) else {
        return Ok(());
    };
    check_run_file(path)?;
    if path.symlink_metadata().is_ok() {
        return Err(output::exists(path));
    }
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => Err(Error::usage(format!(
            "{} is not a folder",
            folder.display()
        ))
        .hint("make it first, or name another file with -o")),
        _ => Ok(()),
    }
}

pub(crate) fn place_of<'a>(output: Option<&'a Path>, name: &'a str) -> Result<NewFile<'a>> {
    match output.filter(|path| !is_folder(path)) {
        Some(path) => Ok(NewFile::At(path)),
        None => {
            let folder = output.unwrap_or(Path::new(FOLDER));
            make_folder(folder)?;
            Ok(NewFile::In { folder, name })
        }
    }
}
