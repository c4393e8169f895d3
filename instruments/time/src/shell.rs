//! The shell that runs commands, and the time of its start-up.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_host::program::{self, Arguments, Program, ProgramRun};
use iolab_stats::{Interval, median, median_interval};
use iolab_workload::command_template::Template;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// Starts of the shell that are timed.
const STARTS: usize = 50;

/// Shell that runs the commands, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shell {
    /// This shell, with `-c`.
    Named(String),
    /// The kernel, without a shell.
    None,
}

/// The start-up of a shell, medians.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StartUp {
    /// Time, ns.
    pub(crate) elapsed_ns: f64,
    /// Its 95 % interval.
    pub(crate) interval: Option<Interval>,
    /// CPU time in user mode, ns.
    user_ns: f64,
    /// CPU time in the kernel, ns.
    system_ns: f64,
}

impl Shell {
    /// A command as a value of the setting `command`, which splits words and fills braces.
    pub(crate) fn template(&self, command: &str) -> String {
        let braces = command.replace('{', "{{").replace('}', "}}");
        match self {
            Self::Named(shell) => format!("{shell} -c '{}'", braces.replace('\'', r"'\''")),
            Self::None => braces,
        }
    }

    /// Times the start-up; `None` without a shell.
    ///
    /// # Errors
    /// The shell cannot be started, or the user's interrupt.
    pub(crate) fn start_up(&self, clock: &Clock, stop: &AtomicBool) -> Result<Option<StartUp>> {
        if *self == Self::None {
            return Ok(None);
        }
        let program = found(&self.template(""))?;
        let mut starts: [Vec<f64>; 3] = Default::default();
        for _ in 0..STARTS {
            let outcome = run(&program, clock, stop)?.outcome;
            checked(&outcome)?;
            let usage = outcome.counters.usage;
            let own = [outcome.elapsed_ns, usage.user_ns, usage.system_ns];
            starts
                .iter_mut()
                .zip(own)
                .for_each(|(all, own)| all.push(own as f64));
        }
        let [elapsed_ns, user_ns, system_ns] =
            starts.each_ref().map(|all| median(all).unwrap_or(0.0));
        Ok(Some(StartUp {
            elapsed_ns,
            interval: median_interval(&starts[0], 0.95),
            user_ns,
            system_ns,
        }))
    }
}

impl StartUp {
    /// Takes the start-up away from a run, at most to 0.
    pub(crate) fn subtract_from(&self, outcome: &mut Outcome) {
        let less = |value: &mut u64, by: f64| *value = value.saturating_sub(by.round() as u64);
        less(&mut outcome.elapsed_ns, self.elapsed_ns);
        let usage = &mut outcome.counters.usage;
        less(&mut usage.user_ns, self.user_ns);
        less(&mut usage.system_ns, self.system_ns);
    }
}

/// Reads a value of the setting `command`.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it cannot be split into words.
pub(crate) fn read(level: &str) -> Result<Template> {
    level.parse().map_err(|error: Error| {
        Error::usage(format!("'{level}': {}", error.message()))
            .hint("leave -N out: a shell takes pipes, variables and redirections")
    })
}

/// The program of a value of the setting `command`.
///
/// # Errors
/// As [`read`]; or there is no such program.
pub(crate) fn found(level: &str) -> Result<Program> {
    let template = read(level)?;
    Ok(Program {
        path: Program::find(template.program())?,
        arguments: Arguments::plain(template.arguments(Path::new(""), 0, 0)),
        time_limit: None,
        output_max: None,
    })
}

/// One run of a program on no file.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run(program: &Program, clock: &Clock, stop: &AtomicBool) -> Result<ProgramRun> {
    program::run(program, &[], &TrialSpec::default(), clock, stop)
}

/// Refuses a run that failed or was interrupted.
///
/// # Errors
/// The failure in words, or the user's interrupt.
pub(crate) fn checked(outcome: &Outcome) -> Result<()> {
    match &outcome.failure {
        _ if outcome.ended == Ended::Interrupted => Err(Error::interrupted()),
        None => Ok(()),
        Some(failure) => {
            let (what, _) = iolab_runner::describe_failure(failure);
            Err(Error::failed(what).hint("run it by hand to see more; -i counts runs that fail"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_shell_gets_the_command_as_typed(command in "[^\0]{0,40}") {
            let level = Shell::Named("sh".to_owned()).template(&command);
            let template: Template = level.parse().expect("readable");
            let arguments = template.arguments(Path::new("file"), 1, 2);
            prop_assert_eq!(arguments, ["-c", command.as_str()]);
            prop_assert_eq!(template.to_string(), level);
        }
    }
}
