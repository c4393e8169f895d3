//! `iolab run`: one experiment; and `iolab import`: results that other tools measured.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::slice;

use iolab_plan::blocks::depends_on_order;
use iolab_plan::cells::Plan;
use iolab_plan::experiment::{Change, Experiment};
use iolab_report::findings::interpretation::Interpretation;
use iolab_runfile::NewFile;
use iolab_runner::GivenTargets;
use iolab_runner::campaign::{AskedPeaks, Region, Site, Terms, open_all};
use iolab_runner::peers::Results as Imported;
use iolab_runner::ranks::Ranks;
use iolab_workload::escape_control::shell_words;
use iolab_workload::{Error, Result};

use super::PEERS;
use super::arguments::{Import, Run};
use super::builtin_names::check_no_target;
use super::campaign::{PROGRAM, ended_early, measure, sites};
use super::dry_run;
use super::experiment_options::{Asked, budget_of_targets};
use iolab_command::Lists;
use iolab_command::failure::{Failure, Outcome, concluded};
use iolab_command::output::{self, Results, note, note_once};
use iolab_command::output_format::{check_run_file, is_folder};
use iolab_command::run_files::{read_run, show};

/// Folder of run files by default.
const FOLDER: &str = "iolab-results";

/// Runs the experiment and prints its findings.
pub(crate) fn run(options: &Run, lists: &Lists, ranks: Option<Rc<dyn Ranks>>) -> Outcome {
    // The targets that the experiment names, or the current directory, if none is given.
    let nowhere = GivenTargets {
        real: vec![PathBuf::from(".")],
        ..GivenTargets::default()
    };
    let watch = PROGRAM.watch(match options.targets.is_empty() {
        true => &nowhere.real,
        false => &options.targets,
    });
    let (experiment, given, is_sized) = asked(options, lists)?;
    let changes = options.changes.read()?;
    let terms = Terms {
        region: Region::of(is_sized || changes.has("region")),
        foresees_ranks: options.changes.dry_run,
        ..options.changes.terms(&changes, ranks)
    };
    let targets = GivenTargets::of(&given, PROGRAM.schemes)?;
    if options.together && !targets.models.is_empty() {
        return Err(Error::usage("--together with a model")
            .hint("a model is measured alone: leave the option out")
            .into());
    }
    let at = if given.is_empty() { &nowhere } else { &targets };
    let sites = sites(at, &options.names, watch, terms)?;
    let planned = sites.into_iter().map(|mut site| {
        let plan = plan(
            options,
            experiment.clone(),
            &targets.real,
            &changes,
            &mut site,
        )?;
        Ok((site, plan))
    });
    let planned: Vec<(Site, Plan)> = planned.collect::<Outcome<_>>()?;
    // Everything that can be refused is refused before anything is written.
    check_output(options.output.as_deref(), planned.len())?;
    let peak = options.peak.as_deref();
    let peak = peak
        .map(|peak| AskedPeaks::read(peak, &planned))
        .transpose()?;
    if options.changes.dry_run {
        let sites = planned.iter();
        let sites = sites.map(|(site, plan)| (site, slice::from_ref(plan)));
        return dry_run::print_all(sites, &[]);
    }
    let planned = planned.into_iter().map(|(site, plan)| (site, vec![plan]));
    let opened = open_all(planned)?;
    let seed = options.changes.seed();
    let mut kept: Vec<PathBuf> = Vec::new();
    let mut failures = Vec::new();
    let mut each = opened
        .into_iter()
        .filter_map(|(opened, plans)| Some((opened, plans.into_iter().next()?)));
    while let Some((opened, plan)) = each.next() {
        let name = plan.experiment().name.clone();
        let place = place_of(options.output.as_deref(), &name);
        let title = format!("iolab run {name} {}", shell_words(&given));
        match measure(
            (opened, plan),
            place,
            (seed, peak.as_ref()),
            title.trim_end(),
        ) {
            Ok((path, failure)) => {
                kept.push(path);
                let is_cut = failure.as_ref().is_some_and(Failure::is_interrupt);
                failures.extend(failure);
                if !is_cut {
                    continue;
                }
            }
            // Earlier measurements on other targets are shown all the same.
            Err(failure) => failures.push(failure),
        }
        let left_out = each.by_ref().filter_map(|(opened, _)| opened.place);
        ended_early(&mut failures, left_out.collect());
        break;
    }
    if kept.is_empty() {
        return concluded(failures, None);
    }
    let mut to = Results::default();
    let answer = show(&kept, options.full, lists, &mut to)?;
    let paths = shell_words(&kept);
    note(format_args!("\nrun file: {paths}"));
    if !options.full {
        note(format_args!("details: iolab table {paths}"));
    }
    to.end(paths)?;
    concluded(failures, answer)
}

