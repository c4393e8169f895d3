//! Formats of limits, of runs on models.

use std::fs;

use serde_json::Value;

use crate::support::words::words;
use crate::support::{entries, folder, run};

/// Parts of the model: 10.2 µs a command, and a link of 550 MB/s.
const TRUTH: [(&str, f64); 7] = [
    ("rseqiops", 1e6 / 10.2),
    ("rrandiops", 1e6 / 10.2),
    ("wseqiops", 1e6 / 10.2),
    ("wrandiops", 1e6 / 10.2),
    ("wbps", 550e6),
    ("read_iops", 1e6 / 10.2),
    ("write_iops", 1e6 / 10.2),
];

#[test]
#[cfg_attr(not(feature = "models"), ignore = "it measures a model")]
fn limits_of_a_model_are_its_own() {
    let folder = folder();
    let folder = folder.path();
    let line = words!(
        "study --suite limits model:sata-ssd --set system=none --size 2GiB --time 100ms --seed 3 -o r"
    );
    run(folder, &line).expect(0);
    let files = ["r/limits-iocost.iolab", "r/limits-seastar.iolab"];
    let line = words!("export --format limits -o limits.json");
    let done = run(folder, &[&line[..], &files].concat()).expect(0);
    assert!(
        done.stderr.contains("rbps 550 MB/s (550 to 550)"),
        "{}",
        done.stderr
    );
    let text = fs::read_to_string(folder.join("limits.json")).expect("a file");
    let rows: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows.len(), 10, "{text}");
    for (name, truth) in TRUTH {
        let row = rows
            .iter()
            .find(|row| row["name"] == name)
            .expect("a limit");
        let value = row["value"].as_f64().expect("a number");
        assert!(
            (value / truth - 1.0).abs() < 0.01,
            "{name}: {value}, not {truth}"
        );
    }
    // A model has no number and no mount point.
    let before = entries(folder);
    for (format, file) in ["iocost", "seastar"].into_iter().zip(files) {
        let done = run(folder, &["export", file, "--format", format, "-o", "x"]).expect(2);
        assert!(
            done.stderr.contains("model:sata-ssd has none"),
            "{}",
            done.stderr
        );
        assert_eq!(entries(folder), before);
    }
}
