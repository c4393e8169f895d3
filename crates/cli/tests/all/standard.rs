//! Rounds until they are steady, and tests of a standard, on a model and in every output.

use std::fs;
use std::path::Path;

use crate::support::words::words;
use crate::support::{folder, run};
use serde_json::Value;

/// The JSON table of the run file.
fn table(folder: &Path) -> Value {
    let printed = run(folder, &words!("table run.iolab --format json")).expect(0);
    serde_json::from_str(&printed.stdout).expect("JSON")
}

/// The claims of the run file of these kinds.
fn claims(folder: &Path, kinds: &[&str]) -> Vec<Value> {
    let document = table(folder);
    let claims = document["claims"].as_array().expect("claims").iter();
    let is_wanted = |claim: &&Value| kinds.iter().any(|kind| claim["kind"] == *kind);
    claims.filter(is_wanted).cloned().collect()
}

const KINDS: [&str; 4] = [
    "steady-rounds", "rounds-alike", "rounds-not-steady", "rounds-not-judged",
];

/// The claim about rounds, of which a run has one.
fn only_claim(folder: &Path) -> Value {
    only_of(folder, &KINDS)
}

/// The only claim of these kinds.
fn only_of(folder: &Path, kinds: &[&str]) -> Value {
    let mut found = claims(folder, kinds);
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

/// Fails where a document does not have the sentence of a claim; each has its own notation of numbers and signs.
#[track_caller]
fn assert_says(document: &str, claim: &Value) {
    let letters =
        |text: &str| -> String { text.chars().filter(char::is_ascii_alphabetic).collect() };
    let sentence = claim["sentence"].as_str().expect("a sentence");
    assert!(
        letters(document).contains(&letters(sentence)),
        "{sentence}\n{document}"
    );
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
    let matters = printed.stdout.split("\n1. ").nth(1).expect("some");
    insta::assert_snapshot!(matters.split("\n2. ").next().expect("one"), @"
    Steady state after 5 rounds: over the last 5, IOPS with 65 % reads, 64 KiB, the least steady of 3
       tracked cells, ranges over 11 % of its mean (20 % allowed) with a slope of 3.6 % (10 % allowed).
    ");
    let claim = only_claim(folder);
    let evidence = &claim["evidence"];
    assert_eq!(claim["kind"], "steady-rounds");
    assert_eq!(
        (&evidence["state"], &evidence["asked"]["window"]),
        (&"steady".into(), &5.into())
    );
    assert_eq!(evidence["is_by_standard"], true);
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
        assert_says(document, &claim);
    }
    // The rounds, the window, the grid, its figure: the order of a report of the standard.
    let own = ["<figure>", "-e1-pts-iops.svg", "-e1-pts-iops.pdf"];
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
