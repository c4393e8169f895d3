//! Several targets in one run: levels of a factor, visited in the same blocks.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::words::words;
use crate::support::{entries, exported, folder, iolab, run, run_tiny, wait_for_samples};

fn two_folders(folder: &Path) {
    for name in ["a", "b"] {
        std::fs::create_dir(folder.join(name)).expect("a new folder");
    }
}

#[test]
fn two_targets_share_blocks_and_are_compared() {
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
fn one_unwritable_target_refuses_the_whole_run() {
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
fn run_on_two_targets_resumes_on_both() {
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
    // The run may have ended before the signal.
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

const SUITE: &str = r#"
name = "tiny"
about = "two questions"
budget = "3s"

[settings]
region = "1MiB"
bytes = "1MiB"
time = "5ms"

[[experiments]]
use = "read-size"
factors.bs = ["4KiB", "64KiB"]
design.trials_max = 7

[[experiments]]
use = "write-random"
factors.bs = ["4KiB", "64KiB"]
design.trials_max = 7
"#;

#[test]
fn study_of_three_targets_has_one_page() {
    let folder = folder();
    let folder = folder.path();
    two_folders(folder);
    std::fs::write(folder.join("tiny.toml"), SUITE).expect("a suite");
    let arguments =
        words!("study a/ ./b model:sata-ssd --suite tiny.toml -o out --name b=second --seed 7");
    let done = run(folder, &arguments).expect(0);
    let of_budget = done.stderr.lines().find(|line| line.contains("budget"));
    insta::assert_snapshot!(of_budget.expect("a note"), @"note: the budget of 3 s holds for each of 2 targets: 6 s in all (--budget sets the time for all of them)");
    let is_file_of = |name: &str| name.ends_with(".iolab");
    let files = entries(&folder.join("out"));
    let files: Vec<&String> = files.iter().filter(|name| is_file_of(name)).collect();
    assert_eq!(
        files.len(),
        4,
        "two of both folders, two of the model: {files:?}"
    );
    let rows = exported(folder, "out/read-size.iolab");
    let mut blocks: Vec<(String, String)> = rows
        .iter()
        .map(|row| (row["block"].to_string(), row["target"].to_string()))
        .collect();
    blocks.sort();
    blocks.dedup();
    assert_eq!(blocks.len() % 2, 0, "each block visits both: {blocks:?}");
    let first = folder.join("a").display().to_string();
    let rows = done.stdout.lines().take_while(|line| !line.is_empty());
    let names = [first.as_str(), "second", "model:sata-ssd"];
    assert!(
        rows.zip(names)
            .filter(|(row, name)| row.starts_with(name))
            .count()
            == names.len(),
        "{}",
        done.stdout
    );
    let page = std::fs::read_to_string(folder.join("out/report.html")).expect("a page");
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    let glance = page.split("id=\"glance\"").nth(1).expect("a glance");
    let glance = glance.split("</table>").next().expect("its table");
    // A row has several numbers, so that one bar would be ambiguous.
    assert!(!glance.contains("class=\"bars\""), "{glance}");
    for name in ["a", "b"] {
        assert!(entries(&folder.join(name)).is_empty());
    }
}
