//! Programs of the system that know more than iolab, where they are installed. Only the system's own folders
//! are searched: the first one in `PATH` may belong to any user.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Output of a program, and its exit code.
pub(super) struct Output {
    /// Exit code; `None` after a signal.
    pub(super) code: Option<i32>,
    /// Standard output, with replacement characters for invalid bytes.
    pub(super) stdout: String,
}

/// Runs a program to its end; `None` when it is not installed or cannot be started. It has its own process
/// group: Ctrl-C reaches all of a terminal's group and would end it, and missing output would look like a
/// missing object.
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
    fn group_signals_do_not_reach_a_tool() {
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
