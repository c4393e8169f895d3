//! The end of a command: exit code and last message.

use iolab_workload::{Error, Kind};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Log};

/// Prints the last message; returns the exit code documented in `iolab --help`.
pub fn code_of(outcome: Outcome) -> u8 {
    match outcome {
        Ok(()) | Err(Failure::BrokenPipe | Failure::ToldElsewhere) => 0,
        Err(Failure::No) => 4,
        Err(Failure::CannotTell) => 5,
        Err(Failure::Refused) => 3,
        Err(Failure::Code(code)) => code,
        Err(Failure::Told(error)) => {
            tell(&error);
            match error.kind() {
                Kind::Failed => 1,
                Kind::Usage => 2,
                Kind::Refused => 3,
                Kind::Interrupted => 130,
            }
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
