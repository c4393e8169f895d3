//! Other tools: of those that do not work, what is measured without them is kept, and the run does not wait for them for
//! long.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Done, TINY, entries, error_of, exported, folder, iolab};

/// Runs with a stand-in for fio, which answers `--version` and then does what `body` says.
fn with_fio(folder: &Path, body: &str, tools: &str) -> Done {
    let place = folder.join("bin");
    fs::create_dir(&place).unwrap();
    fs::create_dir(folder.join("data")).unwrap();
    let script = place.join("fio");
    fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let tools = format!("tool={tools}");
    let run = ["run", "read-size", "data", "-o", "r.iolab", "--set", &tools];
    iolab(folder, &[&run[..], &TINY].concat())
        .env("PATH", format!("{}:{path}", place.display()))
        .output()
        .unwrap()
        .into()
}

const VERSION: &str = "[ \"$1\" = --version ] && echo fio-3.35 && exit 0";

#[test]
fn a_peer_that_never_works_fails_the_run() {
    for (tools, trials) in [("fio", 2), ("iolab,fio", 6)] {
        let folder = folder();
        let words = "no such engine";
        let body = format!("{VERSION}\necho '{words}' >&2\nexit 1");
        let done = with_fio(folder.path(), &body, tools).expect(1);
        assert!(done.stderr.contains(words), "{}", done.stderr);
        let rows = exported(folder.path(), "r.iolab");
        assert!(rows.len() >= trials, "{tools}: {}", rows.len());
        let failed = rows.iter().filter(|row| row["ok"] == false).count();
        assert_eq!(failed, 2, "one for each size");
        assert_eq!(entries(&folder.path().join("data")), [""; 0]);
    }
}

#[test]
fn peer_gets_descriptor_and_messages_have_path() {
    let folder = folder();
    let body = format!(
        "{VERSION}\nfor word; do case $word in --filename=*) file=${{word#*=}};; esac; done\necho \"$file\" >>given\nls -liL \"$file\" data/.iolab-scratch-* >>given\necho \"cannot read $file\" >&2\nexit 1"
    );
    let done = with_fio(folder.path(), &body, "iolab,fio").expect(1);
    let given = fs::read_to_string(folder.path().join("given")).unwrap();
    let mut lines = given.lines();
    let name = lines.next().unwrap();
    assert!(
        name.starts_with("/proc/") && name.contains("/fd/"),
        "{name}"
    );
    let inode = |line: &str| line.split_whitespace().next().map(str::to_owned);
    assert_eq!(inode(lines.next().unwrap()), inode(lines.next().unwrap()));
    let place = folder.path().canonicalize().unwrap();
    let path = format!("{}/data/.iolab-scratch-", place.display());
    for part in ["--filename=", "cannot read "] {
        let shown = format!("{part}{path}");
        assert!(done.stderr.contains(&shown), "{shown}: {}", done.stderr);
    }
    assert!(!done.stderr.contains("/fd/"), "{}", done.stderr);
    for row in exported(folder.path(), "r.iolab") {
        assert!(!row.to_string().contains("/fd/"), "{row}");
    }
}