/// The plan of an experiment at a site, with what the user changes; `given` are the files and devices that the user names.
fn plan(
    options: &Run,
    mut experiment: Experiment,
    given: &[PathBuf],
    changes: &Asked,
    site: &mut Site,
) -> Outcome<Plan> {
    // Statements about each site are shown once.
    let say = |text: String| note_once(&text);
    if options.together {
        iolab_runner::join_targets(&mut experiment, given)?;
    }
    let is_builtin = Experiment::is_builtin(&options.experiment);
    let model = site.model.clone();
    let changed = changes.apply(&mut experiment, is_builtin, given, model.as_deref())?;
    changed.into_iter().for_each(say);
    // With --together the given targets belong to the groups.
    let common: &[PathBuf] = if options.together { &[] } else { given };
    site.settle(&mut experiment, common)?;
    if model.is_none() && common.len() > 1 && changes.budget().is_none() {
        let (budget, text) = budget_of_targets(experiment.design.budget, common.len());
        note(format_args!("note: {text}"));
        experiment.design.budget = budget;
    }
    if let Some(time) = options.soak {
        let texts = experiment.soak(time, &|name| changes.has(name))?;
        texts.into_iter().for_each(say);
    }
    if let Some(finer) = options.refine {
        let said = format!("--refine {finer}");
        experiment.apply(&Change::of_option("refine", &finer.to_string(), said)?)?;
    }
    if let Some(levels) = &options.slo {
        experiment.answer(levels, &|name| changes.has(name))?;
    }
    if options.verify {
        experiment.apply(&Change::of("verify", "true")?)?;
    }
    let is_chosen = |name: &str| changes.has(name) || options.verify && name == "verify";
    let (plan, left_out) = site.plan(experiment, &is_chosen)?;
    left_out.into_iter().for_each(say);
    let specs = plan.cells().iter().map(|cell| &cell.spec);
    if depends_on_order(&plan.experiment().design, specs) {
        say(
            "cells use the same storage one after the other, without a warm-up: what one leaves there, the next one finds; measure one cell per run"
                .to_owned(),
        );
    }
    Ok(plan)
}

/// The experiment, the targets that are given, and whether it names the bytes to use; a file of another tool may name
/// both.
fn asked(options: &Run, lists: &Lists) -> Outcome<(Experiment, Vec<PathBuf>, bool)> {
    let path = Path::new(&options.experiment);
    let (experiment, named, is_sized) = if let Some(format) = lists.format_of(path) {
        let target = options.targets.first().map(PathBuf::as_path);
        let file = (format.read)(path, target, options.allow_include)?;
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
        (file.experiment, file.target, file.is_sized)
    } else {
        lists.check_kind(&options.experiment, "an experiment")?;
        check_no_target(&options.experiment)?;
        (Experiment::find(&options.experiment)?, None, false)
    };
    let given = match options.targets.is_empty() {
        true => named.into_iter().collect(),
        false => options.targets.clone(),
    };
    Ok((experiment, given, is_sized))
}

/// Checks the place of `runs` run files.
///
/// # Errors
/// Of kind usage or refused: several run files in one; a file that is there, or cannot be.
pub(super) fn check_output(output: Option<&Path>, runs: usize) -> Result<()> {
    let Some(path) = output.filter(|path| !is_folder(path)) else {
        return Ok(());
    };
    if runs > 1 {
        let several = format!("-o {} is one file, for {runs} runs", path.display());
        return Err(Error::usage(several)
            .hint("each model has a run file of its own: name a folder with -o FOLDER/"));
    }
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

/// The place of the run file of a run with this name.
pub(super) fn place_of<'a>(output: Option<&'a Path>, name: &'a str) -> NewFile<'a> {
    match output.filter(|path| !is_folder(path)) {
        Some(path) => NewFile::At(path),
        None => NewFile::In {
            folder: output.unwrap_or(Path::new(FOLDER)),
            name,
        },
    }
}

/// Writes the results to a run file and prints its findings.
pub(crate) fn import(options: &Import) -> Outcome {
    check_output(options.output.as_deref(), 1)?;
    let import = Imported::read(&options.file, PEERS)?;
    let import = import.on_host(options.host.as_deref())?;
    for text in import.remarks() {
        note(format_args!("note: {text}"));
    }
    let name = Imported::name(&options.file);
    let place = place_of(options.output.as_deref(), &name);
    let path = import.write(&options.file, place)?;
    let run = read_run(&path)?;
    let mut to = output::open(None)?;
    output::report(&run, &Interpretation::of(&run), &mut to)?;
    to.flush()?;
    note(format_args!("\nrun file: {}", path.display()));
    Ok(())
}
