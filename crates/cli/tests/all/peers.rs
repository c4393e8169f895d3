//! Other tools: those that work measure the same; of those that do not, what is measured without them is kept, and the run
//! does not wait for them for long.
#![allow(clippy::print_stderr)] // a test that skips says so

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use std::process::Command;

use crate::support::{Done, TINY, entries, exported, folder, iolab};

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
        let body = format!("{VERSION}\necho 'no such engine' >&2\nexit 1");
        let done = with_fio(folder.path(), &body, tools).expect(1);
        assert!(done.stderr.contains("fio never worked"), "{}", done.stderr);
        assert!(done.stderr.contains("no such engine"), "{}", done.stderr);
        let rows = exported(folder.path(), "r.iolab");
        assert!(rows.len() >= trials, "{tools}: {}", rows.len());
        let failed = rows.iter().filter(|row| row["ok"] == false).count();
        assert_eq!(failed, 2, "one for each size");
        assert_eq!(entries(&folder.path().join("data")), [""; 0]);
    }
}

#[test]
fn a_peer_that_hangs_is_waited_for_once_and_not_beyond_its_share() {
    let folder = folder();
    // Whatever asks it to end asks without effect.
    let body = format!("{VERSION}\ntrap '' TERM INT HUP\nwhile :; do sleep 100; done");
    let done = with_fio(folder.path(), &body, "iolab,fio").expect(1);
    // The budget of the run is one second; starting alone is granted more.
    assert!(
        done.stderr.contains("had not ended after 2.02s"),
        "{}",
        done.stderr
    );
    let rows = exported(folder.path(), "r.iolab");
    let hung = rows.iter().filter(|row| row["ok"] == false).count();
    assert_eq!(hung, 1);
}

#[test]
fn a_peer_that_does_not_answer_fails_the_run_before_it_begins() {
    let folder = folder();
    let done = with_fio(folder.path(), "exec sleep 100", "iolab,fio").expect(1);
    assert!(
        done.stderr.contains("does not report its version"),
        "{}",
        done.stderr
    );
    assert_eq!(entries(&folder.path().join("data")), [""; 0]);
}

#[test]
fn peers_that_are_installed_carry_the_same_cell_out() {
    let there = |tool: &&str| Command::new(tool).arg("-v").output().is_ok();
    let tools: Vec<&str> = ["fio", "iozone"].into_iter().filter(there).collect();
    if tools.is_empty() {
        return eprintln!("skipped: neither fio nor iozone is installed");
    }
    let folder = folder();
    let mut arguments = vec!["run", "read-random", ".", "-o", "r.iolab"];
    arguments.extend(["--set", "bs=1M", "--set", "trials_min=1", "--budget", "1s"]);
    arguments.extend(["--size", "8MiB"]);
    for tool in &tools {
        arguments.extend(["--peer", tool]);
    }
    let done = Done::from(iolab(folder.path(), &arguments).output().unwrap()).expect(0);
    let rows = exported(folder.path(), "r.iolab");
    for tool in ["iolab"].iter().chain(&tools) {
        let of_tool = |row: &&serde_json::Value| row["tool"] == *tool && row["warmup"] == false;
        let measured: Vec<_> = rows.iter().filter(of_tool).collect();
        assert!(!measured.is_empty(), "{tool}: {}", done.stderr);
        assert!(measured.iter().all(|row| row["ok"] == true), "{tool}");
    }
    let changed = "changed so that iolab and";
    assert_eq!(done.stderr.contains(changed), tools.contains(&"iozone"));
}

#[test]
fn options_of_other_tools_are_answered() {
    let folder = folder();
    for (arguments, way) in [
        (&["--cpus_allowed=0-3"][..], "--set cpus="),
        (&["--iodepth", "8"], "--set depth="),
        (&["--set", "bssplit=4k/50:8k/50"], "--set bs_mix="),
        (&["--set", "slo=5ms"], "iolab run load-latency"),
    ] {
        let arguments = [&["run", "read-size"][..], arguments].concat();
        let done = Done::from(iolab(folder.path(), &arguments).output().unwrap()).expect(2);
        assert!(done.stderr.contains(way), "{}", done.stderr);
    }
    assert_eq!(entries(folder.path()), [""; 0]);
}

