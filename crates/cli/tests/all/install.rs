//! What is installed beside the program: completions and man pages.

use crate::support::{folder, refusals, run};

// The example itself: Cargo builds its program only where all targets are tested.
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/man.rs"]
mod man;

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

#[test]
fn every_command_has_a_man_page() {
    let folder = folder();
    man::write(folder.path()).unwrap();
    for command in COMMANDS {
        let page = folder.path().join(format!("iolab-{command}.1"));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH OPTIONS"), "{}", page.display());
    }
    assert!(folder.path().join("iolab.1").exists());
}
