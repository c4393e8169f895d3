//! `iolab model`: the catalogue, definitions, and traces that are replayed.

use std::fs;

use serde_json::Value;

use crate::support::{folder, refusals, run};

/// A disk without mechanics: every request takes 5 ms. Blocks are bytes.
const FIXED: &str = "title = \"Five milliseconds\"\nsource = [\"made up\"]\n\
    [model.latency]\nread_us = 5000\nwrite_us = 5000\ninner.memory = 1_000_000\n";

#[test]
fn list_and_show() {
    let folder = folder();
    let listed = run(folder.path(), &["model", "list"]).expect(0).stdout;
    let json = run(folder.path(), &["model", "list", "--format", "json"]).expect(0);
    let all: Value = serde_json::from_str(&json.stdout).unwrap();
    let all = all.as_array().unwrap();
    assert!(all.len() >= 14);
    for model in all {
        let name = model["name"].as_str().unwrap();
        assert!(listed.contains(name) && listed.contains(model["title"].as_str().unwrap()));
        // What is shown is a definition that the other commands take as a file.
        let shown = run(folder.path(), &["model", "show", name])
            .expect(0)
            .stdout;
        fs::write(folder.path().join("copy.toml"), &shown).unwrap();
        let again = run(folder.path(), &["model", "show", "copy.toml"]).expect(0);
        assert_eq!(again.stdout, shown);
    }
}

#[test]
fn a_trace_is_replayed() {
    let folder = folder();
    fs::write(folder.path().join("fixed.toml"), FIXED).unwrap();
    // Reads take 4, 5 and 8 ms, the write 5 ms; the last one lies outside.
    let trace = "R Hit 0 512 4000 10\nR Miss 512 512 5000 0\nR Miss 0 512 8000 1.5\n\
                 W Miss 9 1 5000 0\n\nR Miss 2000000 1 5000 0\n";
    fs::write(folder.path().join("drive.trace"), trace).unwrap();
    let arguments = ["model", "check", "fixed.toml", "drive.trace"];
    insta::assert_snapshot!(
        "model_check",
        run(folder.path(), &arguments).expect(0).stdout
    );
    let json = run(
        folder.path(),
        &[&arguments[..], &["--format", "json"]].concat(),
    );
    let found: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
    assert_eq!(found["requests_outside"], 1);
    let reads = &found["groups"][1];
    assert_eq!(
        (&reads["group"], &reads["requests"]),
        (&"reads".into(), &3.into())
    );
    assert_eq!(reads["error_median_ms"], 1.0);
    assert_eq!(reads["modelled_mean_ms"], 5.0);
}

#[test]
fn what_cannot_be_checked_is_named() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("good.toml", FIXED);
    write("good.trace", "R Hit 0 1 5000 0\n");
    write(
        "bad.toml",
        "title = \"x\"\nsource = []\n[model.latency]\nread_ms = 3\n",
    );
    write(
        "no-disk.toml",
        &FIXED.replace("latency", "cache").replace(
            "read_us = 5000\nwrite_us = 5000",
            "bytes = 1\nline = 512\nhit_us = 1",
        ),
    );
    write("bad.trace", "R Hit 0 1 5000 0\nR Hit 0 0 5000 0\n");
    write("far.trace", "R Hit 1000000 1 5000 0\n");
    let pairs = [
        ["hp-97561", "good.trace"],
        ["none.toml", "good.trace"],
        ["bad.toml", "good.trace"],
        ["no-disk.toml", "good.trace"],
        ["good.toml", "none.trace"],
        ["good.toml", "bad.trace"],
        ["good.toml", "far.trace"],
    ];
    let lines = pairs.map(|[definition, trace]| ["model", "check", definition, trace]);
    let lines = lines.each_ref().map(<[_; 4]>::as_slice);
    insta::assert_snapshot!(refusals(folder.path(), &lines));
}
