//! `replay`, `record` and `distil`: what they refuse, and that models answer alike.

use std::path::Path;

use crate::support::json_schema::assert_as_described;
use crate::support::{folder, run};

/// Requests of 4 KiB each 2 ms, every third a write.
fn trace(folder: &Path, name: &str, unit: &str, step: u64) {
    let kind = |i: u64| if i.is_multiple_of(3) { "W" } else { "R" };
    let line = |i: u64| {
        format!(
            "{},{},{},4096,100\n",
            i * step,
            kind(i),
            i * 7919 % 251 * 4096
        )
    };
    let lines: String = (0..120).map(line).collect();
    let header = format!("time_{unit},op,offset,bytes,latency_us");
    std::fs::write(folder.join(name), format!("{header}\n{lines}")).unwrap();
}

fn is_scratch_left(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.contains("iolab"))
}

#[test]
fn models_answer_alike_and_keep_the_certificate() {
    let folder = folder();
    let folder = folder.path();
    trace(folder, "t.csv", "us", 2000);
    let words = [
        "replay", "t.csv", "model:sata-ssd", "model:sata-7200", "--speed", "1,max", "--format",
        "json",
    ];
    let first = run(folder, &words).expect(0).stdout;
    assert_eq!(first, run(folder, &words).expect(0).stdout);
    let said: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_as_described(folder, "replay", &said);
    let cell = &said["cells"][0];
    assert_eq!(cell["latest"]["lateness"]["max_ns"], 0);
    assert_eq!(
        (&cell["kept"], &cell["served_by"][0]),
        (&8.into(), &"model".into())
    );
}

#[test]
fn disk_slower_than_the_trace_is_no_result() {
    let folder = folder();
    let folder = folder.path();
    trace(folder, "t.csv", "us", 100);
    let words = [
        "replay", "t.csv", "model:hp-97560", "--depth", "4", "--blocks", "1",
    ];
    let said = run(folder, &words).expect(5).stdout;
    assert!(
        said.contains("Cannot tell how model:hp-97560 answers the trace at 1×: requests waited"),
        "{said}"
    );
    assert!(!said.contains("read p99"), "{said}");
}

#[test]
fn stamps_of_whole_seconds_pace_no_replay() {
    let folder = folder();
    let folder = folder.path();
    trace(folder, "t.csv", "s", 1);
    let words = ["replay", "t.csv", "model:sata-ssd"];
    let said = run(folder, &words).expect(2).stderr;
    assert!(said.contains("whole seconds"), "{said}");
    run(
        folder,
        &[&words[..], &["--speed", "max", "--blocks", "1"]].concat(),
    )
    .expect(0);
}

#[test]
fn traces_write_existing_files_with_consent_only() {
    let folder = folder();
    let folder = folder.path();
    trace(folder, "t.csv", "us", 2000);
    let before = vec![7u8; 2 << 20];
    let file = folder.join("data");
    std::fs::write(&file, &before).unwrap();
    let replay = |more: &[&str]| {
        let words = ["replay", "t.csv", "data", "--blocks", "1"];
        run(folder, &[&words[..], more].concat())
    };
    let said = replay(&[]).expect(3).stderr;
    assert!(said.contains("--destroy-data"), "{said}");
    // A busy machine may be late: that is an answer, and not a failure.
    assert!([0, 5].contains(&replay(&["--reads-only"]).code.unwrap()));
    assert!(std::fs::read(&file).unwrap() == before);
    assert!([0, 5].contains(&replay(&["--destroy-data"]).code.unwrap()));
    assert!(std::fs::read(&file).unwrap() != before);
}

#[test]
fn directory_gets_a_scratch_file_that_is_removed() {
    let folder = folder();
    let folder = folder.path();
    trace(folder, "t.csv", "us", 2000);
    std::fs::create_dir(folder.join("disk")).unwrap();
    let words = [
        "replay", "t.csv", "disk", "--blocks", "1", "--format", "json",
    ];
    let done = run(folder, &words);
    assert!([0, 5].contains(&done.code.unwrap()));
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(said["trials"][0]["writes"]["requests"], 40);
    assert_eq!(said["trials"][0]["reads"]["requests"], 80);
    assert!(!is_scratch_left(&folder.join("disk")));
}

#[test]
fn distilled_experiment_is_one_that_runs() {
    let folder = folder();
    let folder = folder.path();
    // Exponential gaps from draws that are spread evenly.
    let mut at = 0.0;
    let mut lines = "time_us,op,offset,bytes\n".to_owned();
    for i in 0..2000u64 {
        at += -(1.0 - (i * 2_654_435_761 % 10_007) as f64 / 10_007.0).ln() * 1000.0;
        let bytes = if i % 10 < 6 { 4096 } else { 16_384 };
        lines += &format!("{at:.3},R,{},{bytes}\n", i * 7919 % 65_521 * 4096);
    }
    std::fs::write(folder.join("t.csv"), lines).unwrap();
    run(folder, &["distil", "t.csv", "-o", "job.toml"]).expect(0);
    let said = run(folder, &["run", "job.toml", "model:sata-ssd", "--dry-run"]).expect(0);
    assert!(said.stdout.contains("reads"), "{}", said.stdout);
    // Equal gaps are not random.
    trace(folder, "equal.csv", "us", 1000);
    run(folder, &["distil", "equal.csv", "-o", "none.toml"]).expect(5);
    assert!(!folder.join("none.toml").exists());
}
