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

#[test]
fn a_table_goes_to_a_file_in_the_format_of_its_name() {
    let folder = folder();
    let folder = folder.path();
    run(
        folder,
        &words!("run read-size model:sata-ssd --bs 4k,64k --seed 1 -o r.iolab"),
    )
    .expect(0);
    for (name, begin) in [
        ("t.csv", "run,"),
        ("t.json", "{"),
        ("t.md", ""),
        ("t.tex", ""),
    ] {
        run(folder, &["table", "r.iolab", "-o", name]).expect(0);
        let text = std::fs::read_to_string(folder.join(name)).expect("a file");
        assert!(
            !text.is_empty() && text.starts_with(begin),
            "{name}: {text}"
        );
    }
    run(folder, &["table", "r.iolab", "-o", "t.svg"]).expect(2);
    run(
        folder,
        &["table", "r.iolab", "-o", "new.json", "--format", "csv"],
    )
    .expect(2);
    run(folder, &["table", "r.iolab", "-o", "t.csv"]).expect(3);
    run(folder, &["compare", "r.iolab", "r.iolab", "-o", "c.pdf"]).expect(2);
    assert!(!folder.join("new.json").exists());
}

#[test]
fn targets_of_a_report_are_called_by_the_names_that_it_is_given() {
    let folder = folder();
    let folder = folder.path();
    run(
        folder,
        &words!("run read-size model:sata-ssd model:qlc-slc-cached --bs 4k,64k --seed 1 -o out/"),
    )
    .expect(0);
    let files = ["out/read-size.iolab", "out/read-size-2.iolab"];
    let arguments = words!("-o r.md --name sata-ssd=Old --name qlc-slc-cached=New");
    run(folder, &[&["report"], &files[..], &arguments[..]].concat()).expect(0);
    let text = std::fs::read_to_string(folder.join("r.md")).expect("a report");
    let named: Vec<&str> = text.lines().filter(|line| line.contains("New")).collect();
    insta::assert_snapshot!(named.join("\n"), @r"
    # 1 experiment, 2 runs on Old (model:sata-ssd) and New (model:qlc-slc-cached)
    Target: Old (model:sata-ssd), New (model:qlc-slc-cached) (model).
    - read-size on New: How does the throughput of sequential reads depend on the I/O size?
    - Sequential reads of New have 2.56 times (2.56 to 2.57) the throughput of those of Old at bs=64KiB (1186 MB/s against 463 MB/s). Of 2 comparisons: 2 higher. Based on: ratios within the blocks that both cells share (of medians where they share none), with intervals that hold for all comparisons of this kind in the run together in 95 %.
    ### read-size on New
    From 18 trials in 2 cells, all computed by New.
    ### read-size on New
    From 18 trials in 2 cells, all computed by New.
    - All numbers come from New (A QLC drive of 1 TB with an SLC cache), computed in virtual time. No device was measured. Based on: the target of the run.
    ![Ratio of New over Old. Old is computed; New is computed.](r-e1-read-size.svg)
    ## read-size on New
    read-size on New: throughput 242 MB/s (bs=4KiB) to 1186 MB/s (bs=64KiB), computed by a model
    ![read-size: throughput against I/O size. From 242 MB/s (4KiB) to 1186 MB/s (64KiB). Computed by New.](r-e2-read-size.svg)
    read-size: throughput, median of n trials; all served by: model; computed by New in virtual time; 95 % interval: for a repeat at once; p50, p99: one request at a time; settings: sequential reads, backend=psync, region=1GiB, threads=1, depth=1, cache=direct
    - Highest throughput of reads (cache=direct) on New: sequential reads, bs=64KiB, 1186 MB/s. No simpler setting is shown to be within 5 % of it. Based on: ratios within the blocks that both cells share (of medians across runs), with intervals that hold for all cells of the access together in 95 %.
    | model title | read-size on Old: A SATA solid-state drive of 1 TB, TLC; read-size on New: A QLC drive of 1 TB with an SLC cache |
    | model digest | read-size on Old: 5892d701b007a42f; read-size on New: 5c60224a486225f6 |
    | target name | read-size on Old: Old; read-size on New: New |
    ");
}
