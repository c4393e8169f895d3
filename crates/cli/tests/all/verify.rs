//! `iolab run --verify`: what it says, keeps and refuses. What it finds is shown by the truth suite, on a file system
//! that does not keep what it is given.

use crate::support::{exported, folder, refusals, run_tiny};

#[test]
fn what_was_written_is_read_back() {
    let folder = folder();
    let more = ["--verify", "--buffered", "-o", "r.iolab"];
    run_tiny(folder.path(), "write-random", &more).expect(0);
    for sample in exported(folder.path(), "r.iolab") {
        let of = |name: &str| {
            sample[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {sample}"))
        };
        assert_eq!(sample["verify"], true);
        assert!(of("verified_blocks") > 0 && of("verified_blocks") <= of("write_requests"));
        assert_eq!(of("verified_bytes"), of("verified_blocks") * of("bs_bytes"));
        for kind in ["corrupted", "misplaced", "stale", "torn", "lost"] {
            assert_eq!(of(&format!("{kind}_blocks")), 0);
            assert!(sample[format!("{kind}_first_offset")].is_null());
        }
    }
}

#[test]
fn without_it_nothing_is_said() {
    let folder = folder();
    let more = ["--buffered", "-o", "r.iolab"];
    run_tiny(folder.path(), "write-random", &more).expect(0);
    for sample in exported(folder.path(), "r.iolab") {
        assert_eq!(sample["verify"], false);
        assert!(sample["verified_bytes"].is_null());
    }
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let folder = folder();
    let lines = [
        &["read-random", "--verify"][..],
        &["read-random", "--set", "verify=yes"],
        &["write-random", "--verify", "--set", "backend=null"],
        &["write-random", "--verify", "--set", "bs=1000"],
        &["linkage", "--verify"],
    ];
    let lines = lines.map(|line| [&["run"], line, &["--buffered", "--size", "4MiB"]].concat());
    let lines = lines.each_ref().map(Vec::as_slice);
    insta::assert_snapshot!(refusals(folder.path(), &lines));
}
