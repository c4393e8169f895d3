//! The binary under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The binary under test: the one in `IOLAB`, otherwise that of this workspace in the same build folder.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var_os("IOLAB").map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "--quiet",
            "--package",
            "iolab",
            "--bin",
            "iolab",
            "--message-format",
            "json",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let executable = messages
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back();
    executable.expect("cargo builds the iolab binary")
}
