//! Acceptance and refusal of targets, without loss of foreign data and without left-overs.

#![allow(unsafe_code)] // what is tested is beyond safe calls

mod given;
mod place;
mod scratch;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use iolab_storage::{Consent, Need, Size, Target};
use iolab_workload::{Error, Kind};

const MIB: u64 = 1 << 20;

fn need(bytes: u64) -> Need {
    Need::reading(bytes)
}

fn writing(bytes: u64, consent: Consent) -> Need {
    Need {
        write: true,
        consent,
        ..need(bytes)
    }
}

fn named(signature: &str) -> Consent {
    Consent::DestroySignature(signature.to_owned())
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn file(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn fill(target: &Target) {
    target
        .fill(7, &AtomicBool::new(false), &mut |_| {})
        .unwrap();
}

/// Error of an open that must fail, with its kind and a remedy.
fn fails(path: &Path, need: &Need, kind: Kind) -> Error {
    let error = Target::open(path, need).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.remedy().is_some(), "no remedy: {error}");
    error
}

/// A message without the folder of its test.
fn said(text: impl ToString, dir: &Path) -> String {
    text.to_string().replace(&dir.display().to_string(), "DIR")
}

/// Lock for tests that start processes, and for those that reopen a file just closed. A process being started
/// has a copy of every descriptor, locks included, until it calls exec.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
