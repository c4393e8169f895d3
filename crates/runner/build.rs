//! A number for the sources that define the messages between ranks, which distinguishes different builds of one version.

use std::fs;
use std::path::{Path, PathBuf};

/// The sources, next to this package in a checkout only; elsewhere the version identifies them.
const SOURCES: [&str; 3] = ["src", "../cluster/src", "../workload/src"];

fn main() {
    let mut number = FNV_OFFSET;
    for folder in SOURCES {
        if fs::exists(folder).unwrap_or(false) {
            println!("cargo::rerun-if-changed={folder}");
            number = files(Path::new(folder)).iter().fold(number, hashed);
        }
    }
    println!("cargo::rustc-env=IOLAB_SOURCES={number:016x}");
}

/// All source files under a folder, in one order on all hosts.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort_unstable();
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    let mut found: Vec<PathBuf> = paths.into_iter().flat_map(below).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "rs"));
    found
}

/// FNV-1a over the name and the content of a file.
fn hashed(number: u64, file: &PathBuf) -> u64 {
    let bytes = fs::read(file).expect("readable");
    let name = file.to_string_lossy();
    let all = name.bytes().chain(bytes);
    all.fold(number, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x100_0000_01b3;
