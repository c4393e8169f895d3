//! Storage that fails in mid-run: the run ends with a clear message, and what was measured is kept.

#![allow(clippy::print_stderr, reason = "what is skipped says why")]

mod support;

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{Done, exported, folder, iolab, run, wait_for_samples};

const MIB: u64 = 1 << 20;

/// Arguments of a run on TARGET that lasts until something stops it.
fn long(experiment: &'static str, target: &str) -> Vec<String> {
    let words = [
        "run",
        experiment,
        target,
        "-o",
        "r.iolab",
        "--set",
        "bs=64k",
        "--set",
        "trials_min=1000",
        "--set",
        "trials_max=1000",
        "--set",
        "sync=none",
        "--size",
        "32MiB",
        "--time",
        "20ms",
        "--budget",
        "10min",
        "--destroy-data",
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
    wait_for_samples(&folder.join("r.iolab"), 3);
    break_it();
    child.wait_with_output().expect("it ends").into()
}

/// What every failed run has in common.
fn is_kept(folder: &Path, done: Done, words: &[&str]) {
    let done = done.expect(1);
    for word in words {
        assert!(
            done.stderr.contains(word),
            "no '{word}' in: {}",
            done.stderr
        );
    }
    let rows = exported(folder, "r.iolab");
    assert!(rows.len() > 3);
    let (last, before) = rows.split_last().expect("samples");
    assert!(before.iter().all(|row| row["ok"] == true));
    assert_eq!((&last["ok"], &last["errors"]), (&false.into(), &1.into()));
    let shown = run(folder, &["table", "r.iolab"]).expect(0).stdout;
    assert!(shown.contains("ended by a failure"), "{shown}");
}

#[test]
fn a_file_that_is_cut_short() {
    let folder = folder();
    let path = folder.path().join("data");
    fs::write(&path, vec![7u8; (32 * MIB) as usize]).expect("written");
    let mut arguments = long("read-size", "data");
    arguments.push("--buffered".to_owned());
    let done = broken_in_mid_run(folder.path(), &arguments, || {
        let file = OpenOptions::new().write(true).open(&path).expect("opens");
        file.set_len(MIB).expect("cut");
    });
    is_kept(folder.path(), done, &["pread", "unexpected end", "resume"]);
}

/// Undoes a mount or a loop device.
struct Undo(&'static str, Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        let _ = Command::new(self.0).args(&self.1).output();
    }
}

/// Runs a system command; the first line of what it printed, or why it could not.
fn system(command: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(command)
        .args(arguments)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A loop device over a file; needs root.
fn loop_device(backing: &Path) -> Result<(String, Undo), String> {
    let device = system(
        "losetup",
        &["--find", "--show", &backing.display().to_string()],
    )?;
    let undo = Undo("losetup", vec!["--detach".to_owned(), device.clone()]);
    Ok((device, undo))
}

#[test]
fn a_device_that_reports_input_output_errors() {
    let folder = folder();
    let backing = folder.path().join("backing");
    fs::write(&backing, vec![7u8; (32 * MIB) as usize]).expect("written");
    let (device, _undo) = match loop_device(&backing) {
        Ok(device) => device,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let arguments = long("read-size", &device);
    let done = broken_in_mid_run(folder.path(), &arguments, || {
        let file = OpenOptions::new()
            .write(true)
            .open(&backing)
            .expect("opens");
        file.set_len(MIB).expect("cut");
    });
    is_kept(
        folder.path(),
        done,
        &["pread", "Input/output error", "dmesg"],
    );
}

#[test]
fn a_device_that_runs_out_of_space() {
    let folder = folder();
    let mount: PathBuf = folder.path().join("small");
    fs::create_dir(&mount).expect("made");
    let at = mount.display().to_string();
    if let Err(why) = system("mount", &["-t", "tmpfs", "-o", "size=40m", "tmpfs", &at]) {
        return eprintln!("skipped: {why}");
    }
    let _unmount = Undo("umount", vec![at]);
    let backing = mount.join("backing");
    let sparse = File::create(&backing).expect("created");
    sparse.set_len(32 * MIB).expect("sized");
    let (device, _undo) = match loop_device(&backing) {
        Ok(device) => device,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut arguments = long("write-size", &device);
    // A few blocks a trial: most of the sparse file still needs space when there is none left.
    arguments.extend(["--set", "pattern=rand", "--set", "requests=8"].map(str::to_owned));
    let done = broken_in_mid_run(folder.path(), &arguments, || {
        // ENOSPC is the end that is wanted here.
        let _ = fs::write(mount.join("hog"), vec![7u8; (40 * MIB) as usize]);
    });
    is_kept(folder.path(), done, &["pwrite", "No space left", "--size"]);
}
