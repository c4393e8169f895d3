//! Commands that README and docs/COOKBOOK.md name as the answer to a question: each answer fits on a screen.

use std::collections::BTreeSet;

use crate::support::{Done, folder, iolab};

/// Lines of an answer at most, at 80 columns.
const LINES_MAX: usize = 20;

/// The commands of the documents that begin so, without `iolab`.
fn commands(beginning: &str) -> BTreeSet<String> {
    let documents = [
        include_str!("../../../../README.md"),
        include_str!("../../../../docs/COOKBOOK.md"),
    ];
    let quoted = documents.iter().flat_map(|text| text.split('`'));
    let commands = quoted.filter_map(|text| text.strip_prefix("iolab "));
    let named =
        commands.filter(|command| command.starts_with(beginning) && command.contains("/mnt/disk"));
    named.map(str::to_owned).collect()
}

/// Runs a command of a document with another target and further arguments.
fn answer(command: &str, target: &str, more: &[&str]) -> Done {
    let folder = folder();
    let words = command.split(' ').map(|word| match word {
        "/mnt/disk" => target.to_owned(),
        word => word.replace('\'', ""),
    });
    let arguments: Vec<String> = words
        .chain(more.iter().map(|word| (*word).to_owned()))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = iolab(folder.path(), &arguments)
        .env("COLUMNS", "80")
        .output()
        .expect("the binary starts");
    Done::from(done)
}

#[track_caller]
fn assert_short(command: &str, done: &Done) {
    let text = &done.stdout;
    assert!(!text.is_empty(), "{command}: {}", done.stderr);
    assert!(text.lines().count() <= LINES_MAX, "{command}:\n{text}");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(80), "{command}:\n{text}");
}

#[test]
fn answers_about_durable_writes_have_at_most_20_lines() {
    let tiny = [
        "--size", "1MiB", "--time", "5ms", "--budget", "300ms", "--seed", "7",
    ];
    let all = commands("run durable-log ");
    // One cell, and the sync methods.
    assert!(all.len() >= 2, "{all:?}");
    for command in &all {
        let done = answer(command, ".", &tiny).expect(0);
        assert_short(command, &done);
    }
    let full = answer("run durable-log /mnt/disk --full", ".", &tiny).expect(0);
    assert!(full.stdout.lines().count() > LINES_MAX, "{}", full.stdout);
}

#[test]
fn answers_about_service_levels_have_at_most_20_lines() {
    let short = ["--size", "16MiB", "--budget", "4s", "--seed", "7"];
    let all = commands("run load-latency ");
    assert!(all.len() >= 2, "{all:?}");
    for command in all.iter().filter(|command| command.contains("--slo")) {
        let done = answer(command, "model:sata-ssd", &short);
        assert_short(command, &done);
        assert!(
            matches!(done.code, Some(0 | 4 | 5)),
            "{command}: {}",
            done.stderr
        );
        // The table of all trials follows where everything is asked for.
        let full = answer(
            command,
            "model:sata-ssd",
            &[&short[..], &["--full"]].concat(),
        );
        assert!(
            full.stdout.starts_with(&done.stdout),
            "{command}:\n{}",
            full.stdout
        );
        assert!(
            full.stdout.lines().count() > LINES_MAX,
            "{command}:\n{}",
            full.stdout
        );
    }
}
