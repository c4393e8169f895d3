//! Questions of interrupted runs: `resume` answers them, and the questions of a stranger's file decide nothing.

use std::path::Path;

use rusqlite::Connection;

use crate::support::words::words;
use crate::support::{
    Done, assert_harmless, assert_harmless_output, entries, error_of, folder, interrupted, iolab,
    run, sample_count, status,
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
const FILES: [&str; 2] = ["out/mine-log.iolab", "out/mine-reads.iolab"];

/// Measures until the file of the first workload has at least `samples` samples, then interrupts.
fn interrupted_fit(folder: &Path, samples: i64) -> Done {
    std::fs::write(folder.join("mine.toml"), REQUIREMENT).expect("written");
    std::fs::create_dir(folder.join("data")).expect("made");
    let fit = iolab(folder, &words!("fit mine.toml data -o out"));
    interrupted(fit, &folder.join(FILES[0]), samples)
}

#[test]
fn an_interrupted_fit_ends_as_it_would_have() {
    let folder = folder();
    let folder = folder.path();
    let done = interrupted_fit(folder, 3);
    insta::assert_snapshot!(error_of(&done, folder), @r"
    interrupted
      finish the runs with: iolab resume out
    ");
    assert!(done.stdout.contains("cannot tell"), "{}", done.stdout);
    assert_eq!(sample_count(&folder.join(FILES[1])), Some(0));
    let finishes = |text: &str, file: &str| {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.contains(&format!("iolab resume {file}"))
    };
    let shown = run(folder, &["table", FILES[0]]).expect(0).stdout;
    assert!(finishes(&shown, FILES[0]), "{shown}");
    let half = run(folder, &["resume", FILES[0]]).expect(5).stdout;
    assert!(finishes(&half, FILES[1]), "{half}");
    let whole = run(folder, &["resume", FILES[1]]);
    assert!(matches!(whole.code, Some(0 | 5)), "{}", whole.stderr);
    let table = run(folder, &[&["table"], &FILES[..]].concat()).expect(0);
    // A screen of many doubts shows less than the table.
    let answer = |text: &str| text.lines().next().map(str::to_owned);
    assert_eq!(answer(&table.stdout), answer(&whole.stdout));
    for file in FILES {
        assert!(!finishes(&whole.stdout, file), "{}", whole.stdout);
        assert_eq!(status(&folder.join(file)), "done");
    }
    assert_eq!(entries(&folder.join("data")), [""; 0]);
}

#[test]
fn question_of_stranger_decides_nothing_and_is_escaped() {
    let folder = folder();
    let folder = folder.path();
    interrupted_fit(folder, 2);
    let evil =
        "\u{1b}[2Jrm \u{202e}<script>alert(1)</script> \\input{/etc/passwd} $(id)\r\n\u{9b}31m";
    let file = Connection::open(folder.join(FILES[0])).expect("a run file");
    let change = |sql: &str| file.execute(sql, [evil]).expect("changed");
    change("UPDATE question SET not_covered = ?1, fit_id = ?1, limits = json_array(?1), hold_ns = 1 << 60,
        requirement = 'read-random', workloads = '[\"other\", \"log\"]', answer = 'no'");
    change(
        "UPDATE question_level SET source = ?1, wording = ?1, remedy = ?1, level = 'syncs.p99<1ns'",
    );
    change("UPDATE experiment SET question = ?1");
    drop(file);
    // The run file of the other workload, under the name that the hostile question gives it.
    let other = folder.join("out/read-random-other.iolab");
    std::fs::rename(folder.join(FILES[1]), &other).expect("renamed");
    let before = std::fs::read(&other).expect("read");
    let resumed = run(folder, &["resume", FILES[0]]);
    // A disturbed disk turns "no" (4) into "cannot tell" (5).
    assert!(matches!(resumed.code, Some(4 | 5)), "{}", resumed.stderr);
    assert_harmless_output(&resumed, "resume");
    assert!(
        !resumed.stderr.contains("the answer includes"),
        "{}",
        resumed.stderr
    );
    assert_eq!(status(&folder.join(FILES[0])), "done");
    let names = ["mine-log.iolab", "read-random-other.iolab"];
    assert_eq!(entries(&folder.join("out")), names);
    assert_eq!(std::fs::read(&other).expect("read"), before);
    for (format, runs) in [
        ("html", "<script>alert"),
        ("markdown", "<script>alert"),
        ("latex", "\\input{/etc"),
    ] {
        let report = ["report", "--format", format, "-o", format, FILES[0]];
        let page = run(folder, &report).expect(0).stdout;
        let page = std::fs::read_to_string(folder.join(page.trim())).expect("written");
        assert_harmless(&page, format);
        assert!(!page.contains(runs), "{format}");
    }
}
