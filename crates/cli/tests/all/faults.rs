//! Storage that fails in mid-run: the run ends with a clear message, and what was measured is kept. What needs a device
//! of its own for that is a scenario of the truth suite.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::support::{Done, error_of, exported, folder, iolab, run, status, wait_for_samples};

const MIB: u64 = 1 << 20;

/// Arguments of a run on TARGET that lasts until something stops it.
fn long(experiment: &'static str, target: &str) -> Vec<String> {
    let words = [
        "run", experiment, target, "-o", "r.iolab", "--set", "bs=64k", "--set", "trials_min=1000",
        "--set", "trials_max=1000", "--set", "sync=none", "--size", "32MiB", "--time", "20ms",
        "--budget", "10min", "--destroy-data",
    ];
    words.map(str::to_owned).to_vec()
}

/// Starts the run, breaks the storage once something was measured, and waits for the end.
fn broken_in_mid_run(folder: &Path, arguments: &[String], break_it: impl FnOnce()) -> Done {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let child = iolab(folder, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut running = Running(Some(child));
    wait_for_samples(&folder.join("r.iolab"), 3);
    break_it();
    let child = running.0.take().expect("it was started");
    child.wait_with_output().expect("it ends").into()
}

/// A run that does not outlive a test that panics.
struct Running(Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asserts on every failed run: earlier trials are kept, and the trial in which the storage broke does not
/// count.
fn is_kept(folder: &Path) {
    let rows = exported(folder, "r.iolab");
    assert!(rows.len() >= 3);
    assert!(rows.iter().all(|row| row["ok"] == true));
    run(folder, &["table", "r.iolab"]).expect(0);
    assert_eq!(status(&folder.join("r.iolab")), "failed");
}

#[test]
fn a_file_that_is_cut_short() {
    let mut all = Vec::new();
    for backend in ["psync", "mmap"] {
        let folder = folder();
        let path = folder.path().join("data");
        fs::write(&path, vec![7u8; (32 * MIB) as usize]).expect("written");
        let mut arguments = long("read-size", "data");
        arguments.extend(["--buffered".to_owned(), "--set".to_owned()]);
        arguments.push(format!("backend={backend}"));
        let done = broken_in_mid_run(folder.path(), &arguments, || {
            let file = OpenOptions::new().write(true).open(&path).expect("opens");
            file.set_len(MIB).expect("cut");
        });
        all.push(error_of(&done.expect(1), folder.path()));
        is_kept(folder.path());
    }
    insta::assert_snapshot!(all.join("\n"), @r"
    data became shorter during the run: another process has truncated it
      the run file keeps the earlier trials; find that process before you measure again
    data became shorter during the run: another process has truncated it
      the run file keeps the earlier trials; find that process before you measure again
    ");
}
