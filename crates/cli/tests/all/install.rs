//! What is installed beside the program: completions and man pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{folder, refusals, run};

const COMMANDS: [&str; 6] = ["study", "run", "doctor", "compare", "report", "completions"];

#[test]
fn completions_know_every_command() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(folder.path(), &["completions", shell]).expect(0).stdout;
        for word in COMMANDS.iter().chain(&["destroy-data"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let told = refusals(folder.path(), &[&["completions", "tcsh"]]);
    insta::assert_snapshot!(told);
}

/// Cargo builds examples for tests, too: beside the folder that this test lies in.
fn man() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples/man")
}

#[test]
fn every_command_has_a_man_page() {
    let folder = folder();
    let made = Command::new(man()).arg(folder.path()).status().unwrap();
    assert!(made.success());
    for command in COMMANDS {
        let page = folder.path().join(format!("iolab-{command}.1"));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH OPTIONS"), "{}", page.display());
    }
    assert!(folder.path().join("iolab.1").exists());
}
