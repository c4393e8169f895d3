//! `iolab resume`: the rest of a run that was cut off.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::slice;
use std::time::Duration;

use iolab_analysis::consent::NeededConsent;
use iolab_plan::cells::Plan;
use iolab_plan::experiment::Experiment;
use iolab_record::targets::target_paths;
use iolab_record::{RunRecord, RunStatus, TargetKind};
use iolab_runfile::RunFile;
use iolab_runner::campaign::{Made, Permission, Region, Site, Terms};
use iolab_runner::ranks::Ranks;
use iolab_workload::escape_control::shell_words;
use iolab_workload::units::{counted, rough_duration};
use iolab_workload::{Error, Result, usage_errors};

use super::arguments::Resume;
use super::campaign::{EndedRun, PROGRAM, carry_out, interrupted, unfinished};
use super::dry_run::{self, Part};
use iolab_command::Lists;
use iolab_command::failure::{Failure, Outcome, concluded};
use iolab_command::output::{Results, note};
use iolab_command::run_files::show;

/// Refuses to go on with another number of processes than the run began with.
fn check_ranks(record: &RunRecord, file: &Path, ranks: Option<&Rc<dyn Ranks>>) -> Result<()> {
    let (before, now) = (
        record.ranks.len().max(1),
        ranks.map_or(1, |ranks| ranks.count()),
    );
    if before == now {
        return Ok(());
    }
    let place = file.display();
    let command = NeededConsent::of(record).resume_command(&[&file.to_string_lossy()], before);
    let (before_text, now_text) = (counted(before as u64, "rank"), counted(now as u64, "rank"));
    Err(Error::usage(format!(
        "the run in {place} is one of {before_text}, not of {now_text}"
    ))
    .hint(match before {
        1 => format!("start one: {command}"),
        _ => format!("start as many: {command}"),
    }))
}

/// Refuses runs that end for good when they stop.
fn check_kind(kind: TargetKind) -> Result<()> {
    usage_errors! {
        kind == TargetKind::Model => "a run on a model cannot be resumed: the state of the model is not kept",
            "run it again; the same seed gives the same results";
        kind == TargetKind::Commands => "commands that iolab time timed cannot be resumed",
            "time them again, with another -o FILE";
    }
    Ok(())
}

/// Refuses runs that cannot be resumed, before any of them is measured.
fn check(file: &Path, lists: &Lists, ranks: Option<&Rc<dyn Ranks>>) -> Result<()> {
    let record = iolab_runfile::read(file)?;
    lists.check_answerable(&record, file)?;
    if record.run.status == RunStatus::Done {
        return Ok(());
    }
    let kind = record.run.target_kind;
    if kind == TargetKind::Model {
        // The trials that a full disk left in a log are merged all the same.
        iolab_runfile::settle(file)?;
    }
    check_kind(kind)?;
    check_ranks(&record, file, ranks)?;
    // An unwritable file is noticed before the target is filled.
    RunFile::open_resume(file).map(drop)
}

/// The files that are named, with the interrupted runs of a folder in its place, and refusals of runs of a folder that cannot be
/// finished.
fn files_to_finish(named: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<Failure>)> {
    let (mut files, mut refused) = (Vec::new(), Vec::new());
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let all = unfinished(path)?;
        if all.is_empty() {
            note(format_args!(
                "note: no readable run in {} has to be finished",
                path.display()
            ));
        }
        for (file, kind) in all {
            match check_kind(kind) {
                Ok(()) => files.push(file),
                Err(error) => refused.push(error.within(file.display()).into()),
            }
        }
    }
    Ok((files, refused))
}

