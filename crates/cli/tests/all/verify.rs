//! `iolab run --verify`: what it says, keeps and refuses. What it finds is shown by the truth suite, on a file system
//! that does not keep what it is given.

use crate::support::{self, exported, folder, run, run_tiny};

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
    for (experiment, more, words) in [
        ("read-random", &["--verify"][..], "only reads"),
        ("read-random", &["--set", "verify=yes"], "only reads"),
        (
            "write-random",
            &["--verify", "--set", "backend=null"],
            "writes nothing",
        ),
        (
            "write-random",
            &["--verify", "--set", "content=zero"],
            "content=unique",
        ),
        (
            "write-random",
            &["--verify", "--set", "bs=1000"],
            "multiple of 512",
        ),
        ("linkage", &["--verify"], "does not apply to a program"),
    ] {
        let arguments = [&["run", experiment, "--buffered", "--size", "4MiB"], more].concat();
        let done = run(folder.path(), &arguments).expect(2);
        assert!(
            done.stderr.contains(words),
            "'{words}' is missing: {}",
            done.stderr
        );
    }
    assert!(
        support::entries(folder.path()).is_empty(),
        "nothing was written"
    );
}
