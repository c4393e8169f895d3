//! What people type, coming from other tools or in a hurry: it does what they mean, or names what does.

use rusqlite::Connection;

use crate::support::words::words;
use crate::support::{dry_run, entries, exported, folder, refusals, run, with_runs};

#[test]
fn a_name_of_another_tool_is_answered_with_the_one_here() {
    let folder = folder();
    let told = refusals(
        folder.path(),
        &[
            &["run", "randread"],
            &["run", "read-size", "--set", "sync=fdatasnc"],
            &["run", "read-size", "--set", "fdatasync=1"],
            &["run", "read-size", "--set", "backend=iouring"],
            &["run", "read-size", "--set", "zzzzzz=1"],
            &["plot", "r.iolab", "-o", "f.svg", "--kind", "heatmap"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn a_target_without_a_command_names_study() {
    let folder = folder();
    let told = refusals(
        folder.path(),
        &[
            &["/tmp"],
            &["run", "."],
            &["run", "model:sata-ssd"],
            &["/no/such/place"],
            &["job.fio"],
            &["mine.toml"],
        ],
    );
    insta::assert_snapshot!(told);
    // A folder may have the name of an experiment.
    std::fs::create_dir(folder.path().join("read-size")).unwrap();
    run(folder.path(), &["run", "read-size", "--dry-run"]).expect(0);
}

#[test]
fn what_is_given_twice_is_refused() {
    let folder = folder();
    let told = refusals(
        folder.path(),
        &[
            &["run", "read-size", "--set", "bs=4k", "--set", "bs=8k"],
            &["run", "read-size", "--threads", "4", "--set", "numjobs=2"],
            &["run", "read-size", "--size", "50%", "--set", "region=1M"],
            &["study", "--budget", "1s", "--set", "budget=2s"],
        ],
    );
    insta::assert_snapshot!(told);
    // Settings of two groups are two settings.
    let groups = words!("--set reader.bs=4k --set writer.bs=64k --dry-run");
    let arguments = [&["run", "interference", "model:sata-ssd"][..], &groups].concat();
    run(folder.path(), &arguments).expect(0);
}

#[test]
fn a_depth_takes_one_asynchronous_backend_for_all_levels() {
    let folder = folder();
    let fast = ["--size=4MiB", "--time=10ms", "--budget=1s"];
    let line = ["run", "read-random", "--bs=4k", "--depth=1,4", "-o=r.iolab"];
    let done = run(folder.path(), &[&line[..], &fast].concat()).expect(0);
    let backends = exported(folder.path(), "r.iolab").into_iter();
    let mut backends: Vec<String> = backends.map(|row| row["backend"].to_string()).collect();
    backends.sort();
    backends.dedup();
    let backend = backends[0].trim_matches('"').to_owned();
    assert_eq!(backends.len(), 1, "{backends:?}");
    assert!(["io_uring", "libaio"].contains(&&*backend), "{backend}");
    let mut told = done.stderr.lines().filter(|line| line.contains(&backend));
    let told = told.next().unwrap_or_default();
    insta::assert_snapshot!(told.replace(&backend, "BACKEND"), @"note: --depth 1,4 sets backend=BACKEND for all levels: the default backend has one request in flight (--set backend=... chooses another)");
    // One request in flight needs no other backend.
    let plain = ["run", "read-random", "--depth=1", "--dry-run"];
    let done = run(folder.path(), &plain).expect(0);
    assert_eq!(done.stderr, "");
}

#[test]
fn a_backend_that_the_user_chose_stays() {
    let folder = folder();
    let shown = run(folder.path(), &["show", "read-random"]).expect(0);
    std::fs::write(folder.path().join("mine.toml"), shown.stdout).unwrap();
    std::fs::write(
        folder.path().join("mine.fio"),
        "[one]\nrw=randread\nbs=4k\nsize=4m\nioengine=psync\n",
    )
    .unwrap();
    let told = refusals(
        folder.path(),
        &[
            &["run", "read-random", "--depth=8", "--set", "backend=psync"],
            &["run", "mine.toml", "--depth=8"],
            &["run", "mine.fio", ".", "--depth=8"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn a_size_may_be_a_share_of_a_file() {
    let folder = folder();
    std::fs::write(folder.path().join("mine"), vec![7u8; 4 << 20]).unwrap();
    for (share, bytes) in [("100%", 4 << 20), ("25%", 1 << 20)] {
        let line = ["run", "read-random", "mine", "--bs=4k", "--size", share];
        let rest = ["--time=10ms", "--budget=1s", "-o=r.iolab"];
        run(folder.path(), &[&line[..], &rest].concat()).expect(0);
        let rows = exported(folder.path(), "r.iolab");
        assert!(
            rows.iter().all(|row| row["region_bytes"] == bytes),
            "{share}"
        );
        std::fs::remove_file(folder.path().join("r.iolab")).unwrap();
    }
    let told = refusals(
        folder.path(),
        &[
            &["run", "read-random", ".", "--size", "100%"],
            &["run", "read-random", "mine", "--size", "101%"],
            &["run", "read-random", "none", "--size", "50%"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn bytes_that_end_trials_before_the_time_that_was_given_are_told_before_the_run() {
    let folder = folder();
    let told = |more: &[&str]| {
        let line = [&["run", "read-random", "--dry-run"][..], more].concat();
        run(folder.path(), &line).expect(0).stderr
    };
    insta::assert_snapshot!(told(&["--time", "300s"]), @"note: read-random: bytes=1GiB ends a trial before its time of 5 min on storage faster than 3.579 MB/s; --set bytes=none removes that bound");
    assert_eq!(told(&["--time", "300s", "--set", "bytes=none"]), "");
    assert_eq!(told(&[]), "");
    // Nothing is as fast as 1 GiB in 10 ms.
    assert_eq!(told(&["--time", "10ms"]), "");
}

#[test]
fn a_study_without_a_target_names_what_it_measures() {
    let folder = folder();
    let done = run(folder.path(), &["study", "--dry-run"]).expect(0);
    let here = folder.path().canonicalize().unwrap();
    // Where a disk is known, its name follows.
    let told = done.stderr.replace(&here.display().to_string(), "DIR");
    let told = told.split(" on ").next().unwrap_or_default();
    insta::assert_snapshot!(told, @"note: no TARGET given; measuring DIR");
    let named = run(folder.path(), &["study", ".", "--dry-run"]).expect(0);
    assert_eq!(named.stderr, "");
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn the_extension_of_an_output_is_its_format() {
    let folder = folder();
    let path = folder.path();
    with_runs(path, &["a.iolab"]);
    std::fs::create_dir(path.join("runs")).unwrap();
    with_runs(&path.join("runs"), &["a.iolab"]);
    for (line, begins) in [
        (&["report", "a.iolab", "-o", "t.md"][..], "# "),
        (&["report", "a.iolab", "-o", "t.tex"], "\\pdfminorversion"),
        (&["report", "a.iolab", "-o", "t.html"], "<!DOCTYPE html>"),
        (&["history", "runs", "-o", "h.html"], "<!DOCTYPE html>"),
        (&["history", "runs", "-o", "h.csv"], "run,file,"),
        (&["export", "a.iolab", "-o", "e.csv"], "run,"),
        (&["export", "a.iolab", "-o", "e.json"], "["),
        (&["export", "a.iolab", "-o", "e.prom"], "# HELP"),
    ] {
        run(path, line).expect(0);
        let text = std::fs::read_to_string(path.join(line[line.len() - 1])).unwrap();
        let start: String = text.chars().take(20).collect();
        assert!(text.starts_with(begins), "{line:?}: {start}");
    }
    // An existing folder, or a slash at the end.
    run(path, &["report", "a.iolab", "-o", "runs"]).expect(0);
    run(path, &["report", "a.iolab", "-o", "new/"]).expect(0);
    assert_eq!(entries(&path.join("new")), ["report.html"]);
    assert_eq!(entries(&path.join("runs")), ["a.iolab", "report.html"]);
    let told = refusals(
        path,
        &[
            &["report", "a.iolab", "-o", "u.pdf"],
            &["report", "a.iolab", "-o", "u.html", "--format", "latex"],
            &["history", "runs", "-o", "u.pdf"],
            &["export", "a.iolab", "-o", "u.json", "--format", "csv"],
            &["export", "a.iolab", "-o", "u.pdf"],
            &["export", "a.iolab"],
            &["run", "read-size", "-o", "u.csv"],
            &["study", "-o", "u.html"],
            &["fit", "etcd", "-o", "u.pdf"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn a_run_file_may_be_put_into_a_folder() {
    let folder = folder();
    let line = ["run", "read-random", "--bs=4k", "--size=4MiB"];
    let rest = ["--time=10ms", "--budget=1s", "-o", "runs/"];
    run(folder.path(), &[&line[..], &rest].concat()).expect(0);
    assert_eq!(entries(&folder.path().join("runs")), ["read-random.iolab"]);
}

#[test]
fn the_experiment_of_a_run_file_repeats_the_run() {
    let folder = folder();
    let path = folder.path();
    let model = [
        "model:sata-ssd", "--bs=4k,64k", "--size=4MiB", "--threads=1,2",
    ];
    let rest = ["--time=10ms", "--budget=1s", "--seed=11", "-o=a.iolab"];
    run(path, &[&["run", "read-random"][..], &model, &rest].concat()).expect(0);
    let shown = run(path, &["show", "a.iolab"]).expect(0).stdout;
    insta::assert_snapshot!(shown.lines().next().unwrap_or_default(), @"# The experiment of a.iolab; --seed 11 repeats its order, offsets and data.");
    std::fs::write(path.join("again.toml"), shown).unwrap();
    let again = words!("run again.toml model:sata-ssd --seed=11 -o=b.iolab");
    run(path, &again).expect(0);
    let trials = |file| {
        let rows = exported(path, file).into_iter();
        let trial = |row: serde_json::Value| {
            ["cell", "block", "position", "elapsed_ns", "seed"].map(|name| row[name].to_string())
        };
        rows.map(trial).collect::<Vec<_>>()
    };
    assert_eq!(trials("a.iolab"), trials("b.iolab"));
    let job = run(path, &["show", "a.iolab", "--format", "fio"]).expect(0);
    let begins = job
        .stdout
        .lines()
        .find(|line| !line.starts_with(';') && !line.is_empty());
    assert_eq!(begins, Some("[global]"), "{}", job.stdout);
    run(path, &["show", "none.iolab"]).expect(2);
}

#[test]
fn what_cannot_give_an_interval_in_its_budget_is_told_before_the_start() {
    let folder = folder();
    let line = ["run", "disk-grid", "--budget", "2min", "--size", "64MiB"];
    insta::assert_snapshot!(dry_run(folder.path(), &line));
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn what_a_left_out_experiment_leaves_goes_to_the_others() {
    let folder = folder();
    let shown = ["", "[[experiments]]\nuse = \"buffer-memory\"\n"].map(|skipped| {
        let suite = format!(
            "name = \"own\"\nabout = \"?\"\nbudget = \"2min\"\n\
            [[experiments]]\nuse = \"read-size\"\n{skipped}"
        );
        std::fs::write(folder.path().join("own.toml"), suite).unwrap();
        let study = words!("study model:sata-ssd --suite own.toml --size 4M --time 1s --dry-run");
        // The budget of a suite of the user holds on a model too.
        run(folder.path(), &study).expect(0)
    });
    let told = shown[1].stderr.lines().last().unwrap_or_default();
    insta::assert_snapshot!(told, @"note: skipped, because a model has no host: buffer-memory");
    assert_eq!(shown[0].stdout, shown[1].stdout);
    insta::assert_snapshot!(shown[0].stdout, @r"
    Dry run: nothing is touched.

    experiment  cells      trials   virtual time
    read-size      11  110 to 341  40 s to 2 min

    Target: model:sata-ssd
    A model reads and writes no storage.
    ");
}

/// Each run file keeps the warning of its own run.
#[test]
fn experiments_of_a_study_with_too_little_budget_are_named_in_one_warning() {
    let folder = folder();
    let suite = "name = \"two\"\nabout = \"?\"\nbudget = \"10min\"\n\
        [[experiments]]\nuse = \"read-size\"\n[[experiments]]\nuse = \"read-stride\"\n";
    std::fs::write(folder.path().join("two.toml"), suite).unwrap();
    let study = words!("study model:sata-ssd --suite two.toml --size 4M --time 5ms --budget 100ms");
    let planned = run(folder.path(), &[&study[..], &["--dry-run"]].concat()).expect(0);
    insta::assert_snapshot!(planned.stdout, @r"
    Dry run: nothing is touched.

    experiment   cells        trials  virtual time
    read-size       11    110 to 341     about 1 s
    read-stride     80  1040 to 2480     about 1 s
    total           91  1150 to 2821     about 1 s
    Both experiments on model:sata-ssd get too little of the budget of 100 ms: their cells may get fewer
    than the 6 trials that an interval needs, or the study takes longer; --budget 1min is enough for all

    Target: model:sata-ssd
    A model reads and writes no storage.
    ");
    let done = run(folder.path(), &[&study[..], &["-o", "out"]].concat()).expect(0);
    let told = done.stderr.lines().filter(|line| line.contains("budget"));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"note: Both experiments on model:sata-ssd get too little of the budget of 100 ms: their cells may get fewer than the 6 trials that an interval needs, or the study takes longer; --budget 1min is enough for all");
    for name in ["read-size", "read-stride"] {
        let file = Connection::open(folder.path().join(format!("out/{name}.iolab"))).unwrap();
        let kept: i64 = file
            .query_row(
                "SELECT count(*) FROM event WHERE message LIKE ?1",
                [format!("{name}: %budget%")],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(kept, 1, "{name}");
    }
}

#[test]
fn what_is_written_beside_the_trials_and_at_most_is_told_before_the_start() {
    let folder = folder();
    let plan = words!("run write-size --bs=4k --size=4MiB --precondition seq:1+rand:2");
    insta::assert_snapshot!(dry_run(folder.path(), &plan));
    insta::assert_snapshot!(dry_run(folder.path(), &["fit", "etcd"]));
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn gauges_are_replaced_at_once_and_nothing_else_is() {
    let folder = folder();
    let path = folder.path();
    with_runs(path, &["a.iolab", "b.iolab"]);
    let export = ["export", "a.iolab", "b.iolab", "-o"];
    run(path, &[&export[..], &["io.prom"]].concat()).expect(0);
    let text = std::fs::read_to_string(path.join("io.prom")).unwrap();
    let mut series: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    let count = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), count, "no series is there twice");
    let taken = run(path, &[&export[..], &["io.prom"]].concat()).expect(3);
    insta::assert_snapshot!(taken.stderr, @r"
    error: io.prom exists already
      replace it with --force, or choose another name with -o
    ");
    std::fs::write(path.join("io.prom"), "# HELP iolab_trials old\n").unwrap();
    run(path, &[&export[..], &["io.prom", "--force"]].concat()).expect(0);
    assert_eq!(std::fs::read_to_string(path.join("io.prom")).unwrap(), text);
    std::fs::write(path.join("mine.prom"), "mine 1\n").unwrap();
    let told = refusals(
        path,
        &[
            &["export", "a.iolab", "-o", "mine.prom", "--force"],
            &["export", "a.iolab", "-o", "x.csv", "--force"],
            &["export", "a.iolab", "--format", "prometheus", "--force"],
        ],
    );
    insta::assert_snapshot!(told);
    assert_eq!(
        entries(path),
        ["a.iolab", "b.iolab", "io.prom", "mine.prom"]
    );
}

#[test]
fn answers_are_gauges() {
    let folder = folder();
    let path = folder.path();
    let line = words!("run read-random model:sata-ssd --bs=4k --rate=100");
    let asked = ["--slo", "p99<100ms", "--budget=20s", "-o=a.iolab"];
    run(path, &[&line[..], &asked].concat()).expect(0);
    let gauges = words!("export a.iolab --format prometheus --timestamps");
    let text = run(path, &gauges).expect(0).stdout;
    let answers: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("iolab_answer{"))
        .collect();
    assert_eq!(answers.len(), 3, "{text}");
    let yes = answers.iter().find(|line| line.contains("answer=\"yes\""));
    let yes = yes.expect("an answer");
    assert!(yes.contains("question=\"p99<100ms\""), "{yes}");
    let values: Vec<&str> = yes.rsplit_once("} ").unwrap().1.split(' ').collect();
    assert!(
        matches!(values[..], ["1", stamp] if stamp.len() == 13),
        "{yes}"
    );
    // Too few earlier runs: the gate cannot tell.
    std::fs::create_dir(path.join("runs")).unwrap();
    let gate = words!("gate --history runs a.iolab --format prometheus");
    let told = run(path, &gate).expect(5).stdout;
    let conclusions: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split_once("conclusion=").map(|(_, rest)| rest))
        .collect();
    assert_eq!(
        conclusions,
        ["\"settled\"} 0", "\"slower\"} 0", "\"cannot tell\"} 1"]
    );
}

#[test]
fn what_is_wrong_with_the_command_line_is_an_object_where_objects_are_asked_for() {
    let folder = folder();
    for (arguments, unknown) in [
        (
            &["run", "read-size", "--log", "json", "--bsx", "4k"][..],
            "'--bsx'",
        ),
        (&["study", "--log=json", "--nope"], "'--nope'"),
    ] {
        let refused = run(folder.path(), arguments).expect(2);
        let event: serde_json::Value = serde_json::from_str(&refused.stderr).expect("one object");
        assert_eq!(event["event"], "error");
        let text = event["text"].as_str().unwrap_or_default();
        assert!(text.contains(unknown), "{text}");
    }
}

#[test]
fn only_what_all_changes_give_has_to_be_a_plan() {
    let folder = folder();
    // With the skips of the definition so many sizes would be more than 10,000 cells.
    let many: Vec<String> = (1..=1000)
        .map(|blocks| format!("{}k", 4 * blocks))
        .collect();
    let many = many.join(",");
    let arguments = [
        "run", "read-stride", "--bs", &many, "--set", "skip=4k", "--dry-run",
    ];
    run(folder.path(), &arguments).expect(0);
}
