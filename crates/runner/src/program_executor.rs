//! Programs in place of the engine: the consent to start them, and what a run needs of them.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_plan::cells::Plan;
use iolab_record::environment::Environment;
use iolab_storage::{Need, Target};
use iolab_workload::command_template::Template;
use iolab_workload::outcome::Outcome;
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Result};

use crate::Targets;

/// Carries out plans whose trials run programs: a row of the list of executors.
pub struct ProgramExecutor {
    /// Needs of a plan for each of these directories.
    pub needs: fn(&Plan, &[PathBuf]) -> Result<Vec<Need>>,
    /// Finds or builds the programs of a plan, and makes their files in these directories, still empty. Starts none of them.
    pub open: fn(&Plan, &[PathBuf]) -> Result<OpenedPrograms>,
}

/// Targets that represent directories, with the programs that read the files there.
pub type OpenedPrograms = (Targets, Box<dyn Programs>);

/// Programs ready to be run. Dropping it removes what was built.
pub trait Programs: Debug {
    /// Facts about the programs for the run file.
    fn environment(&self) -> Environment;

    /// One trial, on a file of the directory that the target represents.
    ///
    /// # Errors
    /// When the program cannot be started; a failed one is reported in the outcome.
    fn run(
        &self,
        cell: &CellSpec,
        place: &Target,
        clock: &Clock,
        stop: &AtomicBool,
    ) -> Result<Outcome>;
}

/// The plan that runs programs, with its executor. Such a plan is never carried out together with others.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): this program cannot run others.
pub(crate) fn executor_of<'a>(
    all: &'static [ProgramExecutor],
    plans: &'a [Plan],
) -> Result<Option<(&'a Plan, &'static ProgramExecutor)>> {
    let [plan] = plans else {
        return Ok(None);
    };
    match all.first() {
        _ if !plan.experiment().runs_programs() => Ok(None),
        Some(executor) => Ok(Some((plan, executor))),
        None => Err(Error::usage(format!(
            "{} needs the instrument 'programs', which this program lacks",
            plan.experiment().name
        ))
        .hint("use an iolab that has this instrument")),
    }
}

/// The programs of `command` that the user allows a run to start. A file that names a program is not a consent: the file
/// may come from someone else. The reader of `linkage` is iolab's own.
#[derive(Debug, Clone)]
pub enum RunPrograms {
    /// Every program (`--run-programs`).
    All,
    /// The commands that the command line names.
    Typed(Vec<Template>),
}

impl RunPrograms {
    /// Refuses a plan with a command that the user does not allow.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused).
    pub(crate) fn check(&self, plan: &Plan) -> Result<()> {
        let mut commands = plan.cells().iter().filter_map(|c| c.spec.command.as_ref());
        match self {
            Self::All => Ok(()),
            Self::Typed(typed) => match commands.find(|command| !typed.contains(command)) {
                None => Ok(()),
                Some(command) => Err(Error::refused(format!(
                    "refusing to start a program that a file names: {command}"
                ))
                .hint("read what --dry-run lists; to start it, add --run-programs")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_plan::cells::OneProcess;
    use iolab_workload::Kind;

    use super::*;
    use crate::tests::experiment;

    fn plan(sets: &[&str]) -> Plan {
        Plan::of(experiment("linkage", sets), &OneProcess).expect("a plan")
    }

    #[test]
    fn only_a_typed_command_starts_without_consent() {
        let typed = |command: &str| RunPrograms::Typed(vec![command.parse().expect("valid")]);
        for (sets, consent, is_allowed) in [
            (&["command=cat {file}"][..], typed("cat {file}"), true),
            (&["command=cat {file}"], typed("dd if={file}"), false),
            (
                &["command=cat {file},dd if={file}"],
                typed("cat {file}"),
                false,
            ),
            (&["command=cat {file},dd if={file}"], RunPrograms::All, true),
            (&[], typed("cat {file}"), true),
        ] {
            match consent.check(&plan(sets)) {
                Ok(()) => assert!(is_allowed, "{sets:?}"),
                Err(error) => {
                    assert!(!is_allowed, "{sets:?}: {error:?}");
                    assert_eq!(error.kind(), Kind::Refused);
                }
            }
        }
    }

    #[test]
    fn programs_without_their_instrument_are_refused_by_name() {
        let plans = [plan(&[])];
        let error = executor_of(&[], &plans).err().expect("refused");
        assert_eq!(
            (error.kind(), error.message()),
            (
                Kind::Usage,
                "linkage needs the instrument 'programs', which this program lacks"
            )
        );
    }
}
