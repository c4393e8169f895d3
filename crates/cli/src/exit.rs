//! The end of a command: exit code and last message.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolab_analysis::consent::consent_option;
use iolab_analysis::fitness::Answer;
use iolab_workload::quantity::counted;
use iolab_workload::{Error, Kind};

use crate::output::{self, Log, listed};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error to print.
    Told(Error),
    /// A comparison found a slower cell, or the answer is no; everything is printed.
    No,
    /// The answer is unknown; everything is printed.
    CannotTell,
    /// A program that was observed has failed with this code; all is said.
    Program(i32),
    /// Another process of the same start tells it; a second one that failed could have the launcher end that one first.
    ToldElsewhere,
    /// The reader of the output closed it (EPIPE), which is not a failure.
    BrokenPipe,
}

/// Result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Told(error)
    }
}

impl From<io::Error> for Failure {
    /// Errors of writing the output; everything else that can fail has an [`Error`] of its own.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::BrokenPipe;
        }
        Failure::Told(
            Error::failed(format!("cannot write the output: {error}"))
                .hint("check that there is space left where it goes"),
        )
    }
}

impl Failure {
    /// Whether the user ended it.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, Failure::Told(error) if error.kind() == Kind::Interrupted)
    }

    /// Adds a line to the error.
    pub(crate) fn also(self, what: impl std::fmt::Display) -> Self {
        match self {
            Failure::Told(error) => Failure::Told(error.also(what)),
            said => said,
        }
    }
}

/// Prints the last message; returns the exit code documented in `iolab --help`.
pub(crate) fn code_of(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::BrokenPipe | Failure::ToldElsewhere) => ExitCode::SUCCESS,
        Err(Failure::No) => ExitCode::from(4),
        Err(Failure::CannotTell) => ExitCode::from(5),
        // An exit code has 8 bits.
        Err(Failure::Program(code)) => ExitCode::from(code as u8),
        Err(Failure::Told(error)) => {
            tell(&error);
            ExitCode::from(match error.kind() {
                Kind::Failed => 1,
                Kind::Usage => 2,
                Kind::Refused => 3,
                Kind::Interrupted => 130,
            })
        }
    }
}

fn tell(error: &Error) {
    if output::log() == Log::Json {
        let texts = [("text", Some(error.message())), ("remedy", error.remedy())];
        let fields = texts.map(|(key, text)| (key.to_owned(), text.into()));
        return output::event("error", fields.into_iter().collect());
    }
    let mut text = format!("error: {}", error.message());
    if let Some(remedy) = error.remedy() {
        text += &format!("\n  {remedy}");
    }
    output::told(&text);
}

/// Prints an error and ends the process, whose other threads may wait in the kernel.
pub(crate) fn at_once(error: Error) {
    tell(&error);
    std::process::exit(1);
}

/// The exit code of an answer.
pub(crate) fn answered(answer: Answer) -> Outcome {
    match answer {
        Answer::Yes => Ok(()),
        Answer::No => Err(Failure::No),
        Answer::CannotTell => Err(Failure::CannotTell),
    }
}

/// For an interrupt of one of several runs that belong together, says how to finish all of them.
#[cfg(feature = "measure")]
pub(crate) fn interrupted(failure: Failure, files: &[PathBuf]) -> Failure {
    match failure {
        Failure::Told(error) if error.kind() == Kind::Interrupted => {
            let runs = files
                .iter()
                .filter_map(|file| iolab_runfile::read(file).ok());
            let consent = runs
                .map(|run| consent_option(&run))
                .max()
                .unwrap_or_default();
            let files = listed(files);
            Failure::Told(error.hint(format!("finish them with: iolab resume {files}{consent}")))
        }
        other => other,
    }
}

/// Adds the file with the measurements of an unfinished run.
pub(crate) fn with_kept(failure: Failure, path: Option<&Path>) -> Failure {
    let Some(path) = path else { return failure };
    let place = path.display();
    match iolab_runfile::read(path) {
        Ok(record) => match record.samples.len() {
            0 => failure.also("no trial was completed"),
            trials => failure.also(format_args!("{} kept in {place}", counted(trials, "trial"))),
        },
        Err(error) => failure.also(format_args!(
            "trials are in the run file {place}, as far as they could be written; it cannot be read now: {}",
            error.message()
        )),
    }
}
