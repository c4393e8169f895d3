//! What is installed beside the binary: completions, man pages, the Debian package.

use std::path::{Path, PathBuf};
use std::process::Command;

use needs::Need;

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

#[test]
fn the_debian_package_is_installed_used_and_removed() {
    let Some(package) = std::env::var_os("IOLAB_DEB") else {
        return needs::skip(Need::DebPackage, "the variable is not set");
    };
    let package = std::fs::canonicalize(package).unwrap();
    let folder = folder();
    let admin = folder.path().join("var/lib/dpkg");
    for part in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(admin.join(part)).unwrap();
    }
    for file in ["status", "available"] {
        std::fs::write(admin.join(file), "").unwrap();
    }
    let dpkg = |arguments: &[&std::ffi::OsStr]| {
        let done = Command::new("dpkg")
            .arg("--force-not-root")
            .arg("--force-depends")
            .arg("--force-script-chrootless")
            .arg(format!("--root={}", folder.path().display()))
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    if needs::tool(Need::Dpkg).is_none() {
        return;
    }
    dpkg(&["--install".as_ref(), package.as_os_str()]);
    let binary = folder.path().join("usr/bin/iolab");
    let version = Command::new(&binary).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert_eq!(
        version.trim(),
        format!("iolab {}", env!("CARGO_PKG_VERSION"))
    );
    let listed = Command::new(&binary).arg("list").output().unwrap();
    assert!(listed.status.success());
    for file in [
        "usr/share/man/man1/iolab-run.1",
        "usr/share/bash-completion/completions/iolab",
        "usr/share/zsh/vendor-completions/_iolab",
        "usr/share/fish/vendor_completions.d/iolab.fish",
        "usr/share/doc/iolab/SAFETY.md",
    ] {
        // Which files are compressed is up to the version of cargo-deb.
        let mut forms = [file.to_owned(), format!("{file}.gz")].into_iter();
        let there = forms.any(|form| folder.path().join(form).exists());
        assert!(there, "{file} is missing");
    }
    dpkg(&["--remove".as_ref(), "iolab".as_ref()]);
    assert!(!binary.exists());
}
