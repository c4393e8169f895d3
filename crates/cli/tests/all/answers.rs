//! Answers are kept with the run: every command that reads the run file shows the answer, and `resume` answers
//! an interrupted question.

use std::path::Path;

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::json_schema::assert_as_described;
use crate::support::words::words;
use crate::support::{
    Done, entries, error_of, folder, iolab, run, sample_count, signal, wait_for_samples,
};

/// Two workloads of about a second each.
const REQUIREMENT: &str = r#"name = "mine"
question = "Good enough?"
not = "the rest"
hold = "1s"
[[workload]]
name = "log"
settings = { pattern = "seq", read_percent = 0, bs = 4096, sync = "fdatasync", cache = "cold", region = "1MiB", time = "100ms", backend = "psync" }
[[workload.level]]
level = "syncs.p99<10min"
source = "not documented"
remedy = "a faster disk"
[[workload]]
name = "reads"
settings = { pattern = "rand", read_percent = 100, bs = 4096, cache = "cold", region = "1MiB", time = "100ms", backend = "psync" }
[[workload.level]]
level = "reads.p99<10min"
source = "not documented"
remedy = "a faster disk"
"#;
/// The limits of the requirement, as its file states them.
const NOT_COVERED: &str = "the rest";
const FIT: [&str; 5] = ["fit", "mine.toml", "data", "-o", "out"];
const FILES: [&str; 2] = ["out/mine-log.iolab", "out/mine-reads.iolab"];

/// A folder with the requirement and an empty target.
fn place() -> tempfile::TempDir {
    let folder = folder();
    std::fs::write(folder.path().join("mine.toml"), REQUIREMENT).unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    folder
}

/// Measures until the run file of a workload has at least `samples` samples, then interrupts.
fn interrupted(folder: &Path, workload: &str, samples: i64) -> Done {
    let child = iolab(folder, &FIT)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_samples(&folder.join(workload), samples);
    signal(&child, Signal::INT);
    Done::from(child.wait_with_output().unwrap()).expect(130)
}

const ANSWERS: [&str; 3] = ["yes", "no", "cannot tell"];

