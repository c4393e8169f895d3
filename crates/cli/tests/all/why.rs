//! Causes of what a run shows, by intervention, on modelled disks.

use crate::support::words::words;
use crate::support::{entries, folder, run};

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
    insta::assert_snapshot!(text, @"
    why on model:sata-7200: cause: read-ahead of sequential reads; contributes: the size of the
      region; few requests in flight

    Reproduced: throughput with random access is 17.0× lower than with sequential access; here 17.2×
      lower (16.8 to 17.6×) in 30 blocks.
    Cause: read-ahead of sequential reads: with sequential reads in reverse order the difference is
      reversed (1.50× higher).
    Contributes: the size of the region: without the other suspects it makes 42 % (40 to 44 %) of the
      difference.
    Contributes: few requests in flight: 36 % (35 to 37 %) of the difference is gone with 16 requests,
      or 16 MiB, in flight (6.12× lower).
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
    insta::assert_snapshot!(listed.stdout, @"
    1  throughput with random access is 17.0× lower than with sequential access
    2  p99 of latency with sequential access is 8.29× the median (2.13 ms against 257 µs)
    ");
    let plan = run(folder.path(), &words!("why run.iolab --of 1 --dry-run")).expect(0);
    insta::assert_snapshot!(plan.stdout, @"
    Dry run: nothing is touched.

    experiment  cells  trials    virtual time
    why            12     372  3 min to 5 min
    throughput with random access is 17.0× lower than with sequential access; 3 suspects: read-ahead
    (sequential reads in reverse order); waiting (16 requests, or 16 MiB, in flight); reach (an 8th of
    the region or less, down to a 64th)

    Target: model:sata-7200
    A model reads and writes no storage.
    ");
    let none = run(folder.path(), &words!("why run.iolab --of 3")).expect(2);
    insta::assert_snapshot!(none.stderr, @r#"
    error: there is no difference number 3; the run shows 2
      iolab why run.iolab --list
    "#);
}

/// The model in a run file can be any file of the user.
#[test]
fn other_file_as_model_is_not_quoted() {
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
        .matches("Remaining share without each suspect: ")
        .count();
    assert!(
        drawn >= explained,
        "{drawn} of {explained} are drawn, of {figures} figures"
    );
}
