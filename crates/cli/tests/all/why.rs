//! Causes of what a run shows, by intervention, on modelled disks.

use crate::support::words::words;
use crate::support::{folder, run};

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
    assert!(text.lines().count() <= 10, "{text}");
    insta::assert_snapshot!(text, @"");
    // The table of the run says the same, and its JSON has the claims.
    let table = run(folder.path(), &words!("table why.iolab")).expect(0);
    insta::assert_snapshot!(table.stdout.lines().find(|line| line.contains("Cause:")).unwrap_or_default(), @"");
    let json = run(folder.path(), &words!("table why.iolab --format json")).expect(0);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let claims = value["claims"].as_array().expect("claims");
    let kinds: Vec<&str> = claims
        .iter()
        .filter_map(|claim| claim["kind"].as_str())
        .collect();
    insta::assert_snapshot!(kinds.join(" "), @"");
}

#[test]
fn differences_are_listed_and_chosen_by_number() {
    let folder = folder();
    measured(folder.path());
    let listed = run(folder.path(), &words!("why run.iolab --list")).expect(0);
    insta::assert_snapshot!(listed.stdout, @"");
    let plan = run(folder.path(), &words!("why run.iolab --of 1 --dry-run")).expect(0);
    insta::assert_snapshot!(plan.stdout, @"");
    let none = run(folder.path(), &words!("why run.iolab --of 2")).expect(2);
    insta::assert_snapshot!(none.stderr, @"");
}

#[test]
fn a_run_without_a_difference_has_nothing_to_explain() {
    let folder = folder();
    let one = words!("run read-size model:sata-ssd --bs 64k --seed 3 -o run.iolab --quiet");
    run(folder.path(), &one).expect(0);
    let told = run(folder.path(), &words!("why run.iolab")).expect(0);
    insta::assert_snapshot!(told.stdout, @"");
}
