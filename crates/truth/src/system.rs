//! System commands, and the lack of them on a machine.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::process::Command;

use needs::Need;

/// Reason why something was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmade {
    /// The machine lacks this, with the evidence: the scenario is skipped.
    Missing(Need, String),
    /// Something failed that every machine can do.
    Failed(String),
}

impl fmt::Display for Unmade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmade::Missing(_, why) | Unmade::Failed(why) => f.write_str(why),
        }
    }
}

impl Unmade {
    /// Treats the failure as a lack of `need`.
    #[must_use]
    pub fn lacking(self, need: Need) -> Self {
        match self {
            Unmade::Failed(why) => Unmade::Missing(need, why),
            missing @ Unmade::Missing(..) => missing,
        }
    }

    /// Adds a description of the attempt.
    #[must_use]
    pub fn during(self, what: impl fmt::Display) -> Self {
        let with = |why| format!("{what}: {why}");
        match self {
            Unmade::Missing(need, why) => Unmade::Missing(need, with(why)),
            Unmade::Failed(why) => Unmade::Failed(with(why)),
        }
    }
}

/// A made object, or the reason why it was not made.
pub type Made<T> = Result<T, Unmade>;

/// The made object, or a skip if the machine lacks something for it.
///
/// # Panics
///
/// If it failed for another reason.
#[track_caller]
pub fn unless_missing<T>(made: Made<T>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(Unmade::Missing(need, why)) => {
            needs::skip(need, why);
            None
        }
        Err(Unmade::Failed(why)) => panic!("{why}"),
    }
}

/// Converts an error to a failure, with what was tried.
pub fn failed<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Unmade {
    move |error| Unmade::Failed(format!("{what}: {error}"))
}

/// Converts an error to a lack, with what was tried.
pub fn lacks<E: fmt::Display>(need: Need, what: impl fmt::Display) -> impl FnOnce(E) -> Unmade {
    move |error| Unmade::Missing(need, format!("{what}: {error}"))
}

/// Runs a command to its end; returns its output.
///
/// # Errors
///
/// Missing when it is not installed, failed when it fails, with its last output.
pub fn run(program: &str, arguments: &[&str]) -> Made<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| match Need::of_program(program) {
        Some(need) if error.kind() == ErrorKind::NotFound => lacks(need, program)(error),
        _ => failed(program)(error),
    })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Unmade::Failed(format!("{program}: {}", words.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Program of a need.
///
/// # Errors
/// Missing when it is not installed.
pub fn tool(need: Need) -> Made<&'static str> {
    need.program()
        .ok_or_else(|| Unmade::Missing(need, "it is not installed".to_owned()))
}

/// Checks that this process may mount and make devices.
///
/// # Errors
///
/// Missing when it may not.
pub fn needs_root() -> Made<()> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Unmade::Missing(
            Need::Root,
            "this is an ordinary user".to_owned(),
        )),
    }
}

/// Prints a warning past the test harness, which would capture it.
pub fn warn(text: &str) {
    // A closed stderr must not fail the test.
    let _ = writeln!(std::io::stderr(), "{text}");
}
