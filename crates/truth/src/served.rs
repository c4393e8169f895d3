//! `iolab serve` as a child process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::binary::binary;
use crate::scene::Scene;
use crate::system::{Made, Unmade};

/// A model being served.
pub struct ServedModel {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// Output until it was ready.
    pub words: String,
    at: PathBuf,
}

impl ServedModel {
    /// Serves a model in a folder of the scene, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// It cannot be served here, with its output.
    ///
    /// # Panics
    ///
    /// If the binary does not start.
    pub fn begin(scene: &Scene, model: &str, at: &Path, more: &[&str]) -> Made<Self> {
        scene.can_mount_fuse()?;
        let mut command = scene.command(binary());
        command.args(["serve", model]).arg(at).args(more);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("iolab starts");
        scene
            .keeper
            .finally(&["sh", "-c", UNMOUNT, &at.display().to_string()]);
        scene.keeper.end(&child);
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut words = String::new();
        while !words.contains("Ctrl-C ends") {
            if stderr.read_line(&mut words).expect("text") == 0 {
                let _ = child.wait();
                scene.keeper.forget();
                return Err(Unmade::Failed(format!(
                    "nothing is served: {}",
                    words.trim()
                )));
            }
        }
        Ok(Self {
            child,
            stderr,
            words,
            at: at.to_owned(),
        })
    }

    /// File of the served disk.
    pub fn file(&self) -> PathBuf {
        self.at.join("disk")
    }

    /// Mount point of the served model.
    pub fn place(&self) -> &Path {
        &self.at
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// If it has ended already.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for its end; returns exit code, report, and its last output.
    ///
    /// # Panics
    ///
    /// If the output is not text.
    pub fn ended(mut self, scene: &Scene) -> (Option<i32>, String, String) {
        let (mut out, mut words) = (String::new(), String::new());
        let stdout = self.child.stdout.as_mut().expect("piped");
        stdout.read_to_string(&mut out).expect("text");
        self.stderr.read_to_string(&mut words).expect("text");
        let code = self.child.wait().expect("it ends").code();
        scene.keeper.forget();
        (code, out, words)
    }
}

/// Unmounts a folder; a mount that is already gone is not an error.
const UNMOUNT: &str = "umount -l \"$0\" 2> /dev/null || true";

/// Whether there is a mount at this path.
///
/// # Panics
/// There is no `/proc`.
pub fn is_mounted(at: &Path) -> bool {
    mounts(at) > 0
}

/// Number of file systems mounted on a folder, one over the other.
///
/// # Panics
/// There is no `/proc`.
pub fn mounts(at: &Path) -> usize {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("/proc");
    mounts.matches(&format!(" {} ", at.display())).count()
}
