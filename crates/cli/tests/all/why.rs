//! Causes of what a run shows, by intervention, on modelled disks.

use crate::support::words::words;
use crate::support::{dry_run, entries, folder, run};

/// Random reads of a hard disk against sequential ones.
fn measured(folder: &std::path::Path) {
    let sets = words!(
        "run read-size model:sata-7200 --set pattern=seq,rand --bs 64k --seed 3 -o run.iolab --quiet"
    );
    run(folder, &sets).expect(0);
}

#[test]
fn a_cause_is_told_in_ten_lines() {
    let folder = folder();
    measured(folder.path());
    let told = run(
        folder.path(),
        &words!("why run.iolab --seed 5 -o why.iolab --quiet"),
    );
    let text = told.expect(0).stdout;
    assert!(
        text.lines().filter(|line| !line.is_empty()).count() <= 10,
        "{text}"
    );
    insta::assert_snapshot!(text, @r"
    why on model:sata-7200: cause: read-ahead of sequential reads; contributes: the size of the
      region; few requests in flight

    Reproduced: throughput at pattern=rand is 1/17.0 of that at pattern=seq; here 1/17.2 (1/17.6 to
      1/16.8) in 30 blocks.
    Cause: read-ahead of sequential reads: with sequential reads in reverse order the difference is
      reversed (1.50 times).
    Contributes: the size of the region (reach of caches and mapping tables, length of random seeks):
      without the other suspects it makes 42 % (40 to 44 %) of the difference.
    Contributes: few requests in flight, which the storage could overlap or sort: 36 % (35 to 37 %) of
      the difference is gone with 16 requests, or 16 MiB, in flight (0.163 times).
    ");
    // The table of the run says the same, and its JSON has the claims.
    let table = run(folder.path(), &words!("table why.iolab")).expect(0);
    insta::assert_snapshot!(table.stdout.lines().find(|line| line.contains("Cause:")).unwrap_or_default(), @"- Cause: read-ahead of sequential reads: with sequential reads in reverse order the difference is");
    let json = run(folder.path(), &words!("table why.iolab --format json")).expect(0);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let claims = value["claims"].as_array().expect("claims");
    let kinds: Vec<&str> = claims
        .iter()
        .filter_map(|claim| claim["kind"].as_str())
        .collect();
    insta::assert_snapshot!(kinds.join(" "), @"phenomenon cause contributes contributes");
}

#[test]
fn differences_are_listed_and_chosen_by_number() {
    let folder = folder();
    measured(folder.path());
    let listed = run(folder.path(), &words!("why run.iolab --list")).expect(0);
    insta::assert_snapshot!(listed.stdout, @r"
      1  throughput at pattern=rand is 1/17.0 of that at pattern=seq
      2  p99 of latency at pattern=seq is 8.29 times the median (2.13 ms against 257 µs)
    ");
    let plan = run(folder.path(), &words!("why run.iolab --of 1 --dry-run")).expect(0);
    insta::assert_snapshot!(plan.stdout, @r#"
    Dry run: nothing is touched.

    experiment  cells  trials    virtual time
    why            12     372  3 min to 5 min
    throughput at pattern=rand is 1/17.0 of that at pattern=seq; 3 suspects: read-ahead (sequential
    reads in reverse order); waiting (16 requests, or 16 MiB, in flight); reach (an 8th of the region or
    less, down to a 64th)

    Target: model:sata-7200
    A model reads and writes no storage.
    "#);
    let none = run(folder.path(), &words!("why run.iolab --of 3")).expect(2);
    insta::assert_snapshot!(none.stderr, @r#"
    error: there is no difference number 3, but 2
      iolab why run.iolab --list
    "#);
}

/// What a run file names as its model may be any file of the user.
#[test]
fn a_run_file_that_names_another_file_as_its_model_quotes_nothing_of_it() {
    let folder = folder();
    measured(folder.path());
    std::fs::write(folder.path().join("secret"), "root:x:0:0:root\n").expect("a file");
    let file = rusqlite::Connection::open(folder.path().join("run.iolab")).expect("a run file");
    file.execute("UPDATE run SET target = 'model:secret'", [])
        .expect("a target");
    drop(file);
    let told = run(folder.path(), &words!("why run.iolab")).expect(2);
    insta::assert_snapshot!(told.stderr, @r"
    error: model:secret is not the disk that the run measured: its definition has changed
      measure again, and ask about that run
    ");
}

#[test]
fn a_run_of_one_cell_has_nothing_to_explain() {
    let folder = folder();
    let one = words!("run read-size model:sata-ssd --bs 64k --seed 3 -o run.iolab --quiet");
    run(folder.path(), &one).expect(0);
    let told = run(folder.path(), &words!("why run.iolab")).expect(0);
    insta::assert_snapshot!(told.stdout, @r"
    The run has a single cell, in which neither a lasting fall of throughput nor a long tail of
      latency was found: 'iolab why' explains these, or a difference between two cells. Measure several
      in one run, such as with --bs 4k,64k.
    ");
}

/// Cells that differ by ten times, with too few trials to be compared.
#[test]
fn too_few_trials_show_no_difference_and_leave_the_question_open() {
    let folder = folder();
    let few = words!(
        "run read-random model:sata-ssd --bs 4k,1M --set trials_min=3 --set trials_max=3 --seed 3 -o run.iolab --quiet"
    );
    run(folder.path(), &few).expect(0);
    let told = run(folder.path(), &words!("why run.iolab")).expect(5);
    insta::assert_snapshot!(told.stdout, @r"
    Cannot tell whether cells of the run differ, and no lasting fall of throughput was found in it.
      Both cells have fewer than 6 trials: its settings allow no more, and a run with --set trials_max=6
      or more can show more.
    ");
    run(folder.path(), &words!("why run.iolab --list")).expect(0);
    let single = words!(
        "run read-random model:sata-ssd --bs 4k --set trials_min=3 --set trials_max=3 --seed 3 -o single.iolab --quiet"
    );
    run(folder.path(), &single).expect(0);
    let told = run(folder.path(), &words!("why single.iolab")).expect(5);
    insta::assert_snapshot!(told.stdout, @r"
    Cannot tell whether the single cell of the run has slow requests: that takes 6 undisturbed trials
      with latencies of one kind of request, enough for a p99 in each. No lasting fall of throughput was
      found in it.
    ");
}

/// A hard disk takes several times as long to write out what random writes have left in its cache as these take.
#[test]
fn writing_out_is_a_part_of_the_budget() {
    let folder = folder();
    let writes = words!(
        "run write-random model:sata-7200 --bs 4k,64M --seed 1 --budget 90s -o run.iolab --quiet"
    );
    run(folder.path(), &writes).expect(0);
    let why = words!("why run.iolab --budget 20s --seed 2 -o why.iolab --quiet");
    // No run says how long unsynced writes are written out: two blocks of them take 46 s.
    run(folder.path(), &why).expect(5);
    let file = rusqlite::Connection::open(folder.path().join("why.iolab")).expect("a run file");
    let all = "SELECT sum(wall_ns) / 1e9 FROM sample";
    let took = file.query_row(all, [], |row| row.get::<_, f64>(0));
    let took = took.expect("trials");
    assert!(took <= 1.2 * 20.0, "{took}");
}

#[test]
fn what_was_asked_for_is_no_difference_to_explain() {
    let folder = folder();
    let scaling = words!(
        "run read-random model:sata-ssd --bs 4k --threads 1,4 --seed 3 -o run.iolab --quiet"
    );
    run(folder.path(), &scaling).expect(0);
    let told = run(folder.path(), &words!("why run.iolab")).expect(0);
    insta::assert_snapshot!(told.stdout, @r"
    The run shows no difference between two cells that 'iolab why' can explain, and no lasting fall of
      throughput was found in it.
    ");
}

#[test]
fn sides_that_differ_in_a_mechanism_come_last_and_say_so() {
    let folder = folder();
    let syncs = words!(
        "run write-random model:sata-ssd --bs 4k,1M --set sync=none,odsync --seed 3 -o run.iolab --quiet"
    );
    run(folder.path(), &syncs).expect(0);
    let listed = run(folder.path(), &words!("why run.iolab --list"))
        .expect(0)
        .stdout;
    // --list prints one line a difference.
    let of_syncs = |line: &str| line.contains("at sync=");
    let first = listed
        .lines()
        .position(of_syncs)
        .expect("a difference in sync");
    let rest: Vec<&str> = listed.lines().skip(first).collect();
    assert!(first > 0, "{listed}");
    let number = rest[0].split_whitespace().next().expect("its number");
    let told = run(folder.path(), &["why", "run.iolab", "--of", number]).expect(0);
    let said: Vec<&str> = told.stdout.split_whitespace().collect();
    let said = said.join(" ");
    insta::assert_snapshot!(said, @"throughput at sync=odsync is 1/34.5 of that at sync=none (bs=4KiB). The two cells differ in waiting until each write is durable and in nothing else: the run itself shows the cause.");
}

#[test]
fn another_disk_of_the_same_name_is_refused() {
    let folder = folder();
    let shown = run(folder.path(), &words!("model show sata-ssd"))
        .expect(0)
        .stdout;
    let model = folder.path().join("disk.toml");
    std::fs::write(&model, &shown).expect("it can be written");
    let measured =
        words!("run read-random model:disk.toml --bs 4k,1M --seed 3 -o run.iolab --quiet");
    run(folder.path(), &measured).expect(0);
    std::fs::write(&model, format!("# changed\n{shown}")).expect("it can be written");
    let refused = run(folder.path(), &words!("why run.iolab --quiet")).expect(2);
    insta::assert_snapshot!(refused.stderr, @r"
    error: model:disk.toml is not the disk that the run measured: its definition has changed
      measure again, and ask about that run
    ");
}

#[test]
fn a_study_explains_its_largest_effects() {
    let folder = folder();
    let dry = words!("study model:sata-ssd --suite glance --explain=20s");
    insta::assert_snapshot!(dry_run(folder.path(), &dry));
    let study = words!("study model:sata-ssd --suite glance --explain=20s --seed 4 -o out --quiet");
    let told = run(folder.path(), &study).expect(0).stdout;
    let causes = told
        .split("\nCauses\n")
        .nth(1)
        .expect("a part about causes");
    let causes = causes.split_whitespace().collect::<Vec<_>>().join(" ");
    let names = entries(&folder.path().join("out")).into_iter();
    let names: Vec<String> = names.filter(|name| name.starts_with("why")).collect();
    for name in &names {
        let table = ["table", &format!("out/{name}"), "--format", "json"];
        let table = run(folder.path(), &table).expect(0).stdout;
        let table: serde_json::Value = serde_json::from_str(&table).expect("JSON");
        let claim = &table["claims"][0];
        assert_eq!(claim["kind"], "phenomenon");
        let sentence = claim["sentence"].as_str().expect("its words");
        assert!(causes.contains(sentence), "{sentence}: {told}");
    }
    let explained = names.len();
    assert!((1..=2).contains(&explained));
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("the report");
    assert!(
        page.contains("variant narrow"),
        "a figure of causes fits a phone"
    );
    let figures = page.matches("<desc id=").count();
    let drawn = page
        .matches("What is left without each suspect of: ")
        .count();
    assert!(
        drawn >= explained,
        "{drawn} of {explained} are drawn, of {figures} figures"
    );
}

#[test]
fn programs_and_explanations_cannot_be_explained() {
    let folder = folder();
    measured(folder.path());
    let why = words!("why run.iolab --budget 20s --seed 5 -o why.iolab --quiet");
    run(folder.path(), &why).expect(0);
    let again = run(folder.path(), &words!("why why.iolab")).expect(5);
    insta::assert_snapshot!(again.stdout, @"This run explains a difference itself: iolab table why.iolab");
}
