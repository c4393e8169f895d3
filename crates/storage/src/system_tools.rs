//! Programs of the system that know more than we do, where they are installed. They are looked for in the system's own
//! folders alone: what `PATH` names first may be anybody's.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a program printed, and how it ended.
pub(super) struct Output {
    /// Its exit code; `None` after a signal.
    pub(super) code: Option<i32>,
    /// What it printed, with characters in place of bytes that are none.
    pub(super) stdout: String,
}

/// Runs a program to its end; `None` when it is not installed or cannot be started. It has a process group of its own: Ctrl-C, which a
/// terminal sends to all of a group, would end it, and what it does not tell would look like something that is not there.
pub(super) fn output(name: &str, arguments: &[&str]) -> Option<Output> {
    let program = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists())?;
    let done = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(Output {
        code: done.status.code(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_to_the_group_of_this_process_does_not_reach_a_tool() {
        // The fifth word is the process group (proc_pid_stat(5)).
        let script = "read -r pid name state parent group rest </proc/self/stat; echo $group";
        let group = output("sh", &["-c", script]).expect("there is a shell");
        let own = rustix::process::getpgrp().as_raw_nonzero().to_string();
        assert_eq!(group.code, Some(0));
        assert_ne!(group.stdout.trim(), own);
        assert!(
            group.stdout.trim().parse::<u32>().is_ok(),
            "{}",
            group.stdout
        );
    }
}
