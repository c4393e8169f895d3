//! Whole programs, timed on a real file system at a tiny size.

use std::path::Path;

use rustix::process::Signal;

use crate::support::words::words;
use crate::support::{
    Done, entries, exported, folder, iolab, resumed_with_is_whole, run, sample_count, signal,
    started,
};

/// Options for equally many trials on busy and on idle machines.
const TINY: [&str; 6] = words!("--set trials_min=3 --set trials_max=3 --budget 1min");

/// Runs the linkage experiment in a moment, with further arguments.
fn linkage(folder: &Path, more: &[&str]) -> Done {
    run(folder, &[&["run", "linkage"], more, &TINY[..]].concat())
}

fn environment(file: &Path) -> Vec<(String, String)> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = rusqlite::Connection::open_with_flags(file, flags).unwrap();
    let mut rows = db.prepare("SELECT key, value FROM environment").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn both_builds_of_reader_are_timed_and_compared() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    let arguments = ["run", "linkage", "-o", "l.iolab", "--set", "region=1,64k"];
    let arguments = [&arguments[..], &TINY].concat();
    let done: Done = iolab(folder.path(), &arguments)
        .env("TMPDIR", folder.path().join("tmp"))
        .output()
        .unwrap()
        .into();
    if done.code == Some(2) {
        return needs::skip(needs::Need::Cc, done.stderr);
    }
    done.expect(0);
    assert_eq!(entries(folder.path()), ["l.iolab", "tmp"]);
    assert!(
        entries(&folder.path().join("tmp")).is_empty(),
        "the probes are removed"
    );
    let rows = exported(folder.path(), "l.iolab");
    assert_eq!(
        rows.len(),
        4 * 4,
        "a warm-up and three trials of four cells"
    );
    for row in &rows {
        let linkage = row["level_linkage"].as_str().unwrap();
        assert_eq!(row["command"], format!("reader-{linkage} {{file}} {{bs}}"));
        assert!(row["elapsed_ns"].as_u64().unwrap() > 0);
        assert!(row["minor_faults"].as_u64().unwrap() > 0);
        if row["process_read_calls"].is_u64() {
            let read = row["read_bytes"].as_u64().unwrap();
            assert!(read >= row["region_bytes"].as_u64().unwrap(), "{row}");
        }
    }
    let environment = environment(&folder.path().join("l.iolab"));
    let has = |key: &str| environment.iter().any(|(k, v)| k == key && !v.is_empty());
    for key in [
        "probe_compiler", "probe_static_bytes", "probe_dynamic_bytes", "probe_loader",
    ] {
        assert!(has(key), "{key}: {environment:?}");
    }
    run(folder.path(), &["table", "l.iolab"]).expect(0);
}

#[test]
fn program_gets_regular_file_in_private_folder() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let script = "test -f \"$0\" && test ! -L \"$0\" && echo \"$0\" >>names && ls -ld \"$(dirname \"$0\")/.\" >>folders";
    let commands = format!("command=sh -c '{script}' {{file}}");
    let more = ["data", "-o", "p.iolab", "--set", &commands, "--size", "10"];
    linkage(folder.path(), &more).expect(0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for line in read("names").lines() {
        assert!(
            line.starts_with("/proc/") && line.ends_with("/10"),
            "{line}"
        );
    }
    for line in read("folders").lines() {
        assert!(line.starts_with("drwx------"), "{line}");
    }
    assert!(entries(&folder.path().join("data")).is_empty());
}

#[test]
fn program_that_moves_its_file_ends_the_run() {
    let folder = folder();
    std::fs::write(folder.path().join("mine"), "data").unwrap();
    for what in ["mv \"$0\" \"$0\".old", "cp mine new; mv new \"$0\""] {
        let command = format!("command=sh -c '{what}' {{file}}");
        let more = [".", "-o", "m.iolab", "--set", &command, "--size", "10"];
        linkage(folder.path(), &more).expect(3);
        std::fs::remove_file(folder.path().join("m.iolab")).unwrap();
    }
    assert_eq!(std::fs::read(folder.path().join("mine")).unwrap(), b"data");
}

