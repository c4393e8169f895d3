//! Programs of the system that know more than we do, where they are installed. They are looked for in the system's own
//! folders alone: what `PATH` names first may be anybody's.

use std::path::Path;
use std::process::{Command, Stdio};

/// What a program printed, and how it ended.
pub(super) struct Output {
    /// Its exit code; `None` after a signal.
    pub(super) code: Option<i32>,
    /// What it printed, with characters in place of bytes that are none.
    pub(super) stdout: String,
}

/// Runs a program to its end; `None` when it is not installed or cannot be started.
pub(super) fn output(name: &str, arguments: &[&str]) -> Option<Output> {
    let program = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists())?;
    let done = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(Output {
        code: done.status.code(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
    })
}
