//! System commands, and what is missing to carry them out.

use std::fmt;
use std::io::Write;
use std::process::Command;

/// Why something cannot be made here; a scenario is then skipped, and says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Something made, or why it cannot be made here.
pub type Made<T> = Result<T, Missing>;

/// Turns any error into a reason, with what was tried.
pub fn missing<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Missing {
    move |error| Missing(format!("{what}: {error}"))
}

/// Runs a command to its end; what it printed.
///
/// # Errors
/// When it is not installed or fails, with its last words.
pub fn run(program: &str, arguments: &[&str]) -> Made<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(missing(program))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Missing(format!("{program}: {}", words.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether this process may mount and make devices.
///
/// # Errors
/// When it may not.
pub fn needs_root() -> Made<()> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Missing("needs root".to_owned())),
    }
}

/// Tells the tester, past the test harness, which would keep it to itself.
pub fn warn(text: &str) {
    // Without a place to report to, nothing is reported.
    let _ = writeln!(std::io::stderr(), "{text}");
}