/// The paragraph with the answer.
fn opening(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

/// The answer at the beginning of a text: the lines before the question. A long path of the target makes several
/// lines.
fn answer_in(text: &str) -> String {
    let lines: Vec<_> = opening(text).lines().map(str::trim).collect();
    lines.join(" ").trim_end_matches('.').to_owned()
}

/// The exit code for the answer at the beginning of a text.
#[track_caller]
fn code_of(text: &str) -> i32 {
    // "cannot tell" is followed by its reasons.
    let answer = answer_in(text);
    match answer.split(": ").find(|part| ANSWERS.contains(part)) {
        Some("yes") => 0,
        Some("no") => 4,
        Some("cannot tell") => 5,
        _ => panic!("no answer: {text}"),
    }
}

/// Whether a text has the command that finishes the run of a file.
fn is_unfinished(text: &str, file: &str) -> bool {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.contains(&format!("iolab resume {file}"))
}

/// The answer in the table `question` of a run file; `None` without one.
fn stored(path: &Path) -> Option<String> {
    let file = Connection::open(path).unwrap();
    file.query_row("SELECT answer FROM question", [], |row| row.get(0))
        .unwrap()
}

/// The status of a run, as its run file has it.
fn status(path: &Path) -> String {
    let file = Connection::open(path).unwrap();
    file.query_row("SELECT status FROM run", [], |row| row.get(0))
        .unwrap()
}

#[test]
fn answer_of_fit_is_in_every_output() {
    let place = place();
    let folder = place.path();
    let fit = run(folder, &FIT);
    assert_eq!(fit.code, Some(code_of(&fit.stdout)), "{}", fit.stderr);
    for (command, code) in [("table", Some(0)), ("resume", fit.code)] {
        let again = run(folder, &[&[command], &FILES[..]].concat());
        assert_eq!(again.code, code, "{command}: {}", again.stderr);
        assert!(
            again.stdout.starts_with(opening(&fit.stdout)),
            "{}",
            again.stdout
        );
    }
    let all = run(
        folder,
        &[&["export", "--format", "json", "--answers"], &FILES[..]].concat(),
    );
    let all: Vec<Value> = serde_json::from_str(&all.expect(0).stdout).unwrap();
    assert_as_described(folder, "answers", &Value::Array(all.clone()));
    let of = |name: &str| {
        all.iter()
            .map(|row| row[name].as_str().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("requirement"), ["mine", "mine"]);
    assert_eq!(of("workload"), ["log", "reads"]);
    assert_eq!(of("level"), ["syncs.p99<10min", "reads.p99<10min"]);
    for (file, answer) in FILES.iter().zip(of("answer")) {
        assert_eq!(stored(&folder.join(file)).as_deref(), Some(answer));
        let rows = run(folder, &["table", "--format", "json", file]).expect(0);
        let rows: Value = serde_json::from_str(&rows.stdout).unwrap();
        let rows = rows["cells"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["answer"] == answer), "{rows:?}");
    }
    let sentence = answer_in(&fit.stdout);
    for format in ["html", "markdown", "latex"] {
        let arguments = [&["report", "--format", format, "-o", format], &FILES[..]].concat();
        let page = run(folder, &arguments).expect(0).stdout;
        let page = std::fs::read_to_string(folder.join(page.trim())).unwrap();
        // The target is left out, since each format escapes its path differently.
        let answer = sentence.split_once(": ").unwrap().1;
        assert!(
            page.contains(&format!(": {answer}.")),
            "{format}: {sentence}"
        );
        assert!(page.contains(NOT_COVERED), "{format}");
    }
}

#[test]
fn a_fit_is_as_its_schema_says() {
    let place = place();
    let fit = words!("fit mine.toml model:sata-ssd --format json");
    let fit = run(place.path(), &fit);
    let answer: Value = serde_json::from_str(&fit.stdout).unwrap();
    assert_as_described(place.path(), "fit", &answer);
    assert_eq!(answer["iolab_version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn an_interrupted_fit_ends_as_it_would_have() {
    for resumes in [&[&FILES[..]][..], &[&FILES[..1], &FILES[1..]]] {
        let place = place();
        let folder = place.path();
        let done = interrupted(folder, FILES[0], 3);
        let told = error_of(&done, folder);
        insta::allow_duplicates! { insta::assert_snapshot!(told, @r"
        interrupted
          finish the runs with: iolab resume out
        "); }
        assert_eq!(code_of(&done.stdout), 5, "{}", done.stdout);
        assert_eq!(sample_count(&folder.join(FILES[1])), Some(0));
        assert_eq!(stored(&folder.join(FILES[0])), None);
        let shown = run(folder, &["table", FILES[0]]).expect(0).stdout;
        assert_eq!(code_of(&shown), 5, "{shown}");
        assert!(is_unfinished(&shown, FILES[0]), "{shown}");
        let (last, before) = resumes.split_last().unwrap();
        for some in before {
            let half = run(folder, &[&["resume"], *some].concat()).expect(5);
            assert!(is_unfinished(&half.stdout, FILES[1]), "{}", half.stdout);
        }
        let whole = run(folder, &[&["resume"], *last].concat());
        assert_eq!(whole.code, Some(code_of(&whole.stdout)), "{}", whole.stdout);
        let table = run(folder, &[&["table"], &FILES[..]].concat()).expect(0);
        assert!(
            table.stdout.starts_with(opening(&whole.stdout)),
            "{}",
            whole.stdout
        );
        assert!(
            FILES.iter().all(|file| !is_unfinished(&whole.stdout, file)),
            "{}",
            whole.stdout
        );
        for file in FILES {
            assert_eq!(status(&folder.join(file)), "done");
            assert!(stored(&folder.join(file)).is_some());
        }
        assert_eq!(entries(&folder.join("data")), [""; 0]);
    }
}

#[test]
fn answer_of_service_levels_is_in_every_output() {
    const COMMON: [&str; 8] = words!("run load-latency model:sata-ssd --seed 9 --time 100ms -o");
    let folder = folder();
    for (file, more, kind, code, answer) in [
        ("search.iolab", &["--slo", "p99<2ms"][..], "limit", 0, "yes"),
        (
            "no.iolab",
            &["--rate", "1000", "--slo", "p99<1us"],
            "cells",
            4,
            "no",
        ),
        (
            "open.iolab",
            &["--slo", "p99<1ns", "--budget", "2s"],
            "limit",
            5,
            "cannot tell",
        ),
    ] {
        let path = folder.path();
        let first = run(path, &[&COMMON[..], &[file], more].concat()).expect(code);
        let again = run(path, &["resume", file]).expect(code);
        assert_eq!(again.stdout, first.stdout);
        let table = run(path, &["table", file]).expect(0);
        assert!(
            table.stdout.starts_with(opening(&first.stdout)),
            "{}",
            table.stdout
        );
        assert_eq!(stored(&path.join(file)).as_deref(), Some(answer));
        let all = run(path, &["export", "--format", "json", "--answers", file]).expect(0);
        let all: Vec<Value> = serde_json::from_str(&all.stdout).unwrap();
        assert_eq!(
            (all.len(), &all[0]["kind"], &all[0]["answer"]),
            (1, &kind.into(), &answer.into())
        );
        assert_as_described(path, "answers", &Value::Array(all.clone()));
        assert_eq!(all[0]["schema"], 1);
        assert_eq!(all[0]["iolab_version"], env!("CARGO_PKG_VERSION"));
    }
    let plain = run(
        folder.path(),
        &[&COMMON[..], &["plain.iolab", "--rate", "1000"]].concat(),
    );
    plain.expect(0);
    let none = run(
        folder.path(),
        &["export", "--format", "json", "--answers", "plain.iolab"],
    );
    insta::assert_snapshot!(none.expect(2).stderr);
}

#[test]
fn question_of_stranger_decides_nothing_and_is_escaped() {
    let place = place();
    let folder = place.path();
    interrupted(folder, FILES[0], 2);
    let evil =
        "\u{1b}[2Jrm \u{202e}<script>alert(1)</script> \\input{/etc/passwd} $(id)\r\n\u{9b}31m";
    let file = Connection::open(folder.join(FILES[0])).unwrap();
    file.execute(
        "UPDATE question SET not_covered = ?1, fit_id = ?1, limits = json_array(?1), hold_ns = ?2,
        requirement = 'read-random', workloads = '[\"other\", \"log\"]', answer = 'no'",
        (evil, 1_i64 << 60),
    )
    .unwrap();
    file.execute(
        "UPDATE question_level SET source = ?1, wording = ?1, remedy = ?1, level = 'syncs.p99<1ns'",
        [evil],
    )
    .unwrap();
    file.execute("UPDATE experiment SET question = ?1", [evil])
        .unwrap();
    drop(file);
    // The run file of the other workload, under the name that the hostile question gives it.
    std::fs::rename(
        folder.join(FILES[1]),
        folder.join("out/read-random-other.iolab"),
    )
    .unwrap();
    let other = std::fs::read(folder.join("out/read-random-other.iolab")).unwrap();
    let harmless = |text: &str| {
        let bad = text
            .chars()
            .find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(bad, None, "{text:?}");
    };
    let resumed = run(folder, &["resume", FILES[0]]);
    // A disturbed disk turns "no" (4) into "cannot tell" (5).
    assert!(matches!(resumed.code, Some(4 | 5)), "{}", resumed.stderr);
    harmless(&resumed.stdout);
    harmless(&resumed.stderr);
    assert_eq!(status(&folder.join(FILES[0])), "done");
    let names = ["mine-log.iolab", "read-random-other.iolab"];
    assert_eq!(entries(&folder.join("out")), names);
    assert_eq!(
        std::fs::read(folder.join("out/read-random-other.iolab")).unwrap(),
        other
    );
    for format in ["text", "markdown", "latex", "csv", "json"] {
        let table = run(folder, &["table", "--format", format, FILES[0]]).expect(0);
        harmless(&table.stdout);
    }
    let answers = run(
        folder,
        &["export", "--format", "json", "--answers", FILES[0]],
    )
    .expect(0);
    harmless(&answers.stdout);
    for format in ["html", "markdown", "latex"] {
        let page = run(
            folder,
            &["report", "--format", format, "-o", format, FILES[0]],
        )
        .expect(0);
        let page = std::fs::read_to_string(folder.join(page.stdout.trim())).unwrap();
        harmless(&page);
        let runs = match format {
            "latex" => "\\input{/etc",
            _ => "<script>alert",
        };
        assert!(!page.contains(runs), "{format}");
    }
}