#[test]
fn a_file_starts_no_program_without_consent() {
    let folder = folder();
    let head = "name = \"mine\"\nquestion = \"?\"\nresponse = \"elapsed\"\n";
    let design = "[design]\ntrials_min = 2\ntrials_max = 2\nbudget = \"1s\"\n";
    for (name, body) in [
        (
            "factor",
            "[factors]\ncommand = [\"sh -c 'touch made' {file}\", \"cat {file}\"]\n[settings]\nregion = \"1k\"\ncache = \"hot\"\n",
        ),
        (
            "setting",
            "[settings]\ncommand = \"sh -c 'touch made' {file}\"\nregion = \"1k\"\ncache = \"hot\"\n",
        ),
    ] {
        let file = format!("{name}.toml");
        std::fs::write(folder.path().join(&file), format!("{head}{body}{design}")).unwrap();
        let error = run(folder.path(), &["run", &file, "--quiet"])
            .expect(3)
            .stderr;
        insta::allow_duplicates! {
            insta::assert_snapshot!(error.trim_end(), @r"
            error: refusing to start a program that a file names: sh -c 'touch made' {file}
              read what --dry-run lists; to start it, add --run-programs
            ");
        }
        let dry = run(folder.path(), &["run", &file, "--dry-run"]).expect(3);
        let starts = "Starts: sh -c 'touch made' {file}";
        assert!(
            dry.stdout.lines().any(|line| line == starts),
            "{}",
            dry.stdout
        );
        assert!(!folder.path().join("made").exists());
        // A command among the arguments replaces the command of the file.
        let typed = ["run", &file, "--set", "command=cat {file}", "--quiet"];
        run(folder.path(), &typed).expect(0);
        assert!(!folder.path().join("made").exists());
        run(folder.path(), &["run", &file, "--run-programs", "--quiet"]).expect(0);
        std::fs::remove_file(folder.path().join("made")).expect("the program ran");
    }
}

#[test]
fn a_compiler_that_is_not_there_is_told() {
    let folder = folder();
    let done: Done = iolab(folder.path(), &["run", "linkage"])
        .env("CC", "/nonexistent/cc")
        .output()
        .unwrap()
        .into();
    let named = done.expect(2).stderr;
    let done: Done = iolab(folder.path(), &["run", "linkage"])
        .env_remove("CC")
        .env("PATH", "/nonexistent")
        .output()
        .unwrap()
        .into();
    insta::assert_snapshot!(format!("{named}\n{}", done.expect(2).stderr));
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn failed_program_ends_run_with_last_words() {
    let folder = folder();
    let command = "command=sh -c 'echo it broke >&2; exit 9' {file}";
    let more = ["-o", "f.iolab", "--set", command, "--size", "1"];
    let done = linkage(folder.path(), &more).expect(1);
    let why = done.stderr.split(" ended with ").nth(1);
    insta::assert_snapshot!(why.expect("how it ended"), @r"
    exit code 9; it wrote: it broke
      run the command by hand on a file of that size to see more; then resume the run
      1 trial kept in f.iolab
    ");
    let rows = exported(folder.path(), "f.iolab");
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["ok"], &rows[0]["errors"]),
        (&false.into(), &1.into())
    );
    let more = [
        "--set",
        "command=sh -c 'sleep 1000' {file}",
        "--size",
        "1",
        "--time",
        "50ms",
    ];
    let done = linkage(folder.path(), &more).expect(1);
    let error = done.stderr.lines().find(|line| line.starts_with("error: "));
    let (_, why) = error
        .and_then(|line| line.rsplit_once("' "))
        .expect("the command");
    insta::assert_snapshot!(why, @"had not ended after 50 ms; it wrote nothing on its standard error");
}

/// Two cells with a warm-up and six trials each, at least 50 ms per trial.
const SLOW: [&str; 14] = [
    "run",
    "linkage",
    "data",
    "-o",
    "r.iolab",
    "--set",
    "command=sh -c 'sleep 0.05; cat \"$0\"' {file}",
    "--set",
    "region=1,5000",
    "--set",
    "trials_min=6",
    "--set",
    "trials_max=6",
    "--seed=3",
];
const SAMPLES: i64 = 14;

/// Starts the slow run, waits until it has measured some samples, and ends it by a signal.
fn cut_off(folder: &Path, which: Signal) -> Done {
    let child = started(folder, &SLOW, 3);
    signal(&child, which);
    child.wait_with_output().unwrap().into()
}

#[test]
fn interrupted_run_cleans_up_and_can_be_finished() {
    let folder = folder();
    cut_off(folder.path(), Signal::INT).expect(130);
    assert!(entries(&folder.path().join("data")).is_empty());
    let measured = sample_count(&folder.path().join("r.iolab")).unwrap();
    assert!((3..SAMPLES).contains(&measured), "{measured}");
    run(folder.path(), &["resume", "r.iolab"]).expect(3);
    let dry = run(folder.path(), &["resume", "r.iolab", "--dry-run"]).expect(3);
    let starts = "Starts: sh -c 'sleep 0.05; cat \"$0\"' {file}";
    assert!(
        dry.stdout.lines().any(|line| line == starts),
        "{}",
        dry.stdout
    );
    resumed_with_is_whole(folder.path(), &["--run-programs"], SAMPLES);
}

#[test]
fn files_of_killed_run_are_removed_by_next() {
    let folder = folder();
    cut_off(folder.path(), Signal::KILL);
    let left = entries(&folder.path().join("data"));
    assert_eq!(left.len(), 2, "the scratch file and a folder: {left:?}");
    resumed_with_is_whole(folder.path(), &["--run-programs"], SAMPLES);
}
