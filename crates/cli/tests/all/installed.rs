//! fio and IOzone where they are installed: they measure the same, and each reads what the other writes.
use std::fs;
use std::path::Path;
use std::process::Command;

use needs::Need;

use crate::support::words::words;
use crate::support::{exported, folder, run};

#[test]
fn installed_peers_carry_out_the_same_cell() {
    let tools = [Need::Fio, Need::Iozone].into_iter();
    let tools: Vec<&str> = tools.filter_map(needs::tool).collect();
    if tools.is_empty() {
        return;
    }
    let folder = folder();
    let one = words!(
        "run read-random . -o r.iolab --bs 1M --set trials_min=1 --set trials_max=1 --budget 30s --size 8MiB"
    );
    let peers = tools.iter().flat_map(|tool| ["--peer", tool]);
    let arguments: Vec<&str> = one.into_iter().chain(peers).collect();
    let done = run(folder.path(), &arguments).expect(0);
    let rows = exported(folder.path(), "r.iolab");
    for tool in ["iolab"].iter().chain(&tools) {
        let of_tool = |row: &&serde_json::Value| row["tool"] == *tool && row["warmup"] == false;
        let measured: Vec<_> = rows.iter().filter(of_tool).collect();
        assert!(!measured.is_empty(), "{tool}: {}", done.stderr);
        assert!(measured.iter().all(|row| row["ok"] == true), "{tool}");
    }
    let changed = "changed so that iolab";
    assert_eq!(done.stderr.contains(changed), tools.contains(&"iozone"));
}

/// Runs the installed fio in a folder; a skip where there is none.
#[track_caller]
fn real_fio(folder: &Path, arguments: &[&str]) -> Option<std::process::Output> {
    let mut fio = Command::new(needs::tool(Need::Fio)?);
    let ran = fio.args(arguments).current_dir(folder).output();
    Some(ran.expect("fio starts"))
}

#[test]
fn syncs_that_fio_has_timed_are_imported() {
    let folder = folder();
    let job = words!(
        "--name=log --rw=write --ioengine=sync --fdatasync=1 --size=230000 --bs=2300 \
         --directory=. --output-format=json+ --output=log.json"
    );
    let Some(ran) = real_fio(folder.path(), &job) else {
        return;
    };
    assert!(ran.status.success(), "{ran:?}");
    run(folder.path(), &["import", "log.json", "-o", "r.iolab"]).expect(0);
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
fn exported_job_file_runs_in_fio_and_iolab() {
    let folder = folder();
    let sets = "name = 'two'\nquestion = 'q'\nresponse = 'throughput'\n[factors]\nbs = ['4k', '64k']\ntool = ['iolab', 'fio']\n[settings]\nregion = '1MiB'\ncache = 'cold'\nthreads = 2\n";
    fs::write(folder.path().join("two.toml"), sets).unwrap();
    let shown = run(folder.path(), &["show", "two.toml", "--format", "fio"]).expect(0);
    fs::write(folder.path().join("two.fio"), &shown.stdout).unwrap();
    insta::assert_snapshot!(run(folder.path(), &["show", "two.fio"]).expect(0).stdout);
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
