use std::io::Read;

use super::*;
use needs::Tree;

const DISK: &str = "devices/pci/block/sda";

/// A fake disk with a partition.
fn machine() -> Tree {
    let tree = Tree::empty();
    tree.files(
        DISK,
        &[
            ("dev", "8:0"),
            ("queue/max_sectors_kb", "128"),
            ("queue/max_hw_sectors_kb", "4096"),
            ("queue/read_ahead_kb", "128"),
            ("queue/scheduler", "none [mq-deadline] bfq"),
            ("queue/nomerges", "0"),
            ("queue/nr_requests", "64"),
            ("queue/iosched/fifo_batch", "16"),
            ("sda1/dev", "8:1"),
            ("sda1/partition", "1"),
        ],
    );
    tree.link("dev/block/8:0", DISK);
    tree.link("dev/block/8:1", &format!("{DISK}/sda1"));
    tree.files(
        "kernel/mm/transparent_hugepage",
        &[("enabled", "always [madvise] never")],
    );
    tree
}

/// The machine under control, and the path of the journal.
fn controlled() -> (Tree, PathBuf, SystemControl) {
    let tree = machine();
    let journal = tree.path().join("journal");
    let (control, left) = SystemControl::at(tree.path(), &journal).expect("free");
    assert!(left.is_empty());
    (tree, journal, control)
}

fn value(tree: &Tree, file: &str) -> String {
    text_of(tree.path().join(DISK).join("queue").join(file)).expect("there")
}

fn settings(text: &str) -> SystemSettings {
    text.parse().expect("settings")
}

const PARTITION: [Option<(u32, u32)>; 1] = [Some((8, 1))];

/// While the thread that made the change is blocked in the kernel, another one restores it; nothing is left to
/// do then.
#[test]
fn another_thread_restores_the_change() {
    let (tree, journal, control) = controlled();
    let changed = control
        .change(&settings("max_sectors_kb:64"), &PARTITION)
        .expect("changed");
    let limit = std::time::Duration::from_secs(60);
    let restored = journal::restore_held(tree.path(), &journal, limit).expect("restored");
    assert_eq!(restored.len(), 1, "{restored:?}");
    assert_eq!(value(&tree, "max_sectors_kb"), "128");
    std::mem::forget(changed);
    control.journal.take();
    let left = SystemControl::restore_at(tree.path(), &journal).expect("nothing to do");
    assert!(left.is_empty(), "{left:?}");
}

/// State after a kill between the change and the second version of the journal, with a value rounded by the
/// kernel.
#[test]
fn rounded_value_is_restored_before_it_was_read() {
    for (now, restored) in [("60", "128"), ("64", "128"), ("256", "256")] {
        let (tree, journal, control) = controlled();
        let entries = control.entries(&settings("max_sectors_kb:64"), &PARTITION);
        control.keep(&entries.expect("known")).expect("kept");
        tree.files(DISK, &[("queue/max_sectors_kb", now)]);
        control.journal.take();
        SystemControl::restore_at(tree.path(), &journal).expect("restored");
        assert_eq!(value(&tree, "max_sectors_kb"), restored, "{now}");
    }
}

/// A version that is open for reading stays as it is: a kill leaves one whole version.
#[test]
fn journal_versions_replace_each_other_whole() {
    let (tree, journal, control) = controlled();
    let _changed = control.change(&settings("max_sectors_kb:64"), &PARTITION);
    let before = fs::read_to_string(&journal).expect("there");
    let mut opened = fs::File::open(&journal).expect("there");
    // As a kill leaves it.
    let half_written = tree.path().join("journal.next");
    fs::write(&half_written, "half").expect("written");
    control.keep(&[]).expect("kept");
    let mut old = String::new();
    opened.read_to_string(&mut old).expect("read");
    assert_eq!(old, before);
    assert_ne!(fs::read_to_string(&journal).expect("there"), before);
    assert!(!half_written.exists());
    SystemControl::at(tree.path(), &journal).expect_err("the new one is locked as well");
}

#[test]
fn foreign_file_at_the_journals_path_is_refused() {
    let tree = machine();
    let journal = tree.path().join("journal");
    let other = tree.path().join("other");
    fs::write(&other, "").expect("written");
    fs::hard_link(&other, &journal).expect("linked");
    let refused = || SystemControl::restore_at(tree.path(), &journal).expect_err("not ours");
    assert_eq!(refused().kind(), iolab_workload::Kind::Refused);
    fs::remove_file(&journal).expect("removed");
    std::os::unix::fs::symlink(&other, &journal).expect("linked");
    assert_eq!(refused().kind(), iolab_workload::Kind::Refused);
    assert_eq!(fs::read(&other).expect("there"), b"");
}

#[test]
fn what_somebody_else_has_changed_meanwhile_stays() {
    let one = [("queue/max_sectors_kb", "32")];
    // What a scheduler that others chose has set.
    let several = [("queue/scheduler", "bfq"), ("queue/nr_requests", "300")];
    for (asked, by_others) in [
        ("max_sectors_kb:64", &one[..]),
        ("scheduler:none", &several),
    ] {
        let (tree, _, control) = controlled();
        let changed = control.change(&settings(asked), &PARTITION);
        tree.files(DISK, by_others);
        changed.expect("changed").restore().expect("nothing fails");
        for (file, text) in by_others {
            assert_eq!(value(&tree, file.trim_start_matches("queue/")), *text);
        }
    }
}

#[test]
fn unknown_settings_are_refused_before_any_change() {
    let (tree, _, control) = controlled();
    let tried = |text: &str, devices| control.try_out(&settings(text), devices);
    assert!(tried("scheduler:kyber+read_ahead_kb:0", &PARTITION).is_err());
    assert!(tried("read_ahead_kb:0", &[None]).is_err());
    assert_eq!(value(&tree, "read_ahead_kb"), "128");
    assert_eq!(
        tried("read_ahead_kb:0", &PARTITION).expect("there"),
        [""; 0]
    );
    assert_eq!(value(&tree, "read_ahead_kb"), "128");
    assert!(tried("transparent_hugepage:never", &[None]).is_ok());
}
