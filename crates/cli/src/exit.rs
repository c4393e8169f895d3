//! The end of a command: exit code and last message.

#[cfg(feature = "measure")]
mod measuring;

use std::io;
use std::process::ExitCode;

use iolab_workload::{Error, Kind};

use crate::output::{self, Log};

#[cfg(feature = "measure")]
pub(crate) use measuring::{answered, at_once, interrupted, with_kept};

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
    #[cfg(feature = "measure")]
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

/// Prints the last message; returns the exit code documented in `iolab --help`.
pub(crate) fn code_of(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::BrokenPipe | Failure::ToldElsewhere) => ExitCode::SUCCESS,
        Err(Failure::No) => ExitCode::from(4),
        Err(Failure::CannotTell) => ExitCode::from(5),
        // An exit code has 8 bits.
        #[cfg(feature = "measure")]
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