/// Runs the installed fio in a folder; `None` where there is none.
fn real_fio(folder: &Path, arguments: &[&str]) -> Option<std::process::Output> {
    let ran = Command::new("fio")
        .args(arguments)
        .current_dir(folder)
        .output();
    if ran.is_err() {
        eprintln!("skipped: fio is not installed");
    }
    ran.ok()
}

#[test]
fn syncs_that_fio_has_timed_are_imported() {
    let folder = folder();
    let job = [
        "--name=log",
        "--rw=write",
        "--ioengine=sync",
        "--fdatasync=1",
        "--size=230000",
        "--bs=2300",
        "--directory=.",
        "--output-format=json+",
        "--output=log.json",
    ];
    let Some(ran) = real_fio(folder.path(), &job) else {
        return;
    };
    assert!(ran.status.success(), "{ran:?}");
    let done = iolab(folder.path(), &["import", "log.json", "-o", "r.iolab"]).output();
    Done::from(done.unwrap()).expect(0);
    let rows = exported(folder.path(), "r.iolab");
    assert_eq!((rows.len(), &rows[0]["sync"]), (1, &"fdatasync".into()));
    let report = fs::read_to_string(folder.path().join("log.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let told = &report["jobs"][0]["sync"]["lat_ns"];
    assert_eq!(
        rows[0]["sync_latency_p99_ns"],
        told["percentile"]["99.000000"]
    );
    assert!(rows[0]["syncs"].as_u64() >= told["N"].as_u64(), "{told}");
}

#[test]
fn an_experiment_is_a_job_file_that_fio_runs_and_iolab_reads() {
    let folder = folder();
    let sets = "name = 'two'\nquestion = 'q'\nresponse = 'throughput'\n[factors]\nbs = ['4k', '64k']\n[settings]\nregion = '1MiB'\ncache = 'cold'\nthreads = 2\n";
    fs::write(folder.path().join("two.toml"), sets).unwrap();
    let shown = iolab(folder.path(), &["show", "two.toml", "--format", "fio"]).output();
    let shown = Done::from(shown.unwrap()).expect(0);
    fs::write(folder.path().join("two.fio"), &shown.stdout).unwrap();
    let again = iolab(folder.path(), &["show", "two.fio"]).output().unwrap();
    let again = Done::from(again).expect(0).stdout;
    for line in [
        "bs=4096: bs=4KiB",
        "bs = [\"4KiB\", \"64KiB\"]",
        "numjobs=2: threads=2, layout=shared",
    ] {
        assert!(again.contains(line), "{line} in {again}");
    }
    let dry = iolab(folder.path(), &["run", "two.fio", "--dry-run"]).output();
    let dry = Done::from(dry.unwrap()).expect(0).stdout;
    assert!(
        dry.contains(": numjobs=2: threads=2, layout=shared"),
        "{dry}"
    );
    assert!(dry.contains("nothing is touched"), "{dry}");
    let Some(ran) = real_fio(folder.path(), &["--output-format=json", "two.fio"]) else {
        return;
    };
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let jobs = report["jobs"].as_array().unwrap();
    let moved: Vec<u64> = jobs
        .iter()
        .filter_map(|job| job["read"]["io_bytes"].as_u64())
        .collect();
    assert_eq!(moved, [1 << 20, 1 << 20]);
}

#[test]
fn each_cell_has_a_file_of_its_own_where_fio_plot_looks_for_it() {
    let folder = folder();
    let mut run = vec!["run", "read-size", ".", "-o", "r.iolab"];
    run.extend(TINY);
    run.extend(["--set", "bs=4k,64k", "--set", "threads=1,2"]);
    Done::from(iolab(folder.path(), &run).output().unwrap()).expect(0);
    let export = ["export", "r.iolab", "--format", "fio", "-o", "plots"];
    let done = iolab(folder.path(), &export).output().unwrap();
    let done = Done::from(done).expect(0);
    assert!(done.stderr.contains("4 files in plots"), "{}", done.stderr);
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
}
