//! Several runs with questions, measured one after another in one workspace.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::note;
use iolab_command::run_files::read_run;
use iolab_plan::cells::FittedPlan;
use iolab_record::Question;
use iolab_runfile::Folder;
use iolab_runner::PreparedRun;
use iolab_runner::campaign::{Made, Opened};

use super::campaign::{close_after, display, has_results, interrupted, is_told, with_kept};

/// Measures the plans, each with its question, after these announcements; returns their run files in the folder, and the
/// interrupt of the user, if results are wanted all the same.
///
/// # Errors
/// A place where no run file can be made; the failure of a run.
pub(crate) fn measure(
    opened: Opened,
    (plans, asked): (Vec<FittedPlan>, Vec<Question>),
    seed: u64,
    (title, folder): (&str, &Path),
    announced: &[String],
) -> Outcome<(Vec<PathBuf>, Option<Failure>)> {
    let folder = Folder::make(folder)?;
    for plan in &plans {
        iolab_runfile::check_place(folder.file(&plan.experiment().name))?;
    }
    let workspace = opened.prepare(seed, &plans, Made::default(), None)?;
    for text in announced {
        note(format_args!("{text}"));
    }
    let mut files: Vec<PathBuf> = Vec::new();
    // All files are created before the first trial, so that each can be resumed.
    let carry_out = |files: &mut Vec<PathBuf>| -> Outcome<Option<Failure>> {
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
            let mut display = display(&workspace, &name, title);
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
                return match is_told(&failure, &workspace) && runs.any(|run| has_results(&run)) {
                    true => Ok(Some(failure)),
                    false => Err(failure),
                };
            }
        }
        Ok(None)
    };
    let measured = carry_out(&mut files).map(|failure| ((), failure));
    let ((), failure) = close_after(workspace, measured, &files)?;
    Ok((files, failure))
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
