//! Runs by several processes: `cargo test -p iolab --features mpi --test mpi`. Needs mpirun.

use std::ffi::OsString;
use std::fs::DirEntry;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

use rusqlite::Connection;

const TINY: [&str; 14] = [
    "--size", "1M", "--budget", "1ms", "--set", "bs=4k,64k", "--set", "time=none", "--set",
    "bytes=none", "--set", "cache=cold", "-o", "run.iolab",
];

/// Starts `ranks` processes in a folder; `None` without mpirun, as a skipped test.
#[track_caller]
fn mpirun(folder: &Path, ranks: u32, arguments: &[&str]) -> Option<Output> {
    let mut command = needs::mpirun()?;
    command.args(["-n", &ranks.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_iolab")).args(arguments);
    Some(command.current_dir(folder).output().expect("mpirun starts"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: io::Result<DirEntry>| entry.expect("an entry").file_name();
    entries.map(name).collect()
}

#[test]
fn all_processes_are_one_run() {
    for (ranks, layout) in [
        (1, "shared"),
        (2, "shared"),
        (3, "interleaved"),
        (4, "private"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = format!("layout={layout}");
        let arguments = [&["run", "read-size", ".", "--set", &layout], &TINY[..]].concat();
        let Some(output) = mpirun(folder.path(), ranks, &arguments) else {
            return;
        };
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{ranks} ranks: {stdout}\n{stderr}");
        assert_eq!(stderr.matches("run file: ").count(), 1, "{stderr}");
        assert_eq!(names(folder.path()), ["run.iolab"]);
        let record = iolab_runfile::read(&folder.path().join("run.iolab")).expect("a run file");
        let mut samples = record.samples.iter();
        assert!(samples.len() >= 2);
        assert!(samples.all(|sample| sample.operations.read.bytes == 1 << 20));
        // Tests of ranks that are threads have their parts.
        let each = if ranks > 1 { ranks as usize } else { 0 };
        assert_eq!(record.ranks.len(), each);
        assert_eq!(record.parts.len(), each * record.samples.len());
    }
}

#[test]
fn a_run_is_resumed_by_as_many_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [&["run", "read-size", ".", "--set", "ranks=1,2"], &TINY[..]].concat();
    let Some(output) = mpirun(folder.path(), 2, &arguments) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let open = || Connection::open(folder.path().join("run.iolab")).expect("a run file");
    let samples = |file: &Connection| -> i64 {
        let query = "SELECT count(*) FROM sample";
        file.query_row(query, [], |row| row.get(0)).expect(query)
    };
    let file = open();
    let before = samples(&file);
    // Removes the last trial, as if the run had been interrupted before it.
    let cut = "DELETE FROM part WHERE sample_id = (SELECT max(id) FROM sample);
        DELETE FROM client_sample WHERE sample_id = (SELECT max(id) FROM sample);
        DELETE FROM latency WHERE sample_id = (SELECT max(id) FROM sample);
        DELETE FROM series WHERE sample_id = (SELECT max(id) FROM sample);
        DELETE FROM sample WHERE id = (SELECT max(id) FROM sample);
        UPDATE run SET status = 'interrupted'; UPDATE cell SET ended_by = NULL;";
    file.execute_batch(cut).expect("cut");
    drop(file);
    for ranks in [1, 3] {
        let output = mpirun(folder.path(), ranks, &["resume", "run.iolab"]).expect("mpirun");
        let stderr = text(&output.stderr);
        assert!(!output.status.success(), "{ranks}: {stderr}");
        assert!(
            stderr.contains("mpirun -n 2 iolab resume run.iolab"),
            "{stderr}"
        );
    }
    let output = mpirun(folder.path(), 2, &["resume", "run.iolab"]).expect("mpirun");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(samples(&open()) >= before);
    assert_eq!(names(folder.path()), ["run.iolab"]);
}

#[test]
fn processes_without_connection_by_mpi_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (rank, code, messages) in [("0", 2, 1), ("3", 0, 0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
        let output = command
            .env("SLURM_STEP_NUM_TASKS", "4")
            .env("SLURM_PROCID", rank)
            .args(["run", "read-size", "."])
            .current_dir(folder.path())
            .output()
            .expect("the binary starts");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        let told = stderr.matches("error: ").count();
        assert_eq!(told, messages, "{stderr}");
        assert!(names(folder.path()).is_empty());
    }
}

#[test]
fn an_error_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["run", "no-such-experiment", "."][..],
        &["run", "read-size", ".", "--no-such-option"],
        &["run", "read-size", "model:disk-grid"],
        &["run", "read-size", ".", "--set", "tool=fio"],
        &["study", "."],
        &["resume", "r.iolab"],
    ] {
        let Some(output) = mpirun(folder.path(), 2, arguments) else {
            return;
        };
        let stderr = text(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert_eq!(
            stderr.matches("error: ").count(),
            1,
            "{arguments:?}: {stderr}"
        );
        assert!(names(folder.path()).is_empty(), "{arguments:?}");
    }
}

/// Makes a folder for each rank.
fn own_folders(ranks: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..ranks {
        std::fs::create_dir(folder.path().join(format!("r{rank}"))).expect("a folder");
    }
    folder
}

#[test]
fn targets_of_all_ranks_are_named_beforehand() {
    let folder = own_folders(4);
    let arguments = [&["run", "read-size", "r{rank}"], &TINY[..]].concat();
    let planned = [&arguments[..], &["--dry-run"]].concat();
    let Some(planned) = mpirun(folder.path(), 4, &planned) else {
        return;
    };
    let told = text(&planned.stdout);
    assert!(told.contains("Each rank has a path of its own"), "{told}");
    assert!(!told.contains("refuses"), "{told}");
    let peak = [&arguments[..], &["--peak", "measure"]].concat();
    let refused = mpirun(folder.path(), 4, &peak).expect("it was there");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let told = text(&refused.stderr);
    assert!(
        told.contains("--peak measure probes the target with one process, and 4 measure"),
        "{told}"
    );
    let run = mpirun(folder.path(), 4, &arguments).expect("it was there");
    let told = text(&run.stderr);
    assert!(run.status.success(), "{told}");
    assert!(
        told.contains("filling scratch files writes 4 MiB"),
        "{told}"
    );
}
