//! End of a command: the basis of its exit code and its last message.

use std::fmt::Display;
use std::io;

use iolab_analysis::compare::Conclusion;
use iolab_analysis::fitness::Answer;
use iolab_workload::{Error, Kind};

/// Reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// An error to print.
    Told(Error),
    /// A comparison found a slower cell, or the answer is no; everything is printed.
    No,
    /// The answer is unknown; everything is printed.
    CannotTell,
    /// The plan of a dry run would be refused for a reason of this kind, which is printed.
    Planned(Kind),
    /// The exit code of a program that was observed, or of all processes of a run; everything is printed.
    Code(u8),
    /// Another process of the same start reports it. Two failing processes could have the launcher end the one
    /// that reports.
    ToldElsewhere,
    /// The reader of the output closed it (EPIPE), which is not a failure.
    BrokenPipe,
}

/// Result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

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
        Failure::Told(Error::failed(format!("cannot write the output: {error}")))
    }
}

impl Failure {
    /// Whether the user ended it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Failure::Told(error) if error.kind() == Kind::Interrupted)
    }

    /// Adds a line to the error.
    pub fn also(self, what: impl Display) -> Self {
        match self {
            Failure::Told(error) => Failure::Told(error.also(what)),
            said => said,
        }
    }
}

/// The outcome of a command from the result of writing and the conclusion.
pub fn conclude(written: Outcome, conclusion: Conclusion) -> Outcome {
    match written {
        // A closed pipe does not change the conclusion.
        Ok(()) | Err(Failure::BrokenPipe) => {}
        Err(other) => return Err(other),
    }
    match conclusion {
        Conclusion::Settled => Ok(()),
        Conclusion::Regression => Err(Failure::No),
        Conclusion::CannotTell => Err(Failure::CannotTell),
    }
}

/// The end of a command that measured: the failures that remain, as one, otherwise the answer to its question, if it has one.
pub fn concluded(failures: impl IntoIterator<Item = Failure>, answer: Option<Answer>) -> Outcome {
    let mut failures: Vec<Failure> = failures.into_iter().collect();
    // Its remedy is the command that finishes the runs.
    failures.sort_by_key(|failure| !failure.is_interrupt());
    let joined = |first, other| match (first, other) {
        (Failure::Told(first), Failure::Told(other)) => first.also(other.message()).into(),
        // Others are printed already.
        (_, told @ Failure::Told(_)) => told,
        (first, _) => first,
    };
    match (failures.into_iter().reduce(joined), answer) {
        (Some(failure), _) => Err(failure),
        (None, None | Some(Answer::Yes)) => Ok(()),
        (None, Some(Answer::No)) => Err(Failure::No),
        (None, Some(Answer::CannotTell)) => Err(Failure::CannotTell),
    }
}