/// Finishes the runs one after the other. Runs that were measured together are answered together.
pub(crate) fn resume(options: &Resume, lists: &Lists, ranks: Option<Rc<dyn Ranks>>) -> Outcome {
    // Others of a folder are finished all the same.
    let (files, refused) = files_to_finish(&options.files)?;
    if ranks.is_some() && files.len() > 1 {
        return Err(Error::usage("several runs, and several processes")
            .hint("resume one run after the other")
            .into());
    }
    if options.dry_run {
        let printed = files.iter().map(|file| print_rest(file, lists, options));
        return concluded(printed.filter_map(Outcome::err).chain(refused), None);
    }
    for file in &files {
        check(file, lists, ranks.as_ref())?;
    }
    if files.is_empty() {
        return concluded(refused, None);
    }
    let with_all = |failure| match files.as_slice() {
        [_] => failure,
        all => interrupted(failure, all),
    };
    let (mut paths, mut failures) = (Vec::new(), Vec::new());
    for file in &files {
        let (path, failure) = match finish(file, options, ranks.clone()) {
            Ok(finished) => finished,
            Err(failure) => {
                failures.insert(0, with_all(failure));
                return concluded(failures.into_iter().chain(refused), None);
            }
        };
        paths.push(path);
        failures.extend(failure.map(with_all));
        if failures.iter().any(Failure::is_interrupt) {
            break;
        }
    }
    for instrument in &lists.answers {
        for path in (instrument.companions)(&paths)? {
            note(format_args!("note: the answer includes {}", path.display()));
            paths.push(path);
        }
    }
    let mut to = Results::default();
    let answer = show(&paths, false, lists, &mut to)?;
    to.end(shell_words(&paths))?;
    concluded(failures.into_iter().chain(refused), answer)
}

/// Prints the rest of a run's plan.
fn print_rest(file: &Path, lists: &Lists, options: &Resume) -> Outcome {
    let record = iolab_runfile::read(file)?;
    lists.check_answerable(&record, file)?;
    if record.run.status == RunStatus::Done {
        note_complete(file);
        return Ok(());
    }
    check_kind(record.run.target_kind)?;
    let (site, plan) = begun(&record, file, options, None)?;
    let made = made(&record);
    let (trials, spent) = made;
    let does = format!(
        "{}: {} made earlier, in {}; this plan is the rest",
        file.display(),
        counted(trials, "trial"),
        rough_duration(spent)
    );
    let part = Part {
        made,
        does: &[does],
        ..Part::default()
    };
    dry_run::print(&site, &[plan], &part)
}

fn note_complete(file: &Path) {
    let file = file.display();
    note(format_args!("note: the run in {file} is already complete"));
}

/// The trials of a run so far.
fn made(record: &RunRecord) -> Made {
    let spent = record.samples.iter().map(|sample| sample.wall_ns);
    let spent = Duration::from_nanos(spent.fold(0, u64::saturating_add));
    (record.samples.len() as u64, spent)
}

/// Prepares the target as the run had it and finishes the plan; returns the place of the run file then.
fn finish(file: &Path, options: &Resume, ranks: Option<Rc<dyn Ranks>>) -> Outcome<EndedRun> {
    let record = iolab_runfile::read(file)?;
    if record.run.status == RunStatus::Done {
        iolab_runfile::settle(file)?;
        note_complete(file);
        return Ok((file.to_owned(), None));
    }
    let (site, plan) = begun(&record, file, options, ranks)?;
    let (opened, plan) = site.open_one(plan)?;
    let plans = slice::from_ref(&plan);
    // Locked meanwhile: another process that resumes the file is refused before it fills scratch files.
    let locked = RunFile::open_resume(file)?;
    let workspace = opened.prepare(record.run.seed, plans, made(&record), None)?;
    drop(locked);
    let title = format!("iolab resume {}", file.display());
    carry_out(
        workspace,
        &record.experiment.name,
        &title,
        |setup, display| iolab_runner::resume(file, plan, setup, display),
    )
}

/// The site of a resumed run, and its plan.
fn begun(
    record: &RunRecord,
    file: &Path,
    options: &Resume,
    ranks: Option<Rc<dyn Ranks>>,
) -> Result<(Site, Plan)> {
    let source = file.display().to_string();
    let experiment = Experiment::from_toml(&record.experiment.toml, &source)?;
    let targets = target_paths(record);
    let watch = PROGRAM.watch(&targets);
    let terms = Terms {
        consent: options.consent.consent(),
        system: Permission::of(options.system.change_system),
        programs: options.programs.consent(Vec::new()),
        ranks,
        region: Region::Had(record.target_bytes().collect()),
        keeps_cache: true,
        foresees_ranks: options.dry_run,
        ..Terms::strict(PROGRAM)
    };
    let site = Site::of(targets, None, watch, terms);
    let plan = site.plan_as_begun(experiment)?;
    Ok((site, plan))
}
