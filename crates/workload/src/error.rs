//! The error type of the workspace: what failed, on what, and what to do next.

use serde::{Deserialize, Serialize};

use std::{fmt, io};

/// The kind of a failure; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The request is invalid: a wrong value, or a target of the wrong kind.
    Usage,
    /// Refused because data could be lost or the system harmed.
    Refused,
    /// A measurement was started and failed.
    Failed,
    /// The user stopped it.
    Interrupted,
}

/// A failure in plain words, with a remedy if one is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
    #[serde(skip)]
    cause: Option<io::ErrorKind>,
}

/// Result with the workspace's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Returns from the enclosing function with the first error whose condition holds: condition, fault, remedy. All are of
/// kind [`Usage`](Kind::Usage).
#[macro_export]
macro_rules! usage_errors {
    ($($condition:expr => $message:expr, $hint:expr;)+) => {
        $(if $condition {
            return Err($crate::Error::usage($message).hint($hint));
        })+
    };
}

impl Error {
    /// An error of kind [`Kind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// An error of kind [`Kind::Refused`].
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// An error of kind [`Kind::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// An error of kind [`Kind::Interrupted`].
    pub fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            cause: None,
        }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a line to the remedy.
    #[must_use]
    pub fn also(mut self, what: impl fmt::Display) -> Self {
        self.hint = Some(match self.hint {
            Some(hint) => format!("{hint}\n  {what}"),
            None => what.to_string(),
        });
        self
    }

    /// Puts a location in front of the message: `read-size.toml, line 3: ...`.
    #[must_use]
    pub fn within(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Keeps the kind of the kernel's error, for callers that know a remedy.
    #[must_use]
    pub fn caused_by(mut self, error: &io::Error) -> Self {
        self.cause = Some(error.kind());
        self
    }

    /// Kind of the kernel's error; `None` if it was not kept.
    pub fn cause(&self) -> Option<io::ErrorKind> {
        self.cause
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The failure, without the remedy.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The user's next step; `None` if no remedy is known.
    pub fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
