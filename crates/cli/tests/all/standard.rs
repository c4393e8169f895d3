//! Rounds until they are steady, and tests of a standard, on a model and in every output.

use std::fs;
use std::path::Path;

use crate::support::words::words;
use crate::support::{folder, run};
use serde_json::Value;

/// The claims of a run file of these kinds.
fn claims(folder: &Path, kinds: &[&str]) -> Vec<Value> {
    let printed = run(folder, &words!("table run.iolab --format json")).expect(0);
    let document: Value = serde_json::from_str(&printed.stdout).expect("JSON");
    let claims = document["claims"].as_array().expect("claims").iter();
    let is_wanted = |claim: &&Value| kinds.iter().any(|kind| claim["kind"] == *kind);
    claims.filter(is_wanted).cloned().collect()
}

const KINDS: [&str; 4] = [
    "steady-rounds",
    "rounds-alike",
    "rounds-not-steady",
    "rounds-not-judged",
];

/// The claim about rounds, of which a run has one.
fn only_claim(folder: &Path) -> Value {
    let mut found = claims(folder, &KINDS);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// The documents of a run file in every format that has sentences.
fn documents(folder: &Path) -> Vec<String> {
    let written = |name: &str| {
        run(folder, &["report", "run.iolab", "-o", name]).expect(0);
        fs::read_to_string(folder.join(name)).expect("written")
    };
    ["page.html", "page.md", "page.tex"].map(written).to_vec()
}

#[test]
fn a_scaled_test_says_so_everywhere() {
    let folder = folder();
    let folder = folder.path();
    let printed = run(
        folder,
        &words!("run pts-iops model:qlc-slc-cached --seed 1 --set bs=4k,64k,1M --set read_percent=100,65,0 --size 64MiB --time 10ms -o run.iolab"),
    )
    .expect(0);
    let matters = printed.stdout.split("What matters\n").nth(1).expect("some");
    insta::assert_snapshot!(matters.split("\n\n").next().expect("one"), @r"
    1. Steady state after 5 rounds: over the last 5, IOPS at read_percent=65, bs=64KiB, the least steady
       of 3 tracked cells, ranges over 11 % of its mean (20 % allowed) with a slope of 3.6 % (10 %
       allowed). pts-iops is scaled, not PTS: trials of 10 ms instead of 1 min; 0.0066 % of the device
       is used; 47 of its 56 cells are missing; its cells are in another order.
    ");
    let claim = only_claim(folder);
    let evidence = &claim["evidence"];
    assert_eq!(claim["kind"], "steady-rounds");
    assert_eq!(
        (&evidence["reached"], &evidence["window"]),
        (&true.into(), &5.into())
    );
    assert_eq!(evidence["standard"]["scaled"], true);
    assert_eq!(
        evidence["standard"]["deviations"].as_array().map(Vec::len),
        Some(4)
    );
    let tracked = evidence["tracked"].as_array().expect("three cells");
    let rounds = evidence["rounds"].as_u64().expect("a number");
    assert_eq!(tracked.len(), 3);
    for cell in tracked {
        assert_eq!(
            cell["values"].as_array().map(|values| values.len() as u64),
            Some(rounds)
        );
    }
    let documents = documents(folder);
    for document in &documents {
        assert!(document.contains("scaled, not PTS"), "{document}");
    }
    // The rounds, the window, the grid, its figure: the order of a report of the standard.
    let own = ["data-figure=\"e1\"", "-e1-pts-iops.svg", "-e1-pts-iops.pdf"];
    for (document, own) in documents.iter().zip(own) {
        let rounds = match own.strip_suffix(".svg").or(own.strip_suffix(".pdf")) {
            Some(stem) => format!("{stem}-rounds."),
            None => "<figure class=\"rounds\">".to_owned(),
        };
        let parts = [&rounds, "measurement window", "means of the 5", own];
        let places = parts.map(|part| document.find(part));
        assert!(places.iter().all(Option::is_some), "{parts:?}: {places:?}");
        assert!(places.is_sorted(), "{parts:?}: {places:?}");
    }
}

#[test]
fn rounds_that_are_not_steady_say_so_everywhere() {
    for (arguments, of) in [
        (
            &words!(
                "run pts-lat model:sata-7200 --seed 1 --set read_percent=100,65 --precondition steady:round=cells,rounds=6,range=0.001% --size 64MiB --time 100ms -o run.iolab"
            )[..],
            "cells",
        ),
        (
            &words!(
                "run read-random model:sata-7200 --seed 1 --set bs=4k --precondition steady:round=100ms,rounds=6,range=0.001% --size 64MiB --time 5ms --budget 1s -o run.iolab"
            )[..],
            "writes",
        ),
    ] {
        let folder = folder();
        let folder = folder.path();
        let printed = run(folder, arguments).expect(0);
        let claim = only_claim(folder);
        assert_eq!(claim["kind"], "rounds-not-steady");
        assert_eq!(claim["evidence"]["rounds_of"], of);
        assert_eq!(claim["evidence"]["rounds"], 6);
        let sentence = claim["sentence"].as_str().expect("a sentence");
        assert!(sentence.starts_with("NOT steady"), "{sentence}");
        for document in documents(folder).into_iter().chain([printed.stdout]) {
            assert!(document.to_lowercase().contains("not steady"), "{document}");
        }
    }
}

#[test]
fn a_steady_state_is_said_only_where_it_is_shown() {
    for (arguments, kind, says, short) in [
        (
            &words!(
                "run pts-wsat model:cloud-volume --seed 1 --precondition trim+steady:round=cells,range=99%,slope=99% --time 20ms -o run.iolab"
            )[..],
            "rounds-alike",
            "not shown to be a steady state: before them nothing of the region was written",
            "not shown to be in a steady state after 5 rounds",
        ),
        (
            &words!(
                "run pts-lat model:qlc-slc-cached --seed 1 --size 64MiB --time 20ms --budget 1ms -o run.iolab"
            )[..],
            "rounds-not-judged",
            "Cannot tell whether it is steady: 1 round, and a window needs 5. Increase --budget.",
            "not judged after 1 round",
        ),
        (
            &words!(
                "run pts-lat model:qlc-slc-cached --seed 1 --size 64MiB --time 20ms --precondition trim+seq:2/128KiB+steady:round=cells,range=99% -o run.iolab"
            )[..],
            "steady-rounds",
            "Steady by the limits asked after",
            "steady after",
        ),
    ] {
        let folder = folder();
        let folder = folder.path();
        let printed = run(folder, arguments).expect(0);
        let claim = only_claim(folder);
        assert_eq!(claim["kind"], kind);
        let sentence = claim["sentence"].as_str().expect("a sentence");
        assert!(sentence.contains(says), "{sentence}");
        let one_line = printed.stdout.replace('\n', " ");
        assert!(one_line.contains(short), "{}", printed.stdout);
        // These runs end at their window, whatever its precision.
        assert!(!one_line.contains("too few trials for"), "{one_line}");
        assert!(
            !printed.stderr.contains("cells within"),
            "{}",
            printed.stderr
        );
    }
}

#[test]
fn a_suite_of_the_same_name_runs_it_and_its_runs_compare() {
    let folder = folder();
    let folder = folder.path();
    for (seed, name) in [("1", "a"), ("2", "b")] {
        let study =
            words!("study --suite pts-tp model:qlc-slc-cached --size 64MiB --set time=10ms --seed");
        run(folder, &[&study[..], &[seed, "-o", name]].concat()).expect(0);
    }
    for name in ["pts-tp-128k", "pts-tp-1m"] {
        let files = ["a", "b"].map(|study| format!("{study}/{name}.iolab"));
        let compared = run(
            folder,
            &["compare", &files[0], &files[1], "--format", "json"],
        );
        assert!(
            [Some(0), Some(4), Some(5)].contains(&compared.code),
            "{}",
            compared.stderr
        );
    }
}

/// The stages are groups of one trial, whose throughput changes as they do.
#[test]
fn stages_in_a_row_are_no_change_of_the_storage() {
    let folder = folder();
    let folder = folder.path();
    let arguments = words!(
        "run pts-xsr model:qlc-slc-cached --seed 1 --size 64MiB --set before.time=80ms --set random.time=60ms --set random.start_delay=80ms --set after.time=80ms --set after.start_delay=140ms -o run.iolab"
    );
    let printed = run(folder, &arguments).expect(0);
    let claims = claims(
        folder,
        &["standard", "no-level-change", "level-within-trials"],
    );
    let [claim] = claims.as_slice() else {
        panic!("{claims:?}");
    };
    assert_eq!(claim["kind"], "standard");
    let evidence = &claim["evidence"];
    assert_eq!(
        (&evidence["test"], &evidence["scaled"]),
        (&"pts-xsr".into(), &true.into())
    );
    for text in documents(folder).into_iter().chain([printed.stdout]) {
        assert!(text.contains("scaled, not PTS"), "{text}");
    }
}

#[test]
fn a_run_is_compared_with_the_edition_that_was_asked_for() {
    let folder = folder();
    let folder = folder.path();
    let arguments = words!(
        "run pts-lat model:qlc-slc-cached --seed 1 --size 64MiB --time 5ms --set edition=client --budget 1ms -o run.iolab"
    );
    run(folder, &arguments).expect(0);
    let claim = only_claim(folder);
    assert_eq!(claim["evidence"]["standard"]["edition"], "client");
    let names_segments = |claim: &Value| {
        let deviations = claim["evidence"]["standard"]["deviations"].as_array();
        let mut deviations = deviations.expect("some").iter().filter_map(Value::as_str);
        deviations.any(|deviation| deviation.contains("2048 segments"))
    };
    assert!(names_segments(&claim), "{claim}");
    let sentence = claim["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains("pts-lat of the client edition is"),
        "{sentence}"
    );
    let with_segments = crate::support::folder();
    let arguments = words!(
        "run pts-lat model:qlc-slc-cached --seed 1 --size 256MiB --time 5ms --set edition=client --set segments=2048/32MiB --budget 1ms -o run.iolab"
    );
    run(with_segments.path(), &arguments).expect(0);
    let claim = only_claim(with_segments.path());
    assert!(!names_segments(&claim), "{claim}");
    let refused = run(
        folder,
        &words!("run read-size model:sata-ssd --set edition=client"),
    );
    assert_eq!(refused.code, Some(2));
}

#[test]
fn a_saturation_test_says_how_little_it_wrote() {
    let folder = folder();
    let folder = folder.path();
    let arguments =
        words!("run pts-wsat model:qlc-slc-cached --seed 1 --size 64MiB --time 10ms -o run.iolab");
    run(folder, &arguments).expect(0);
    let claim = only_claim(folder);
    let deviations = claim["evidence"]["standard"]["deviations"].as_array();
    let deviations = deviations.expect("some").iter().filter_map(Value::as_str);
    let written = deviations.filter(|text| text.contains("times the size of the device"));
    assert_eq!(written.count(), 1);
}
