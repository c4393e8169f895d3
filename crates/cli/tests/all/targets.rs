//! Several targets in one run: levels of a factor, visited in the same blocks.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::words::words;
use crate::support::{entries, exported, folder, iolab, refusals, run, run_tiny, wait_for_samples};

fn two_folders(folder: &Path) {
    for name in ["a", "b"] {
        std::fs::create_dir(folder.join(name)).expect("a new folder");
    }
}

#[test]
fn two_targets_are_measured_in_the_same_blocks_and_compared() {
    let folder = folder();
    let folder = folder.path();
    two_folders(folder);
    run_tiny(folder, "read-random", &["a", "b", "-o", "r.iolab"]).expect(0);
    let rows = exported(folder, "r.iolab");
    let path = |name: &str| folder.join(name).display().to_string();
    for name in ["a", "b"] {
        let own = rows.iter().filter(|row| row["target"] == path(name));
        let own: Vec<_> = own.collect();
        assert_eq!(own.len() * 2, rows.len(), "{name}");
        assert!(own.iter().all(|row| row["level_target"] == path(name)));
        assert!(own.iter().all(|row| row["target_kind"] == "scratch"));
        assert!(
            entries(&folder.join(name)).is_empty(),
            "{name} is left as it was"
        );
    }
    let compared = run(folder, &["compare", "r.iolab", "--by", "target"]);
    assert!(
        matches!(compared.code, Some(0 | 4 | 5)),
        "{}",
        compared.stderr
    );
}

#[test]
fn a_target_that_must_not_be_written_refuses_the_whole_run() {
    let folder = folder();
    let folder = folder.path();
    two_folders(folder);
    std::fs::write(folder.join("precious"), vec![7; 8 << 20]).expect("a file");
    run_tiny(folder, "write-size", &["a", "precious", "-o", "r.iolab"]).expect(3);
    assert!(entries(&folder.join("a")).is_empty());
    assert!(!folder.join("r.iolab").exists());
    let kept = std::fs::read(folder.join("precious")).expect("still there");
    assert!(kept.iter().all(|byte| *byte == 7));
}

#[test]
fn what_cannot_be_a_level_is_refused_before_anything_is_made() {
    let folder = folder();
    let folder = folder.path();
    two_folders(folder);
    let told = refusals(
        folder,
        &[
            &["run", "read-size", "a", "a"],
            &["run", "read-size", "a", "model:sata-ssd"],
        ],
    );
    insta::assert_snapshot!(told);
    let plan = run(folder, &["run", "read-size", "a", "b", "--dry-run"]).expect(0);
    assert_eq!(
        plan.stdout.matches("Target: ").count(),
        2,
        "{}",
        plan.stdout
    );
    assert_eq!(entries(folder), ["a", "b"]);
}

#[test]
fn programs_read_files_on_several_targets() {
    let folder = folder();
    let folder = folder.path();
    two_folders(folder);
    let arguments = [
        "command=cat {file}",
        "region=1k",
        "trials_min=2",
        "trials_max=2",
    ];
    let sets = arguments.iter().flat_map(|set| ["--set", set]);
    let arguments: Vec<&str> = ["run", "linkage", "a", "b", "-o", "r.iolab"]
        .into_iter()
        .chain(sets)
        .collect();
    run(folder, &arguments).expect(0);
    let rows = exported(folder, "r.iolab");
    assert_eq!(rows.len(), 6, "a warm-up and two trials of two cells");
    for name in ["a", "b"] {
        assert!(entries(&folder.join(name)).is_empty());
    }
}

#[test]
fn a_run_on_two_targets_is_resumed_on_both() {
    let folder = folder();
    let folder = folder.path();
    two_folders(folder);
    let arguments = words!(
        "run read-size a b -o r.iolab --set bs=4k,64k --size 4MiB --time 20ms --precision 0.1% \
         --budget 10min --set trials_max=7"
    );
    let mut running = iolab(folder, &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    wait_for_samples(&folder.join("r.iolab"), 6);
    // It may have come to its end before the signal.
    let _ = kill_process(Pid::from_child(&running), Signal::INT);
    let code = running.wait().expect("it ends").code();
    assert!(matches!(code, Some(0 | 130)), "{code:?}");
    run(folder, &["resume", "r.iolab"]).expect(0);
    let rows = exported(folder, "r.iolab");
    for name in ["a", "b"] {
        let path = folder.join(name).display().to_string();
        let own = rows.iter().filter(|row| row["target"] == path);
        assert_eq!(
            own.count(),
            2 * 8,
            "a warm-up and seven trials of two cells"
        );
        assert!(entries(&folder.join(name)).is_empty());
    }
}
