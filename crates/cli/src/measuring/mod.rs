//! The commands that measure, or look at this machine, and their shared parts.

mod arguments;
pub(crate) mod builtin_names;
pub(crate) mod campaign;
mod dry_run;
mod experiment_options;
mod progress;
#[cfg(feature = "fit")]
mod questions;
mod resume;
mod run;
mod signals;
mod study;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::Results;
use iolab_command::{Command, Lists};
use iolab_engine::request_tracer::RequestTracer;
use iolab_report::overview::Input;
use iolab_runfile::Folder;
use iolab_runner::launch::Launch;
use iolab_runner::peers::PeerList;
use iolab_runner::preflight::NewPreflight;
use iolab_runner::ranks::Ranks;
use iolab_runner::{NewObserver, ProgramExecutor, SchemeList, StopFlags};
use iolab_workload::Result;

use arguments::{Resume, Run, Study};

/// Examinations before the first trial of a campaign.
const PREFLIGHTS: &[NewPreflight] = &[
    #[cfg(feature = "doctor")]
    iolab_doctor::preflight,
];

/// Other tools that measure the same cells.
pub(crate) const PEERS: PeerList = &[
    #[cfg(feature = "fio")]
    &iolab_fio::PEER,
    #[cfg(feature = "iozone")]
    &iolab_iozone::PEER,
];

/// Executors of programs as trials; at most one.
const EXECUTORS: &[ProgramExecutor] = &[
    #[cfg(feature = "programs")]
    iolab_programs::EXECUTOR,
];

/// Observers of drives around each trial.
const OBSERVERS: &[NewObserver] = &[
    #[cfg(feature = "device-log")]
    iolab_device_log::observer,
];

/// Tracers of requests; at most one.
const TRACERS: &[&RequestTracer] = &[
    #[cfg(feature = "stages")]
    &iolab_stages::TIME_BY_LAYER,
];

/// Schemes of targets in virtual time.
const SCHEMES: SchemeList = &[
    #[cfg(feature = "models")]
    iolab_models::MODELS,
];

/// The work of a command, with the ranks if there are several.
type Work<'a> = dyn Fn(Option<Rc<dyn Ranks>>) -> Outcome + 'a;

/// How processes that were started together notice each other.
struct Launcher {
    /// Whether another process of the same start prints messages for all of them.
    is_silent: fn() -> bool,
    /// The path that a process without others uses for a target of this name.
    place: fn(&Path) -> Result<PathBuf>,
    /// Refuses a command of this name if there are several: they would disturb each other. The second text says what they can do.
    alone: fn(&str, &str) -> Outcome,
    /// Does the work with all processes; with this one alone if there are no others.
    together: fn(&Work<'_>) -> Outcome,
}

/// How processes that are started together measure together; at most one way.
const LAUNCHERS: &[Launcher] = &[
    #[cfg(feature = "cluster")]
    Launcher {
        is_silent: iolab_cluster::launcher::is_silent,
        place: iolab_cluster::launcher::place,
        alone: iolab_cluster::launcher::alone,
        together: iolab_cluster::launcher::together,
    },
];

/// Parts of this program for commands that measure several runs.
#[cfg(feature = "fit")]
pub(crate) const MEASURING: iolab_fit::Measuring = iolab_fit::Measuring {
    program: campaign::PROGRAM,
    alone: |is_plan, name| alone(is_plan, name, TOGETHER),
    foresee: |site, plans, does| dry_run::print_all([(site, plans)].into_iter(), does),
    measure: questions::measure,
};

/// Parts of this program for commands that measure one run.
#[cfg(feature = "why")]
pub(crate) const MEASURING_ONE: iolab_why::Measuring = iolab_why::Measuring {
    program: campaign::PROGRAM,
    alone,
    foresee: |site, plans, does| dry_run::print_all([(site, plans)].into_iter(), does),
    check_output: run::check_output,
    place_of: run::place_of,
    measure: |planned, place, seed, title| campaign::measure(planned, place, (seed, None), title),
};

/// The budget of each effect, whether trials may change settings of the kernel, and the flags that end measurements early.
type Allowed = (Duration, bool, Rc<OnceCell<StopFlags>>);

/// The runs that found causes, with what ended it early or could not be removed.
type Explained = Outcome<(Vec<Input>, Vec<Failure>)>;

/// How the largest effects of a study are explained after it.
struct Explainer {
    /// The addition to a study with this budget of each effect, in words.
    words: fn(Duration) -> String,
    /// Finds the causes in the runs of a study, with its folder and its seed, and prints them.
    carry_out: fn(Allowed, &[Input], (&Folder, u64), &mut Results) -> Explained,
}

/// Ways to explain the effects of studies; at most one.
const EXPLAINERS: &[Explainer] = &[
    #[cfg(feature = "why")]
    Explainer {
        words: iolab_why::addition,
        carry_out: |allowed, inputs, place, to| {
            iolab_why::explain(MEASURING_ONE, &allowed, inputs, place, to)
        },
    },
];

/// The lists of what measures.
pub(crate) fn lists() -> Lists {
    Lists {
        commands: commands(),
        ..Lists::default()
    }
}

fn commands() -> Vec<Command> {
    vec![
        Command::with_log(
            "study",
            "Run a suite of experiments and report the findings: start here",
            |options: &Study| options.log.log(),
            |options, lists| {
                alone(options.changes.dry_run, "study", TOGETHER)?;
                study::study(options, lists)
            },
        ),
        Command::with_log(
            "run",
            "Run one experiment",
            |options: &Run| options.log.log(),
            |options, lists| {
                together(options.changes.dry_run, &|ranks| {
                    run::run(options, lists, ranks)
                })
            },
        ),
        Command::with_log(
            "resume",
            "Finish interrupted runs and print their answers",
            |options: &Resume| options.log.log(),
            |options, lists| {
                together(options.dry_run, &|ranks| {
                    resume::resume(options, lists, ranks)
                })
            },
        ),
        Command::new(
            "import",
            "Convert results of fio or IOzone to a run file",
            |options, _| run::import(options),
        ),
    ]
}

/// The alternative of several processes to a suite or a requirement.
const TOGETHER: &str =
    "a build with MPI measures one experiment with all processes: iolab run EXPERIMENT";

/// Whether another process of the same start prints messages for all of them.
pub(crate) fn is_silent() -> bool {
    LAUNCHERS.iter().any(|launcher| (launcher.is_silent)())
}

/// Refuses a command as one of several processes, unless it only plans.
///
/// # Errors
///
/// There are several: `instead` says what they can do.
fn alone(is_plan: bool, name: &str, instead: &str) -> Outcome {
    match LAUNCHERS.first() {
        _ if is_plan => Ok(()),
        Some(launcher) => (launcher.alone)(name, instead),
        None => check_alone(),
    }
}

/// Does the work with all processes that were started together; with this one alone if there are no others, or it only plans.
///
/// # Errors
///
/// There are several, and they cannot work together; the failure of the work.
fn together(is_plan: bool, work: &Work<'_>) -> Outcome {
    match LAUNCHERS.first().filter(|_| !is_plan) {
        Some(launcher) => (launcher.together)(work),
        None if is_plan => work(None),
        None => check_alone().and_then(|()| work(None)),
    }
}

/// Refuses to measure as one of several processes, which nothing connects in this build.
fn check_alone() -> Outcome {
    match Launch::here() {
        None => Ok(()),
        Some(launch) if launch.is_silent() => Err(Failure::ToldElsewhere),
        Some(launch) => Err(launch.without_mpi().into()),
    }
}
