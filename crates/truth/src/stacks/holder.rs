//! Other processes that hold a file or device, each until it is dropped or this process ends.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::system::{Made, Unmade, failed};

/// Longest time that a process may take to get hold of its object.
const START_MAX: Duration = Duration::from_secs(10);

/// A process that holds something while its standard input is open.
#[derive(Debug)]
pub struct Holder {
    child: Child,
}

impl Holder {
    /// A process with a descriptor of a file or device: for reading only, or also for writing.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, writing: bool) -> Made<Self> {
        let script = match writing {
            true => "exec 3<> \"$0\" && echo ready && read -r _",
            false => "exec 3< \"$0\" && echo ready && read -r _",
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(path);
        Self::start(&mut shell)
    }

    /// A process with a shared, writable mapping of the first bytes, whose descriptor is closed again.
    ///
    /// # Errors
    /// `xfs_io` is missing, or the mapping fails.
    pub fn mapped(path: &Path) -> Made<Self> {
        let mut tool = Command::new("xfs_io");
        let holder = Self::begin(tool.arg(path), "mmap -rw 0 65536\nclose\n")?;
        let process = PathBuf::from(format!("/proc/{}", holder.id()));
        let begin = Instant::now();
        // xfs_io prints only at its end; /proc shows earlier what it has mapped and open.
        while !is_mapped(&process) || is_open(&process, path) {
            if begin.elapsed() > START_MAX {
                return Err(Unmade::Failed(format!(
                    "xfs_io does not map {}",
                    path.display()
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(holder)
    }

    /// A process in its own mount namespace, where a script runs first.
    ///
    /// # Errors
    /// Without root, or the script fails.
    pub fn namespace(script: &str, arguments: &[&str]) -> Made<Self> {
        let script = format!("{{ {script}; }} && echo ready && read -r _");
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .args(arguments);
        Self::start(&mut unshare)
    }

    /// Starts a process, and waits until it prints something.
    fn start(command: &mut Command) -> Made<Self> {
        let mut holder = Self::begin(command, "")?;
        let words = holder.child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(words)
            .read_line(&mut line)
            .map_err(failed("what a process says"))?;
        match line.is_empty() {
            true => Err(Unmade::Failed(
                "a process that is to hold something ended".to_owned(),
            )),
            false => Ok(holder),
        }
    }

    /// Starts a process, and sends it orders.
    fn begin(command: &mut Command, orders: &str) -> Made<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed(&name))?;
        let holder = Self { child };
        let mut way = holder.child.stdin.as_ref().expect("it is piped");
        way.write_all(orders.as_bytes()).map_err(failed(&name))?;
        Ok(holder)
    }

    /// Process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Whether a process has a shared, writable mapping.
fn is_mapped(process: &Path) -> bool {
    let maps = std::fs::read_to_string(process.join("maps"));
    maps.is_ok_and(|maps| maps.contains(" rw-s "))
}

/// Whether a process has a descriptor of a file.
fn is_open(process: &Path, path: &Path) -> bool {
    let entries = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    entries
        .flatten()
        .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == path))
}