#[test]
fn moved_target_of_a_peer_ends_the_run() {
    let folder = folder();
    fs::write(folder.path().join("mine"), "data").unwrap();
    let body = format!(
        "{VERSION}\ncd data\nfor file in .iolab-scratch-*; do mv $file moved; ln -s ../mine $file; done"
    );
    let done = with_fio(folder.path(), &body, "iolab,fio").expect(3);
    let told = error_of(&done, folder.path());
    insta::assert_snapshot!(told, @r"
    data/.iolab-scratch-NAME is no longer what iolab has opened: it or a directory above it was renamed, replaced, removed or mounted over
      iolab has used the opened file only; no other process, and no program that is timed, may rename or replace the target or its directory during a run
      data/.iolab-scratch-NAME is no longer iolab's scratch file and was left alone
    ");
    assert_eq!(fs::read(folder.path().join("mine")).unwrap(), b"data");
}

#[test]
fn hanging_peer_is_awaited_once_within_its_share() {
    let folder = folder();
    // This fio ignores the signals that ask a program to end.
    let body = format!("{VERSION}\ntrap '' TERM INT HUP\nwhile :; do sleep 100; done");
    // The run has a budget of 1 s. A peer has more time to start, and is then killed.
    with_fio(folder.path(), &body, "iolab,fio").expect(1);
    let rows = exported(folder.path(), "r.iolab");
    let hung = rows.iter().filter(|row| row["ok"] == false).count();
    assert_eq!(hung, 1);
}

#[test]
fn silent_peer_fails_the_run_before_it_begins() {
    let folder = folder();
    let done = with_fio(folder.path(), "exec sleep 100", "iolab,fio").expect(1);
    let (_, told) = done.stderr.split_once("error: ").expect("an error");
    insta::assert_snapshot!(told.replace(&folder.path().display().to_string(), "DIR"));
    assert_eq!(entries(&folder.path().join("data")), [""; 0]);
}

#[test]
fn export_has_one_fio_plot_file_per_cell() {
    let folder = folder();
    let mut run = vec!["run", "read-size", ".", "-o", "r.iolab"];
    run.extend(TINY);
    run.extend(["--set", "threads=1,2"]);
    Done::from(iolab(folder.path(), &run).output().unwrap()).expect(0);
    let export = ["export", "r.iolab", "--format", "fio", "-o", "plots"];
    Done::from(iolab(folder.path(), &export).output().unwrap()).expect(0);
    let target = folder
        .path()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let target: String = target
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "=.-_".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    for (bs, threads) in [("4k", "1"), ("4k", "2"), ("64k", "1"), ("64k", "2")] {
        let path = format!("plots/{target}/{bs}/read-1-{threads}.json");
        let report = fs::read_to_string(folder.path().join(&path)).expect(&path);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["jobs"].as_array().unwrap().len(), 1);
        assert_eq!(report["jobs"][0]["job options"]["numjobs"], threads);
    }
    let again = iolab(folder.path(), &export).output().unwrap();
    Done::from(again).expect(3);
    // One report of all cells, and no folder of that name.
    let to_stdout = ["export", "r.iolab", "--format", "fio", "-o", "-"];
    let report = Done::from(iolab(folder.path(), &to_stdout).output().unwrap()).expect(0);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["jobs"].as_array().unwrap().len(), 4);
    assert!(!folder.path().join("-").exists());
}

#[test]
fn export_as_fio_report_imports_unchanged() {
    for (experiment, sets, count) in [
        ("write-random", "bs=64k trim_percent=50 sync=none", 1),
        ("read-random", "bs=4k rate=500,2000 threads=3", 2),
        ("interference", "writer.rate=none reader.bs=16k", 2),
    ] {
        let folder = folder();
        let mut run = vec!["run", experiment, ".", "-o", "r.iolab"];
        run.extend(["--budget", "1s", "--time", "20ms", "--size", "8M"]);
        for set in sets.split_whitespace() {
            run.extend(["--set", set]);
        }
        let done =
            |words: &[&str]| Done::from(iolab(folder.path(), words).output().unwrap()).expect(0);
        done(&run);
        let jobs = |file: &str| -> Vec<serde_json::Value> {
            let report = done(&["export", file, "--format", "fio"]).stdout;
            let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
            report["jobs"].as_array().expect("jobs").clone()
        };
        done(&["export", "r.iolab", "--format", "fio", "-o", "r.json"]);
        let imported = done(&["import", "r.json", "-o", "again.iolab"]);
        assert!(!imported.stdout.contains("fio"), "{}", imported.stdout);
        let (own, again) = (jobs("r.iolab"), jobs("again.iolab"));
        assert_eq!((own.len(), again.len()), (count, count), "{sets}");
        for job in own {
            let is_same = |other: &&serde_json::Value| {
                let alike = |key: &str| job[key] == other[key];
                ["job options", "sync"].into_iter().all(alike)
                    && ["read", "write", "trim"].into_iter().all(|direction| {
                        job[direction]["total_ios"] == other[direction]["total_ios"]
                    })
            };
            assert!(again.iter().any(|other| is_same(&other)), "{sets}: {job:#}");
        }
    }
}
