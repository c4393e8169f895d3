//! Tests skip in one way: by the crate `needs`, which counts.

use std::fs;
use std::path::{Path, PathBuf};

use needs::Need;

use crate::support::{files_below, rooms};

/// Every Rust file of the workspace with its text, except the files of `needs`.
fn sources() -> Vec<(PathBuf, String)> {
    let rooms = rooms().into_iter().filter(|(name, _)| name != "needs");
    let files = rooms.flat_map(|(_, folder)| files_below(&folder, &["rs"]));
    let with_text = files.map(|path| {
        let text = fs::read_to_string(&path).expect("UTF-8");
        (path, text)
    });
    with_text.collect()
}

/// The part of a file that only tests compile.
fn tests<'a>(path: &Path, text: &'a str) -> &'a str {
    let is_test = |part: &std::path::Component<'_>| {
        ["tests", "tests.rs"].contains(&&*part.as_os_str().to_string_lossy())
    };
    match path.components().any(|part| is_test(&part)) {
        true => text,
        false => text.find("#[cfg(test)]").map_or("", |start| &text[start..]),
    }
}

#[test]
fn no_test_says_by_itself_that_it_skips() {
    // How messages about a skip begin; in two parts, since this file is searched too.
    let words = [["skip", "ped"], ["left out", ": "]].map(|parts| format!("\"{}", parts.concat()));
    for (path, text) in sources() {
        for line in tests(&path, &text).lines().map(str::to_lowercase) {
            let is_told = words.iter().any(|word| line.contains(word));
            assert!(!is_told, "{}: call needs::skip: {line}", path.display());
        }
    }
}

#[test]
fn every_need_is_that_of_some_test() {
    let sources = sources();
    // Needs that are programs are skipped, since commands contain their names.
    for need in Need::ALL.iter().filter(|need| need.programs().is_empty()) {
        // In a call, and in a row of scripts.
        let names = [format!("Need::{need:?}"), format!(", {need:?}")];
        let follows = |text: &str, name: &str| {
            let mut ends = text
                .match_indices(name)
                .map(|(at, _)| &text[at + name.len()..]);
            ends.any(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        let is_used = |text: &str| names.iter().any(|name| follows(text, name));
        assert!(
            sources.iter().any(|(_, text)| is_used(text)),
            "no test needs {need}"
        );
    }
}
