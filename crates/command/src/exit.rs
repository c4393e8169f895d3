//! The end of a command: exit code and last message.

use std::process::ExitCode;

use iolab_workload::{Error, Kind};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Log};

/// Prints the last message; returns the exit code documented in `iolab --help`.
pub fn code_of(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::BrokenPipe | Failure::ToldElsewhere) => ExitCode::SUCCESS,
        Err(Failure::No) => ExitCode::from(4),
        Err(Failure::CannotTell) => ExitCode::from(5),
        Err(Failure::Refused) => ExitCode::from(3),
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

/// Prints an error as a message, or as an event if those are asked for.
pub fn tell(error: &Error) {
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
