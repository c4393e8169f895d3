//! Files that are installed in addition to the program: completions and man pages.

use crate::support::{folder, run};

// The example itself: Cargo builds its program only where all targets are tested.
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/man.rs"]
pub(crate) mod man;

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
}

#[test]
fn completions_offer_built_in_names() {
    let folder = folder();
    let script = |shell| run(folder.path(), &["completions", shell]).expect(0).stdout;
    let names = [
        "read-random", "micro", "etcd", "sata-ssd", "sata-7200", "course",
    ];
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        for name in names {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    // As a shell asks: the words up to the one that is completed.
    let Some(bash) = needs::tool(needs::Need::Bash) else {
        return;
    };
    std::fs::write(folder.path().join("script"), script("bash")).unwrap();
    for (line, expected) in [
        ("iolab run read-ra", "read-random"),
        ("iolab study --suite mic", "micro"),
        ("iolab fit etc", "etcd"),
        ("iolab model show sata-s", "sata-ssd"),
        ("iolab serve model:sata-s", "model:sata-ssd"),
        ("iolab plot --kind cours", "course"),
    ] {
        let asked = format!(
            "complete() {{ :; }}; . ./script; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _iolab iolab \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let done = std::process::Command::new(bash)
            .args(["-c", &asked])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let offered = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            offered.split_whitespace().any(|one| one == expected),
            "{line}: {done:?}"
        );
    }
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
